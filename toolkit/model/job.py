"""A job to run on a cluster, and its record."""

from typing import Literal

import msgspec

from toolkit.model.fix import LaunchFix
from toolkit.model.prediction import Mode, Plan

JobState = Literal["pending", "running", "completed", "failed", "cancelled", "timeout", "unknown"]

FINAL_STATES: frozenset[JobState] = frozenset({"completed", "failed", "cancelled", "timeout"})


MOST_TASKS = 500
"""The most tasks of a job that toolkit tracks one by one; Slurm accepts arrays of thousands
(MaxArraySize)."""


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the user asks for it; ``command`` runs once a rank inside the image.

    Paths are the cluster's own. ``time``, ``begin``, ``dependency``, ``array``, ``mail_type``, ``constraint``
    are in Slurm's own form, ``cpus_per_rank`` a count of cores, ``memory`` the memory of a node and
    ``memory_per_cpu`` of a core, as in ``16G``, ``tmp`` the least local disk of a node. ``gpus_per_node`` of
    the type ``gpu`` are bound to ranks as ``gpu_bind`` says, cores as ``cpu_bind`` says (srun's words).
    ``workdir`` is the folder inside the container, ``output`` and ``error`` are relative to ``directory``.
    ``sbatch`` holds more options for ``#SBATCH`` lines. ``warning`` is how many seconds before the time limit
    the job writes a checkpoint; ``requeue`` lets a new job resume it after that, ``chain`` at most this many
    times. An ``elastic`` job starts on ``min_nodes`` (0 for one) to ``nodes``, and continues on the remaining
    nodes if one fails.
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
    tmp: str = ""
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
    switches: str = ""
    mail_type: str = ""
    mail_user: str = ""
    array: str = ""
    sweep: tuple[str, ...] = ()
    """The values of the tasks of an array, as ``lr=0.1,0.01``; empty if it is not a sweep."""
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
    """Names of variables whose values are only written to a file in the job's folder."""
    binds: tuple[str, ...] = ()
    user_site: bool = False
    """Python also reads the packages of the home folder."""
    preflight: bool = True
    fabric_gbit: int | None = None
    """Gbit/s that a node can send; the preflight warns about a fabric that is much slower."""
    min_free: str = ""
    """The free space that the preflight requires in the job's folder, as in ``20G``; empty for its
    default.
    """
    broadcast: str = ""
    """``on`` if the job copies its image to a disk of each node first."""
    env_image: str = ""
    """The file with the user's packages that is mounted over the image; empty without packages."""
    runtime: str = ""
    """The container runtime of ``--runtime``; empty for the default of the site or the host."""
    trainer: str = ""
    """The name of the bundled trainer, empty for the user's own command."""
    site: str = ""
    """The name of the site profile; empty without a profile."""
    unsure: bool = False
    """The text of the program does not show whether its ranks join."""
    project: str = ""
    """The archive of the user's project, which the job unpacks into its folder; empty without a project."""

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def least_nodes(self) -> int:
        """The smallest number of nodes on which the job trains."""
        return (self.min_nodes or 1) if self.elastic else self.nodes

    @property
    def may_resume(self) -> bool:
        """Whether the job resumes itself after a stop."""
        return self.requeue or self.chain > 0


class ImageCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking an image's signatures when a job was submitted.

    ``good``: a signature by a trusted key covers every byte. ``unknown-key``: every byte matches the
    signature, but this machine does not have the key. ``no-gpg``: the file has a signature, and gpg is not
    installed. ``not-checked``: by ``--no-verify``. ``signers`` are fingerprints.
    """

    signature: Literal["good", "none", "unknown-key", "no-gpg", "not-checked"]
    signers: tuple[str, ...] = ()


class JobTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a job array: its number, and its outcome."""

    index: int
    state: JobState
    exit_code: int | None = None
    nodes: str = ""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A launched job: its image, its plan, its place, and its outcome.

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
    env_digest: str = ""
    """Digest of the file of ``--env-image`` (``sha256:…``); empty without such a file."""
    image_check: ImageCheck | None = None
    """``None`` in records from before images were checked."""
    fix: LaunchFix | None = None
    """The words that ``--fix`` added to the launch."""
    state: JobState = "pending"
    exit_code: int | None = None
    host: str | None = None
    """The value of ``--host`` or ``--cluster``; ``None`` for this machine."""
    cluster: str | None = None
    ssh_config: str | None = None
    numbers: tuple[str, ...] = ()
    """Slurm's numbers of all runs of this job, in order; ``id`` is the last number."""
    restarts: int = 0
    """How many times Slurm, or the job itself, started the job again."""
    nodes: str = ""
    """The nodes of the job's last run, in Slurm's notation."""
    started: str = ""
    ended: str = ""
    """When the last run started and ended: the cluster's own time, without a zone, from Slurm."""
    tasks: tuple[JobTask, ...] = ()
    """The known tasks of a job array, by number."""
