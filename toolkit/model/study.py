"""A scaling study: its commands, its job sizes, and the result of each run."""

from typing import Any, Literal

import msgspec

Scaling = Literal["weak", "strong"]
"""``weak``: the batch of each rank stays the same. ``strong``: all ranks together divide one batch."""

PointState = Literal["planned", "submitted", "measured", "failed"]

STUDY_FIELDS = (
    "nodes", "ranks_per_node", "output", "error", "array", "sweep", "sweep_parallel", "dependency", "requeue",
    "chain", "warning", "elastic", "min_nodes",
)  # fmt: skip
"""Fields of a job that the study sets; users cannot set them."""


class Size(msgspec.Struct, frozen=True, order=True):
    """The size of a run: ``ranks`` is the total number of ranks, spread evenly over ``nodes``."""

    ranks: int
    nodes: int


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a study, which toolkit stores in ``study.json``.

    ``said`` contains the job fields that are the same for all runs. ``words`` lists the words after ``--`` on
    the command line: the command of each run, or the trainer's options. ``compare`` is a job field or, in
    capitals, an environment variable; the study runs each size with each value in ``values``. ``warm_up`` is
    the number of epochs or figures that the study ignores at the start of each run. ``pattern`` is a regular
    expression that finds figures (measured values) in a command's output; without ``pattern``, toolkit reads
    the figures from a trainer's metrics. ``epochs`` is the number of epochs of each run. ``batch`` is the
    batch size of one rank (weak scaling) or of all ranks (strong scaling). ``created`` is the time of
    creation, in UTC and in ISO 8601 format.
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
    """Value of ``compare`` → variables that toolkit sets, if a value sets several variables."""
    warm_up: int = 1
    epochs: int | None = None
    batch: int | None = None
    profile: bool = False
    """True if toolkit runs each size once more with Horovod's timeline. The study ignores the times of this
    additional run.
    """
    pattern: str = ""
    unit: str = "images"
    said: dict[str, Any] = {}
    words: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Names of secret variables that each run received; the study's file does not contain the values."""
    host: str | None = None
    cluster: str | None = None
    ssh_config: str | None = None
    source: str = ""
    """The source of the figures, if toolkit did not measure them."""


class EpochFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One epoch as the trainer reports it; ``images`` is the number of images of all ranks."""

    seconds: float
    images: int
    test_accuracy: float | None = None


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """The fractions of a step's time, from Horovod's timeline on rank 0; the sum of the fractions is 1.

    ``negotiate``: ranks wait until all ranks have a gradient. ``queue``: the gradient waits for earlier
    operations. ``copy``: Horovod copies into and out of the fusion buffer. ``reduce``: the allreduce itself.
    ``compute``: no communication is active.
    """

    negotiate: float
    queue: float
    copy: float
    reduce: float
    compute: float
    steps: int
    step_seconds: float
    last_ranks: dict[str, float] = {}
    """Rank → fraction of the reductions for which the rank was last; empty if the timeline does not show the
    last rank.
    """

    @property
    def communication(self) -> float:
        return 1.0 - self.compute


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run, without its warm-up.

    ``seconds`` are the times, in seconds, for a pass over the data, or for 1,000 units if only a rate is
    known. ``rates`` are units per second of all ranks together. ``resolution`` is the unit, in seconds, to
    which ``seconds`` are rounded. ``waiting`` is the fraction of an epoch in which a rank waits for its
    samples, if a trainer reports it. ``gpu`` is the median GPU utilization of the first node, from 0 to 1, if
    the job recorded it.
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
    """The job that measured a figure."""

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

    ``series`` is the value of the study's ``compare`` in this run; empty without ``compare``. ``number`` is
    the number of this repeat of the run, from 1. ``why`` is the reason for a failure.
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
