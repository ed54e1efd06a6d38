"""A job for a cluster, and the record of a launched job."""

from typing import Literal

import msgspec

from toolkit.model.fix import LaunchFix
from toolkit.model.prediction import Mode, Plan

JobState = Literal["pending", "running", "completed", "failed", "cancelled", "timeout", "unknown"]

FINAL_STATES: frozenset[JobState] = frozenset({"completed", "failed", "cancelled", "timeout"})


MOST_TASKS = 500
"""Maximum number of tasks of a job array that toolkit tracks individually. Slurm accepts arrays with
thousands of tasks (MaxArraySize).
"""


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the user requests it. Each rank runs ``command`` inside a container from ``image``.

    All paths are on the cluster. ``time``, ``begin``, ``dependency``, ``array``, ``mail_type`` and
    ``constraint`` have Slurm's syntax. ``cpus_per_rank`` is a number of cores. ``memory`` is the requested
    memory on each node, and ``memory_per_cpu`` the requested memory for each core, as in ``16G``. ``tmp`` is
    the minimum size of a node's local disk. ``gpus_per_node`` is a number of GPUs of the type ``gpu``.
    ``gpu_bind`` and ``cpu_bind`` are values of srun's options that bind ranks to GPUs and cores. ``workdir``
    is the working directory inside the container. ``output`` and ``error`` are paths of files, relative to
    the job's folder ``directory``. ``sbatch`` lists further options for ``#SBATCH`` lines. The job writes a
    checkpoint ``warning`` seconds before its time limit. With ``requeue``, the job returns to the queue if
    Slurm stops it, and then resumes the training from the checkpoint. ``chain`` is the maximum number of jobs
    that resume the training after this job. An ``elastic`` job starts on at least ``min_nodes`` and at
    most ``nodes`` nodes; if ``min_nodes`` is 0, the minimum is 1 node. If a node fails, the elastic job
    continues on its remaining nodes.
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
    """The options of a sweep with their values, such as ``lr=0.1,0.01``. Each task of the job array uses one
    combination of values. Empty if the job is not a sweep.
    """
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
    """Names of secret variables; toolkit writes their values only to a file in the job's folder."""
    binds: tuple[str, ...] = ()
    user_site: bool = False
    """True if Python also loads packages from the home folder."""
    preflight: bool = True
    fabric_gbit: int | None = None
    """Expected network speed of a node in Gbit/s. The preflight (the check at the start of a job) warns if
    the measured speed is much lower than this speed.
    """
    min_free: str = ""
    """Free space that the preflight requires in the job's folder, as in ``20G``. If empty, the preflight uses
    its default.
    """
    broadcast: str = ""
    """``on`` if the job copies the image to a local disk of each node before ranks start; otherwise ``off``,
    ``auto`` or empty.
    """
    env_image: str = ""
    """The file with additional Python packages of the user, which the runtime mounts over the image; empty if
    the job has no such file.
    """
    runtime: str = ""
    """The container runtime that ``--runtime`` names; empty for the default of the site or the host."""
    trainer: str = ""
    """The name of the bundled trainer; empty if the user gave a command."""
    site: str = ""
    """The name of the site profile; empty without a profile."""
    unsure: bool = False
    """True if the program's source code does not show whether the ranks communicate with each other."""
    project: str = ""
    """The archive of the user's project folder, which the job unpacks into the job's folder; empty without a
    project.
    """

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def least_nodes(self) -> int:
        """The minimum number of nodes on which the job runs."""
        return (self.min_nodes or 1) if self.elastic else self.nodes

    @property
    def may_resume(self) -> bool:
        """Whether the job resumes after a stop: the job returns to the queue, or submits another job."""
        return self.requeue or self.chain > 0


class ImageCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the signature check of a job's image; toolkit checks the image before it submits the job.

    ``good``: a signature by a trusted key covers every byte. ``none``: the image has no signature.
    ``unknown-key``: every byte matches a hash in the signature, but this machine does not have the key that
    made the signature. ``no-gpg``: the image has a signature, but gpg is not installed. ``not-checked``: the
    user gave ``--no-verify``, or the image is not on this machine.
    ``signers`` are the fingerprints of the keys that signed the image.
    """

    signature: Literal["good", "none", "unknown-key", "no-gpg", "not-checked"]
    signers: tuple[str, ...] = ()


class JobTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a job array: its index, its state, its exit status and its nodes."""

    index: int
    state: JobState
    exit_code: int | None = None
    nodes: str = ""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a launched job: its image, its launch plan, its cluster, and its outcome.

    ``key`` is the name of the folder with this record; no other record on this machine has the same key.
    ``id`` is Slurm's job id. ``place`` is the name of the cluster or host. ``predicted`` is the outcome that
    toolkit predicted. ``forced`` is true if the user launched the job with ``--force`` although toolkit
    predicted a failure. ``submitted`` is the time of the submission, in UTC and in ISO 8601 format.
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
    """Digest of the file that ``--env-image`` names (``sha256:…``); empty without such a file."""
    image_check: ImageCheck | None = None
    """The result of the signature check of the image; ``None`` in records of earlier releases of toolkit,
    which did not check signatures.
    """
    fix: LaunchFix | None = None
    """The changes to the launch from the fix file that ``--fix`` names; ``None`` without ``--fix``."""
    state: JobState = "pending"
    exit_code: int | None = None
    host: str | None = None
    """The host that toolkit reaches over SSH, as in ``--host``; ``None`` without such a host."""
    cluster: str | None = None
    """The name of the virtual cluster, as in ``--cluster``; ``None`` without a virtual cluster."""
    ssh_config: str | None = None
    numbers: tuple[str, ...] = ()
    """Slurm's job ids of all runs of this job, in order; ``id`` is the last job id."""
    restarts: int = 0
    """Number of restarts of the job by Slurm or by the job script."""
    nodes: str = ""
    """The nodes of the job's last run, in Slurm's notation."""
    started: str = ""
    ended: str = ""
    """The time at which the job's last run ended. ``started`` and ``ended`` are times that Slurm reports, in
    the cluster's local time, without a time zone.
    """
    tasks: tuple[JobTask, ...] = ()
    """The tasks of a job array that toolkit tracks, in the order of their indexes."""
