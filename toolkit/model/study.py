"""A scaling study: what runs at which sizes, and the result of each run."""

from typing import Any, Literal

import msgspec

Scaling = Literal["weak", "strong"]
"""``weak``: every rank keeps its batch. ``strong``: all ranks divide one batch."""

PointState = Literal["planned", "submitted", "measured", "failed"]

STUDY_FIELDS = (
    "nodes", "ranks_per_node", "output", "error", "array", "sweep", "sweep_parallel", "dependency", "requeue",
    "chain", "warning", "elastic", "min_nodes",
)  # fmt: skip
"""Fields of a job that a study sets itself."""


class Size(msgspec.Struct, frozen=True, order=True):
    """The size of a run: ``ranks`` in all, spread evenly over ``nodes``."""

    ranks: int
    nodes: int


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a study; its file is ``study.json``.

    ``said`` are fields of a job and ``words`` the words after ``--``, the same for all runs. ``compare`` is a
    field of the job, or a variable in capitals, that takes each of ``values`` in turn. ``warm_up`` epochs or
    figures of each run are left out. ``pattern`` finds figures in the output of a command; without
    ``pattern`` they are read from a trainer's metrics. ``epochs`` is for each rank, ``batch`` for one rank
    (weak) or for all (strong). ``created`` is UTC in ISO 8601.
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
    """Variables for each of ``values``, if a value sets several variables at once."""
    warm_up: int = 1
    epochs: int | None = None
    batch: int | None = None
    profile: bool = False
    """True if one more run of each size writes Horovod's timeline. The times of this run are not counted."""
    pattern: str = ""
    unit: str = "images"
    said: dict[str, Any] = {}
    words: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Names of variables that each run received; their values are not written here."""
    host: str | None = None
    cluster: str | None = None
    ssh_config: str | None = None
    source: str = ""
    """The source of the figures, if they were not measured by toolkit."""


class EpochFigure(msgspec.Struct, frozen=True, kw_only=True):
    """An epoch as the trainer reported it; ``images`` counts all ranks."""

    seconds: float
    images: int
    test_accuracy: float | None = None


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of 1 into which the time of a step divides, by Horovod's timeline on rank 0.

    ``negotiate``: ranks wait until all have a gradient ready. ``queue``: the gradient waits for its turn.
    ``copy``: copying into and out of the fusion buffer. ``reduce``: the allreduce itself. ``compute``: no
    communication is active.
    """

    negotiate: float
    queue: float
    copy: float
    reduce: float
    compute: float
    steps: int
    step_seconds: float
    last_ranks: dict[str, float] = {}
    """How often each rank was last, as parts of 1; empty if the timeline does not contain it."""

    @property
    def communication(self) -> float:
        return 1.0 - self.compute


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run, without its warm-up.

    ``seconds`` are the times of one pass over the data, or of 1,000 units if only a rate is known; ``rates``
    are units per second of all ranks. ``resolution`` is the precision of the seconds. ``waiting`` is the part
    of 1 of an epoch in which a rank waits for its samples, if a trainer reports it. ``gpu`` is the median use
    of the first node's GPUs, a part of 1, if the job recorded it.
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
    """The job that a figure is from."""

    job: str
    job_id: str
    place: str
    nodes: str
    mode: str
    launcher: str
    image: str
    image_digest: str


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a study; ``number`` counts repeats from 1, ``why`` is the reason of a failure."""

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
        """Return its title: ``horovod, 4 ranks on 2 nodes, run 1``."""
        ranks = f"{self.ranks} rank{'s' if self.ranks > 1 else ''}"
        nodes = f"{self.nodes} node{'s' if self.nodes > 1 else ''}"
        run = "timeline" if self.profile else f"run {self.number}"
        return ", ".join(filter(None, (self.series, f"{ranks} on {nodes}", run)))
