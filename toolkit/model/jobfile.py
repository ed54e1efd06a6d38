"""The fields of a job: a table that describes each field, and types for job files and for Python calls.

To add a field, add a row to :data:`FIELDS`, and a line each to :class:`JobFile`, :class:`JobFields` and
:class:`toolkit.model.job.JobSpec`.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypedDict, get_args

import msgspec

from toolkit.model.prediction import MODES, PROGRAMS, Mode, ProgramName
from toolkit.model.runtime import NAMES

Strategy = Literal[
    "single", "horovod", "mirrored", "multiworker", "mpi-aggregate", "hybrid", "ps", "ddp", "fsdp", "jax"
]
"""The strategy with which a trainer divides its work among ranks."""

Broadcast = Literal["auto", "on", "off"]
"""Whether a job copies its image to a local disk of each node before ranks start. With ``auto``, only jobs
on more than 4 nodes copy their image.
"""

_MOST_OF_NODE = 65_533
"""Maximum number of ranks, cores or GPUs on a node. Slurm stores these numbers in 16 bits, and the two
highest values have special meanings (NO_VAL16, INFINITE16).
"""

_MOST_NODES = 65536
"""Maximum number of nodes of a job, equal to :data:`toolkit.nodelist.MOST_NODES`."""


class ValueForm(NamedTuple):
    """The syntax of a field's text: ``pattern`` is a regular expression for valid texts, and ``rule``
    explains the syntax to the user.
    """

    pattern: str
    rule: str


class JobField(NamedTuple):
    """One field of a job.

    ``help`` describes the field's command-line option. ``option`` is the name of this option if it differs
    from the field's name. Users may repeat the option of a ``many`` field. The option of a ``flag`` field has
    no value, and the field also has an option ``--no-NAME``. ``bounds`` are the minimum and maximum of a
    number. ``form`` is the syntax of a text, or the name of a syntax that several fields share
    (:mod:`toolkit.launch.request.checks`). ``sbatch`` names the option of the command ``sbatch`` to which
    toolkit passes the value unchanged. A ``queue`` field has no effect without a scheduler. ``pbs`` is false
    if PBS has no option for the field. A ``free`` field does not affect the times that ``toolkit
    scale`` measures, so the field may change when you resume a study. ``group`` is the option's group in
    ``--help``; if ``group`` is empty, :mod:`toolkit.cli.options.groups` defines the group.
    """

    name: str
    help: str
    option: str = ""
    metavar: str = ""
    many: bool = False
    flag: bool = False
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    form: str | ValueForm = ""
    sbatch: str = ""
    queue: bool = False
    pbs: bool = True
    free: bool = False
    group: str = ""

    @property
    def option_name(self) -> str:
        """The command-line option that sets the field, such as ``--ranks-per-node``."""
        return self.option or f"--{self.name.replace('_', '-')}"


FIELDS: tuple[JobField, ...] = (
    JobField("image", "SIF file, recipe name, or cluster:NAME  [default: tf2.21-cpu]"),
    JobField("env_image", "File of additional Python packages that toolkit env created", metavar="FILE"),
    JobField("runtime", "Container runtime, if the host has several", choices=NAMES),
    JobField("site", "Use modules, limits and launch modes of a site profile", metavar="NAME"),
    JobField("nodes", "Number of nodes  [default: 1]", bounds=(1, _MOST_NODES)),
    JobField("ranks_per_node", "Ranks on each node  [default: 1]", bounds=(1, _MOST_OF_NODE)),
    JobField("cpus_per_rank", "Cores for each rank", bounds=(1, _MOST_OF_NODE)),
    JobField("gpus_per_node", "GPUs on each node", bounds=(0, _MOST_OF_NODE), queue=True),
    JobField("gpu", "GPU type, such as v100", metavar="TYPE", form="gpu", queue=True),
    JobField("gpu_bind", "GPUs that each rank sees: closest, single:1, …",
             metavar="HOW", form="gpu_bind", queue=True, pbs=False),
    JobField("cpu_bind", "Bind each rank to cores, sockets, …; none: do not bind",
             metavar="HOW", form="cpu_bind", queue=True, pbs=False),
    JobField("memory", "Memory of each node, such as 16G; 0 for all memory",
             metavar="SIZE", form="memory", sbatch="mem", queue=True),
    JobField("memory_per_cpu", "Memory for each core, instead of --memory",
             metavar="SIZE", form="memory", sbatch="mem-per-cpu", queue=True, pbs=False),
    JobField("tmp", "Minimum size of the local disk of each node, such as 200G",
             metavar="SIZE", form="memory", sbatch="tmp", queue=True, pbs=False, group="Resources"),
    JobField("time", "Time limit in the format of sbatch  [default: 01:00:00]",
             form="time", sbatch="time", queue=True, free=True),
    JobField("partition", "Slurm partition  [default: with a site profile, a partition that can run the job]",
             form="names", sbatch="partition", queue=True),
    JobField("account", "Slurm account", form="name", sbatch="account", queue=True, free=True),
    JobField("wckey", "Slurm WCKey (workload characterization key) of the job",
             form="name", sbatch="wckey", queue=True, pbs=False, free=True),
    JobField("qos", "Quality of service", form="name", sbatch="qos", queue=True, pbs=False, free=True),
    JobField("constraint", "Node features that the job needs",
             metavar="FEATURES", form="constraint", sbatch="constraint", queue=True),
    JobField("reservation", "Reservation to run in",
             metavar="NAME", form="names", sbatch="reservation", queue=True, pbs=False, free=True),
    JobField("nodelist", "Nodes that the job must use",
             metavar="NODES", form="nodes", sbatch="nodelist", queue=True, pbs=False),
    JobField("exclude", "Nodes that the job must not use",
             metavar="NODES", form="nodes", sbatch="exclude", queue=True, pbs=False),
    JobField("licenses", "Licences that the job needs",
             metavar="NAME[:N]", form="licenses", sbatch="licenses", queue=True, pbs=False),
    JobField("switches",
             "Use at most N leaf switches, and wait up to TIME for such nodes: 1@02:00:00",
             metavar="N[@TIME]", sbatch="switches", queue=True, pbs=False, group="Resources",
             form=ValueForm(r"[1-9]\d{0,4}(@(\d+-\d{1,2}(:\d{1,2}){0,2}|\d{1,6}(:\d{1,2}){0,2}))?",
                            "write the number of switches, or this number and the longest wait, "
                            "such as 1 or 1@02:00:00")),
    JobField("exclusive", "Do not share the nodes with other jobs", flag=True, queue=True),
    JobField("sweep", "Run once for each value of an option, such as lr=0.1,0.01",
             metavar="NAME=VALUES", many=True, queue=True, pbs=False),
    JobField("sweep_parallel", "Maximum number of tasks of a sweep that run at once",
             metavar="N", bounds=(1, 500), queue=True, free=True),
    JobField("array", "Submit an array job, such as 0-7",
             metavar="RANGE", form="array", sbatch="array", queue=True, pbs=False),
    JobField("dependency", "Wait for other jobs, such as afterok:123",
             metavar="TYPE:JOB", form="dependency", sbatch="dependency", queue=True),
    JobField("begin", "Earliest start, such as now+2hours",
             metavar="TIME", form="begin", sbatch="begin", queue=True, pbs=False, free=True),
    JobField("mail_type", "Send mail: END, FAIL, ALL, …",
             metavar="WHEN", form="mail_type", sbatch="mail-type", queue=True, pbs=False, free=True),
    JobField("mail_user", "Address for mail about the job",
             metavar="ADDRESS", form="mail_user", sbatch="mail-user", queue=True, free=True),
    JobField("requeue", "Requeue and resume the job if Slurm stops it", flag=True, queue=True, pbs=False),
    JobField("chain", "Resume the job in up to N further jobs",
             metavar="N", bounds=(0, 10_000), queue=True, pbs=False),
    JobField("elastic", "Continue on the other nodes if a node fails", flag=True, queue=True, pbs=False),
    JobField("min_nodes", "Minimum number of nodes for --elastic  [default: 1]",
             metavar="N", bounds=(0, _MOST_NODES), queue=True),
    JobField("warning", "Ask the program to stop this many seconds before the time limit",
             metavar="S", bounds=(0, 65_535), queue=True, pbs=False),
    JobField("output", "Output file, in the folder of the job", metavar="FILE", form="file"),
    JobField("error", "Separate file for standard error",
             metavar="FILE", form="file", queue=True),
    JobField("workdir", "Working directory inside the container", metavar="DIR", form="folder"),
    JobField("modules", "Environment module to load in the job",
             option="--module", metavar="NAME", many=True, queue=True),
    JobField("sbatch", "Add an #SBATCH line, as in --sbatch=--hold", metavar="OPTION", many=True, queue=True),
    JobField("mode", "Launch mode to use instead of the best predicted mode", choices=MODES),
    JobField("program", "How ranks find each other", choices=PROGRAMS),
    JobField("strategy", "How a trainer divides its work among ranks", choices=get_args(Strategy)),
    JobField("broadcast",
             "Copy the image to a disk of each node before ranks start  [default: auto (more than 4 nodes)]",
             choices=get_args(Broadcast), queue=True, pbs=False),
    JobField("data", "Folder of the data set on this machine, or cluster:NAME", metavar="DIR"),
    JobField("directory", "Folder on the cluster for images, data and runs", metavar="DIR"),
    JobField("name", "Job name  [default: the trainer's name]", form="name"),
    JobField("env", "Set a variable; --env NAME passes the value from your shell",
             metavar="NAME[=VALUE]", many=True),
    JobField("env_file", "Read secret variables from a file of NAME=VALUE lines", metavar="FILE", free=True),
    JobField("binds", "Mount a folder in the container",
             option="--bind", metavar="SRC[:DST[:ro]]", many=True),
    JobField("user_site", "Let Python load packages from ~/.local", flag=True),
    JobField("preflight", "Check the world size before the program starts", flag=True),
    JobField("fabric_gbit", "Network speed of a node in Gbit/s that the preflight check expects",
             metavar="G", bounds=(1, 1_000_000)),
    JobField("min_free", "Free space in the job's folder that the preflight check requires",
             metavar="SIZE", form="space"),
)  # fmt: skip
"""The fields of a job, in the order of the ``#SBATCH`` lines in a job script."""


class JobFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job file as the user writes it; fields that the user does not give are ``None``.

    A job file names a bundled ``trainer`` and its ``arguments``, or the user's ``command``. ``image`` is a
    SIF file on this machine, the name of a recipe, or ``cluster:NAME`` for an image on the cluster.
    ``env_image`` is a file that ``toolkit env`` created. ``runtime`` is the container runtime that starts the
    image. ``data`` is a folder on this machine, or ``cluster:NAME`` for a folder on the cluster.
    ``directory`` is the folder on the cluster for images, data and runs. ``site`` is the name of a site
    profile. ``env_file`` is a file on this machine with secret variables. After toolkit has read
    this file, ``env`` also contains the file's variables, as texts that toolkit never prints
    (:class:`toolkit.model.hidden.Hidden`). :data:`FIELDS` describes all other fields.
    """

    trainer: str | None = None
    arguments: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    image: str | None = None
    env_image: str | None = None
    runtime: str | None = None
    site: str | None = None
    mode: Mode | None = None
    program: ProgramName | None = None
    strategy: Strategy | None = None
    broadcast: Broadcast | None = None
    data: str | None = None
    directory: str | None = None
    name: str | None = None
    nodes: int | None = None
    ranks_per_node: int | None = None
    cpus_per_rank: int | None = None
    gpus_per_node: int | None = None
    gpu: str | None = None
    gpu_bind: str | None = None
    cpu_bind: str | None = None
    memory: str | None = None
    memory_per_cpu: str | None = None
    tmp: str | None = None
    time: str | None = None
    partition: str | None = None
    account: str | None = None
    wckey: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    nodelist: str | None = None
    exclude: str | None = None
    licenses: str | None = None
    switches: str | None = None
    mail_type: str | None = None
    mail_user: str | None = None
    array: str | None = None
    sweep: tuple[str, ...] | None = None
    sweep_parallel: int | None = None
    dependency: str | None = None
    begin: str | None = None
    exclusive: bool | None = None
    requeue: bool | None = None
    warning: int | None = None
    chain: int | None = None
    elastic: bool | None = None
    min_nodes: int | None = None
    output: str | None = None
    error: str | None = None
    workdir: str | None = None
    modules: tuple[str, ...] | None = None
    sbatch: tuple[str, ...] | None = None
    env: dict[str, str] | None = None
    env_file: str | None = None
    binds: tuple[str, ...] | None = None
    preflight: bool | None = None
    user_site: bool | None = None
    fabric_gbit: int | None = None
    min_free: str | None = None

    def given_values(self) -> dict[str, object]:
        """Return a dictionary of the fields that are not ``None``, in the order of the struct."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not None}


class JobFields(TypedDict, total=False):
    """The fields of :class:`toolkit.model.jobfile.JobFile` except ``trainer``, ``arguments`` and ``command``;
    all fields are optional.
    """

    image: str | os.PathLike[str]
    env_image: str | os.PathLike[str]
    runtime: str
    site: str
    mode: Mode
    program: ProgramName
    strategy: Strategy
    broadcast: Broadcast
    data: str | os.PathLike[str]
    directory: str
    name: str
    nodes: int
    ranks_per_node: int
    cpus_per_rank: int
    gpus_per_node: int
    gpu: str
    gpu_bind: str
    cpu_bind: str
    memory: str
    memory_per_cpu: str
    tmp: str
    time: str
    partition: str
    account: str
    wckey: str
    qos: str
    constraint: str
    reservation: str
    nodelist: str
    exclude: str
    licenses: str
    switches: str
    mail_type: str
    mail_user: str
    array: str
    sweep: Sequence[str]
    sweep_parallel: int
    dependency: str
    begin: str
    exclusive: bool
    user_site: bool
    requeue: bool
    warning: int
    chain: int
    elastic: bool
    min_nodes: int
    output: str
    error: str
    workdir: str
    modules: Sequence[str]
    sbatch: Sequence[str]
    env: Mapping[str, str]
    env_file: str | os.PathLike[str]
    binds: Sequence[str]
    preflight: bool
    fabric_gbit: int
    min_free: str


class LaunchOptions(JobFields, total=False):
    """The keyword arguments of ``toolkit.app.launch`` and ``toolkit.app.script``; all are optional.

    ``arguments`` are the trainer's arguments. ``host`` is a machine that toolkit reaches over SSH;
    ``cluster`` is a virtual cluster. Without ``host`` and ``cluster``, the job runs on this machine or, if
    this machine has no Slurm, on the host of the site profile. ``job`` is a job file in YAML. ``from_job`` is
    the key of an earlier job; toolkit launches this job again with the same image and launch mode. ``local``
    runs the job on this machine without Slurm, and waits until the job ends. ``fix`` is a file that ``toolkit
    doctor --fix`` wrote. With ``force``, toolkit launches the job although it predicts a failure.
    ``verify_key`` is a file of public keys; toolkit refuses an image without a signature by one of these
    keys. ``no_verify`` skips the signature check. With ``explain``, comments in the script name the source of
    each value. By default, toolkit refuses a program that does not connect its ranks. ``copies`` allows such
    a program, and each rank then runs an independent copy. ``project`` is the folder that toolkit copies to
    another machine, by default the folder of the script. With ``sync=False``, toolkit does not copy the
    project.
    """

    arguments: Sequence[str]
    host: str | None
    cluster: str | None
    ssh_config: str | os.PathLike[str] | None
    job: str | os.PathLike[str] | None
    from_job: str | None
    local: bool
    fix: str | os.PathLike[str] | None
    force: bool
    verify_key: str | os.PathLike[str] | None
    no_verify: bool
    explain: bool
    copies: bool
    sync: bool
    project: str | os.PathLike[str] | None
