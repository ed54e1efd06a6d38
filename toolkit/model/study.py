"""A scaling study: its commands, its job sizes, and the result of each run."""

from typing import Any, Literal

import msgspec

Scaling = Literal["weak", "strong"]
"""``weak``: the batch size of each rank is the same in all runs. ``strong``: the total batch size of all
ranks is the same in all runs.
"""

PointState = Literal["planned", "submitted", "measured", "failed"]

STUDY_FIELDS = (
    "nodes", "ranks_per_node", "output", "error", "array", "sweep", "sweep_parallel", "dependency", "requeue",
    "chain", "warning", "elastic", "min_nodes",
)  # fmt: skip
"""Fields of a job that users cannot set in a study, because toolkit sets these fields in each run."""


class Size(msgspec.Struct, frozen=True, order=True):
    """The size of a run: ``ranks`` is the total number of ranks, spread evenly over ``nodes``."""

    ranks: int
    nodes: int


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a study, which toolkit stores in ``study.json``.

    ``said`` maps the names of job fields to the values that the user gave for all runs. ``words`` lists the
    words after ``--`` on the command line: the command of each run, or the trainer's options. ``compare`` is
    the name of a job field or, in capitals, of an environment variable. The study runs each size with each
    value in ``values``. ``warm_up`` is the number of epochs, or of measured values, that the study ignores at
    the start of each run. ``pattern`` is a regular expression that finds measured values in a command's
    output; without ``pattern``, toolkit reads the measured values from a trainer's metrics. ``epochs`` is the
    number of epochs of each run. ``batch`` is the batch size of one rank (weak scaling) or of all ranks
    (strong scaling). ``created`` is the time of creation, in UTC and in ISO 8601 format.
    """

    schema: str = "toolkit.study/1"
    name: str
    created: str = ""
    scaling: Scaling = "weak"
    sizes: tuple[Size, ...]
    repeats: int = 1
    compare: str = ""
    values: tuple[str, ...] = ()
    settings: dict[str, dict[str, str]] = {}
    """Entry of ``values`` → the environment variables that toolkit sets in the runs with this entry."""
    warm_up: int = 1
    epochs: int | None = None
    batch: int | None = None
    profile: bool = False
    """True if toolkit makes one extra run of each size to record Horovod's timeline. The study ignores the
    times of this extra run.
    """
    pattern: str = ""
    unit: str = "images"
    said: dict[str, Any] = {}
    words: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Names of secret variables that each run receives; ``study.json`` does not contain the variables'
    values.
    """
    host: str | None = None
    cluster: str | None = None
    ssh_config: str | None = None
    source: str = ""
    """The source of the measured values; empty if toolkit measured the values."""


class EpochFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One epoch, as the trainer reports it; ``images`` is the number of images that all ranks used."""

    seconds: float
    images: int
    test_accuracy: float | None = None


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """The fractions of a step's time, from Horovod's timeline on rank 0; the sum of the fractions is 1.

    ``negotiate``: ranks that have computed a gradient wait for ranks that have not. ``queue``: the gradient
    waits for earlier operations. ``copy``: Horovod copies gradients into and out of its fusion buffer.
    ``reduce``: the allreduce itself. ``compute``: no communication is active.
    """

    negotiate: float
    queue: float
    copy: float
    reduce: float
    compute: float
    steps: int
    step_seconds: float
    last_ranks: dict[str, float] = {}
    """Rank → fraction of the reductions in which this rank was the last to be ready; empty if the timeline
    does not show which rank was last.
    """

    @property
    def communication(self) -> float:
        return 1.0 - self.compute


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The measured values of one run, without the warm-up.

    ``seconds`` are the durations of the epochs, in seconds. If only a rate is known, they are the durations
    of 1,000 units (``unit`` of :class:`Study`, such as images). ``rates`` are units per second, summed over
    all ranks.
    ``resolution`` is the precision, in seconds, to which ``seconds`` are rounded. ``waiting`` is the fraction
    of an epoch in which a rank waits for its samples; ``None`` if the trainer does not report this time.
    ``gpu`` is the median GPU utilization of the first node, from 0 to 1; ``None`` if the job did not record
    the utilization.
    """

    seconds: tuple[float, ...]
    rates: tuple[float, ...] = ()
    epochs: tuple[EpochFigure, ...] = ()
    samples: int | None = None
    global_batch: int | None = None
    parameters: int | None = None
    threads: int | None = None
    start_seconds: float = 0.0
    versions: dict[str, str] = {}
    resolution: float = 0.0
    waiting: float | None = None
    gpu: float | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The job of a run. ``place`` is the machine on which toolkit submitted the job."""

    job: str
    job_id: str
    place: str
    nodes: str
    mode: str
    launcher: str
    image: str
    image_digest: str


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a study.

    ``series`` is this run's value of the field that the study compares; it is empty if the study compares
    nothing. ``number`` is the number of this repeat, from 1. ``why`` says why the run failed.
    """

    schema: str = "toolkit.point/1"
    series: str = ""
    ranks: int
    nodes: int
    number: int = 1
    profile: bool = False
    state: PointState = "planned"
    tries: int = 0
    job: str | None = None
    why: str = ""
    figures: Figures | None = None
    shares: Shares | None = None
    origin: Origin | None = None

    @property
    def size(self) -> Size:
        return Size(self.ranks, self.nodes)

    @property
    def title(self) -> str:
        """Return the run's title, such as ``horovod, 4 ranks on 2 nodes, run 1``."""
        ranks = f"{self.ranks} rank{'s' if self.ranks > 1 else ''}"
        nodes = f"{self.nodes} node{'s' if self.nodes > 1 else ''}"
        run = "timeline" if self.profile else f"run {self.number}"
        return ", ".join(filter(None, (self.series, f"{ranks} on {nodes}", run)))
