"""A site profile: a file in ``slurm/sites`` that describes how to use a cluster."""

from typing import Literal

import msgspec

from toolkit.model.prediction import Mode

TestLevel = Literal["run", "rendered"]
"""``run``: jobs from toolkit ran on the cluster. ``rendered``: the profile is based on published
documentation; toolkit rendered job scripts, but no job ran on the cluster.
"""


class _SiteSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Partition(_SiteSection, frozen=True, kw_only=True):
    """A partition (queue) of a cluster. An unknown limit is ``None`` or empty.

    ``max_time`` has Slurm's syntax. ``memory_mb`` is the memory of a node, in MB, that jobs can use.
    ``cores`` is the number of physical cores of a node. ``threads`` is the number of hardware threads of a
    core.
    """

    name: str
    default: bool = False
    max_time: str = ""
    max_nodes: int | None = None
    nodes: int | None = None
    cores: int | None = None
    threads: int | None = None
    memory_mb: int | None = None
    gpus: int | None = None
    gpu: str = ""
    """The GPU type in GRES (Slurm's generic resources), as in ``v100``; empty if GRES has no type."""
    features: tuple[str, ...] = ()


class Container(_SiteSection, frozen=True, kw_only=True):
    """How jobs start containers.

    The job starts containers with ``command`` after it has loaded ``modules``. ``binds`` are mounts,
    ``SRC[:DST[:ro]]``.
    """

    command: str = "singularity"
    modules: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()


class SiteImage(_SiteSection, frozen=True, kw_only=True):
    """The requirements that an image must meet before toolkit starts the image at this site.

    ``verify_key`` is a file of public keys on the machine that runs toolkit; its path is relative to the
    profile's folder. toolkit starts only images that one of these keys has signed; an empty ``verify_key``
    requires no signature. ``override`` allows users to replace ``verify_key`` with ``--verify-key``, settings
    or ``--no-verify``.
    """

    verify_key: str = ""
    override: bool = False


class Launch(_SiteSection, frozen=True, kw_only=True):
    """How jobs start ranks.

    ``mode`` is a launch mode that works at this site; toolkit uses this mode if it cannot predict which mode
    works. ``mpi`` is the value for ``srun --mpi``; empty if the site's default is right. ``srun`` lists
    further options for the launcher. The launcher ``pals`` is the ``mpiexec`` of HPE's Parallel Application
    Launch Service.
    """

    launcher: Literal["srun", "pals"] = "srun"
    mode: Mode | None = None
    mpi: str = ""
    srun: tuple[str, ...] = ()


class Gpus(_SiteSection, frozen=True, kw_only=True):
    """How jobs request GPUs. ``gres`` is the name before the number of GPUs in Slurm's option ``--gres``,
    such as ``gpu`` or ``gpu:tesla``.
    """

    ask: Literal["gres", "gpus-per-node", "partition", "constraint"] = "gres"
    gres: str = "gpu"


class Defaults(_SiteSection, frozen=True, kw_only=True):
    """Default values for jobs at this site; the field names are as in a job file."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    time: str = ""
    memory: str = ""
    cpus_per_rank: int | None = None
    exclusive: bool = False
    licenses: str = ""
    sbatch: tuple[str, ...] = ()


class Site(_SiteSection, frozen=True, kw_only=True):
    """One cluster.

    The job loads ``modules``, after ``module purge`` if ``purge`` is true. The entry ``swap A B`` replaces
    the module A by B; the entry ``use /FOLDER`` adds a folder with modules. ``env`` has variables to set
    inside the container; a value may use a variable of the job (``$CRAY_LD_LIBRARY_PATH``). ``keep`` lists
    patterns for host variables that toolkit usually removes, but passes to the container at this site.
    ``directory`` is the folder for images, data and runs; it may use a variable (``$WORK/toolkit``).
    ``shared`` is a folder with the subfolders ``images`` and ``data``, which all users of the cluster can
    read; toolkit uses the files in these subfolders and does not copy them. ``scratch`` is a folder on a
    local disk of the node, for TMPDIR. ``network`` is the network interface for sockets of NCCL and Gloo.
    ``host`` is the destination for ``ssh``. ``sources`` lists the documents on which the profile is based.
    ``checked`` is the day (``2026-11-25``) on which the profile's author last compared the profile with its
    sources. From the day ``expires`` on, the profile is out of date. ``retired`` says when the machine went
    out of service.
    """

    schema: Literal["toolkit.site/1"]
    title: str
    centre: str = ""
    tested: TestLevel = "rendered"
    notes: str = ""
    scheduler: Literal["slurm", "pbs"] = "slurm"
    architecture: str = "x86_64"
    host: str = ""
    modules: tuple[str, ...] = ()
    purge: bool = False
    env: dict[str, str] = {}
    keep: tuple[str, ...] = ()
    directory: str = ""
    shared: str = ""
    scratch: str = ""
    network: str = ""
    fabric: str = ""
    container: Container = Container()
    image: SiteImage = SiteImage()
    launch: Launch = Launch()
    gpus: Gpus = Gpus()
    defaults: Defaults = Defaults()
    partitions: tuple[Partition, ...] = ()
    sources: tuple[str, ...] = ()
    checked: str = ""
    expires: str = ""
    retired: str = ""

    def partition(self, name: str = "") -> Partition | None:
        """Return the partition named ``name``, or the default partition for an empty name; ``None`` for an
        unknown name.
        """
        wanted = name or self.defaults.partition
        found = [p for p in self.partitions if (p.name == wanted if wanted else p.default)]
        return found[0] if found else None

    def threads(self, partition: str | None = None) -> int:
        """Return the number of hardware threads of a core in a partition; 1 if unknown."""
        found = self.partition(partition or "")
        return (found.threads if found else None) or 1

    def has_gpus(self, partition: str | None, asked: int | None) -> bool:
        """Return whether ranks get GPUs: the job requests GPUs, or the partition provides GPUs without a
        request.
        """
        if asked is not None:
            return asked > 0
        found = self.partition(partition or "")
        return self.gpus.ask in {"partition", "constraint"} and bool(found and found.gpus)
