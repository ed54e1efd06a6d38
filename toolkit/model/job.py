"""What to run on a cluster, and the record of what was run."""

from typing import Literal

import msgspec

from toolkit.model.fix import LaunchFix
from toolkit.model.prediction import Mode, Plan

JobState = Literal["pending", "running", "completed", "failed", "cancelled", "timeout", "unknown"]

FINAL_STATES: frozenset[JobState] = frozenset({"completed", "failed", "cancelled", "timeout"})


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A job as a person asks for it; ``command`` runs once a rank inside the image.

    Paths are the cluster's own. ``time``, ``begin``, ``dependency``, ``array``, ``mail_type``, ``constraint``
    are in Slurm's own form, ``cpus_per_rank`` a count of cores, ``memory`` that of a node and
    ``memory_per_cpu`` that of a core, as in ``16G``. ``gpus_per_node`` of the type ``gpu`` are bound to ranks
    as ``gpu_bind`` says, cores as ``cpu_bind`` says (srun's words). ``workdir`` is the folder inside the
    container, ``output`` and ``error`` are relative to ``directory``. ``sbatch`` holds more options for
    ``#SBATCH`` lines. ``warning`` is how many seconds before the time limit the job is asked to write a
    checkpoint; ``requeue`` lets it go on in a new job after that, ``chain`` at most so many times. An
    ``elastic`` one takes from ``min_nodes`` (0 for one) to ``nodes``, and goes on with those that are left.
    """

    name: str
    image: str
    command: tuple[str, ...]
    directory: str
    nodes: int = 1
    ranks_per_node: int = 1
    cpus_per_rank: int | None = None
    gpus_per_node: int | None = None
    gpu: str = ""
    gpu_bind: str = ""
    cpu_bind: str = ""
    memory: str = ""
    memory_per_cpu: str = ""
    time: str = "01:00:00"
    partition: str | None = None
    account: str | None = None
    wckey: str = ""
    qos: str = ""
    constraint: str = ""
    reservation: str = ""
    nodelist: str = ""
    exclude: str = ""
    licenses: str = ""
    mail_type: str = ""
    mail_user: str = ""
    array: str = ""
    dependency: str = ""
    begin: str = ""
    exclusive: bool = False
    requeue: bool = False
    warning: int = 0
    chain: int = 0
    elastic: bool = False
    min_nodes: int = 0
    output: str = "output.log"
    error: str = ""
    workdir: str = ""
    modules: tuple[str, ...] = ()
    sbatch: tuple[str, ...] = ()
    env: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    """Names of variables whose values are written nowhere but into a file of the job's folder."""
    binds: tuple[str, ...] = ()
    user_site: bool = False
    """Python reads the packages of the home folder, too."""
    preflight: bool = True
    fabric_gbit: int | None = None
    """Gbit/s that a node can send; the preflight warns of a fabric that is much slower."""
    min_free: str = ""
    """The space that the preflight wants in the job's folder, as in ``20G``; empty for its own least."""
    runtime: str = ""
    """The container runtime of ``--runtime``; empty for the default of the site or the host."""
    trainer: str = ""
    """The name of the bundled trainer, empty for a command of the person's own."""
    site: str = ""
    """The name of the site profile, empty where none was used."""
    unsure: bool = False
    """The text of the program does not show whether its ranks join."""
    project: str = ""
    """The archive of the user's project, which the job unpacks into its folder; empty if no project came."""

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def least_nodes(self) -> int:
        """The nodes without which it does not train."""
        return (self.min_nodes or 1) if self.elastic else self.nodes

    @property
    def goes_on(self) -> bool:
        """Whether it has itself started again where it stopped."""
        return self.requeue or self.chain > 0


class ImageCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What was known of an image's signatures when a job was submitted.

    ``good``: one by a trusted key covers every byte. ``unknown-key``: every byte is as it was signed, but
    the key is not here. ``no-gpg``: it has one, and there is no gpg. ``not-checked``: by ``--no-verify``.
    ``signers`` are fingerprints.
    """

    signature: Literal["good", "none", "unknown-key", "no-gpg", "not-checked"]
    signers: tuple[str, ...] = ()


class JobTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a job array: its number, and what became of it."""

    index: int
    state: JobState
    exit_code: int | None = None
    nodes: str = ""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was launched, from which image, with which plan, where, and what became of it.

    ``key`` is the name of its folder of records and unique on this machine; ``id`` is Slurm's number.
    ``forced`` says that a predicted failure was overridden; ``submitted`` is UTC in ISO 8601.
    """

    schema: str = "toolkit.job/1"
    key: str
    id: str
    place: str
    spec: JobSpec
    mode: Mode
    plan: Plan
    predicted: str
    image_digest: str
    submitted: str
    forced: bool = False
    image_check: ImageCheck | None = None
    """``None`` in records of before images were checked."""
    fix: LaunchFix | None = None
    """What ``--fix`` added to the launch."""
    state: JobState = "pending"
    exit_code: int | None = None
    host: str | None = None
    """What was given as ``--host`` or ``--cluster``, to come back to; ``None`` for this machine."""
    cluster: str | None = None
    ssh_config: str | None = None
    numbers: tuple[str, ...] = ()
    """Slurm's numbers of all that ran for this job, the first one first; ``id`` is the last of them."""
    restarts: int = 0
    """How often Slurm, or the job itself, started it again."""
    nodes: str = ""
    """Where it ran last, as Slurm writes lists of nodes."""
    started: str = ""
    ended: str = ""
    """When the last run began and ended: the cluster's own time, without a zone, as Slurm tells it."""
    tasks: tuple[JobTask, ...] = ()
    """Of a job array the tasks that are known of, by number."""
