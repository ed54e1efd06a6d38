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
    """A partition (queue) of a cluster. Unknown fields are ``None`` or empty.

    ``max_time`` has Slurm's syntax. ``max_nodes`` is the maximum number of nodes of a job; ``nodes`` is the
    number of nodes of the partition. ``memory_mb`` is the memory of a node, in MB, that jobs can use.
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
    """The GPU type in GRES (Slurm's generic resources), such as ``v100``; empty if GRES names no type."""
    features: tuple[str, ...] = ()


class Container(_SiteSection, frozen=True, kw_only=True):
    """How jobs start containers.

    The job first loads ``modules``, then starts containers with ``command``. ``binds`` are mounts,
    ``SRC[:DST[:ro]]``.
    """

    command: str = "singularity"
    modules: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()


class SiteImage(_SiteSection, frozen=True, kw_only=True):
    """The requirements that an image must meet before toolkit starts the image at this site.

    ``verify_key`` is a file of public keys on the machine that runs toolkit; its path is relative to the
    profile's folder. toolkit starts only images that one of these keys has signed; an empty ``verify_key``
    requires no signature. If ``override`` is true, the user's key file (``--verify-key`` or settings)
    replaces ``verify_key``, and ``--no-verify`` makes signatures unnecessary.
    """

    verify_key: str = ""
    override: bool = False


class Launch(_SiteSection, frozen=True, kw_only=True):
    """How jobs start ranks.

    ``mode`` is a launch mode that works at this site; toolkit uses this mode if it cannot predict which mode
    works. ``mpi`` is the site's value for ``srun --mpi``, such as ``pmix_v4``; it is empty if toolkit chooses
    the value. ``srun`` lists options that toolkit adds to the launcher's options. The launcher ``pals`` is
    the ``mpiexec`` of HPE's Parallel Application Launch Service.
    """

    launcher: Literal["srun", "pals"] = "srun"
    mode: Mode | None = None
    mpi: str = ""
    srun: tuple[str, ...] = ()


class Gpus(_SiteSection, frozen=True, kw_only=True):
    """How jobs request GPUs.

    ``ask`` is the Slurm option with which a job requests GPUs, or ``partition`` if each job in a partition
    gets GPUs without a request. ``gres`` is the name before the number of GPUs in ``--gres``, such as ``gpu``
    or ``gpu:tesla``; if ``ask`` is ``constraint``, ``gres`` is the node feature of the nodes with GPUs.
    """

    ask: Literal["gres", "gpus-per-node", "partition", "constraint"] = "gres"
    gres: str = "gpu"


class Defaults(_SiteSection, frozen=True, kw_only=True):
    """Default values for jobs at this site. Each field has the name of a field of a job file."""

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
    patterns for names of host variables that toolkit passes to the container at this site. Without ``keep``,
    toolkit removes these variables. ``directory`` is the folder for images, data and runs; it may use a
    variable (``$WORK/toolkit``). ``shared`` is a folder with the subfolders ``images`` and ``data``, which
    all users of the cluster can read; toolkit uses the files in these subfolders and does not copy them.
    ``scratch`` is a folder for TMPDIR, on a compute node's local disk. ``network`` is the network
    interface for sockets of NCCL and Gloo. ``host`` is the ssh destination of the login node. ``silence`` has
    the ids of findings that ``toolkit doctor`` hides at this site, each with the reason. ``sources``
    lists the documents on which the profile is based. ``checked`` is the day (``2026-11-25``) on which the
    profile's author last compared the profile with its sources. From the day ``expires`` on, the profile is
    out of date. ``retired`` says when the cluster went out of service; it is empty for a cluster in service.
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
    silence: dict[str, str] = {}
    sources: tuple[str, ...] = ()
    checked: str = ""
    expires: str = ""
    retired: str = ""

    def partition(self, name: str = "") -> Partition | None:
        """Return the partition named ``name``, or the default partition if ``name`` is empty; ``None`` if the
        profile does not have this partition.
        """
        wanted = name or self.defaults.partition
        found = [p for p in self.partitions if (p.name == wanted if wanted else p.default)]
        return found[0] if found else None

    def threads(self, partition: str | None = None) -> int:
        """Return the number of hardware threads of each core in a partition; 1 if the number is unknown."""
        found = self.partition(partition or "")
        return (found.threads if found else None) or 1

    def has_gpus(self, partition: str | None, gpu_count: int | None) -> bool:
        """Return whether ranks get GPUs. ``gpu_count`` is the number of GPUs that the job requests.

        If ``gpu_count`` is ``None``, the result is true if both conditions are met: the partition has GPUs,
        and ``ask`` of :class:`Gpus` is ``partition`` or ``constraint``.
        """
        if gpu_count is not None:
            return gpu_count > 0
        found = self.partition(partition or "")
        return self.gpus.ask in {"partition", "constraint"} and bool(found and found.gpus)
