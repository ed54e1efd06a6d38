"""A site profile: a cluster and how to use it, as a file under ``slurm/sites`` states it."""

from typing import Literal

import msgspec

from toolkit.model.prediction import Mode

TestLevel = Literal["run", "rendered"]
"""``run``: toolkit's jobs ran on the cluster. ``rendered``: from published documentation; scripts were only
rendered.
"""


class _SiteSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Partition(_SiteSection, frozen=True, kw_only=True):
    """One partition (queue). An unknown limit is ``None`` or empty.

    ``max_time`` is in Slurm's form, ``memory_mb`` is the memory of a node for jobs, ``cores`` are physical
    cores, ``threads`` are hardware threads a core.
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
    """The type as GRES names it, as in ``v100``; empty if GRES has none."""
    features: tuple[str, ...] = ()


class Container(_SiteSection, frozen=True, kw_only=True):
    """How containers are started: ``command`` after loading ``modules``; ``binds`` are ``SRC[:DST[:ro]]``."""

    command: str = "singularity"
    modules: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()


class SiteImage(_SiteSection, frozen=True, kw_only=True):
    """The requirements for an image to start at this site.

    ``verify_key`` is a file of public keys on the machine that launches, relative to the profile: only an
    image that one of them has signed starts; empty if the site requires none. ``override`` permits
    ``--verify-key``, settings and ``--no-verify`` to replace it.
    """

    verify_key: str = ""
    override: bool = False


class Launch(_SiteSection, frozen=True, kw_only=True):
    """How ranks are started.

    ``mode`` is known to work, and is used if there are no facts to predict from; ``mpi`` is for ``srun
    --mpi``, empty if the site's default is right. ``srun`` holds more options of the launcher. ``pals`` is
    the ``mpiexec`` of HPE's Parallel Application Launch Service.
    """

    launcher: Literal["srun", "pals"] = "srun"
    mode: Mode | None = None
    mpi: str = ""
    srun: tuple[str, ...] = ()


class Gpus(_SiteSection, frozen=True, kw_only=True):
    """How GPUs are asked for; ``gres`` is the name before the count, as in ``gpu`` or ``gpu:tesla``."""

    ask: Literal["gres", "gpus-per-node", "partition", "constraint"] = "gres"
    gres: str = "gpu"


class Defaults(_SiteSection, frozen=True, kw_only=True):
    """Default values of a job at this site, with the names of the job specification."""

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

    ``modules`` are loaded in the job, after ``module purge`` if ``purge`` is set; ``swap A B`` swaps one,
    ``use /FOLDER`` adds a folder of modules. ``env`` is set inside the container and may name variables of
    the job (``$CRAY_LD_LIBRARY_PATH``), ``keep`` names host variables (patterns) that may reach it although
    they usually must not. ``directory`` is where images, data and runs go, and may name a variable
    (``$WORK/toolkit``). ``shared`` is a folder with ``images`` and ``data`` that all users of the cluster can
    read; its files are not copied. ``scratch`` is node-local disk for TMPDIR. ``network`` names the interface
    for sockets (NCCL, Gloo), ``host`` is the destination for ``ssh``. ``sources`` are the sources of all
    this. ``checked`` and ``expires`` are days (``2026-11-25``): on ``checked`` the profile was compared with
    its sources, after ``expires`` it is out of date. ``retired`` says when the machine went out of service.
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
        """Return the partition of a name, the default partition for no name; ``None`` if it is unknown."""
        wanted = name or self.defaults.partition
        found = [p for p in self.partitions if (p.name == wanted if wanted else p.default)]
        return found[0] if found else None

    def threads(self, partition: str | None = None) -> int:
        """Return the hardware threads of a core in a partition; 1 if unknown."""
        found = self.partition(partition or "")
        return (found.threads if found else None) or 1

    def has_gpus(self, partition: str | None, asked: int | None) -> bool:
        """Return whether ranks get GPUs: a job asks for some, or the partition provides them."""
        if asked is not None:
            return asked > 0
        found = self.partition(partition or "")
        return self.gpus.ask in {"partition", "constraint"} and bool(found and found.gpus)
