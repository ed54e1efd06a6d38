"""Analyse Horovod's timeline: the phases of a training step, and the ranks that are ready last.

Different tensors may be in different phases at the same time. At each moment, the phase of the training step
is the most advanced phase of any tensor. From most to least advanced, the phases are ``reduce``, ``copy``,
``queue`` and ``negotiate``. If no tensor is in one of these phases, the training step is in the phase
``compute``. A training step starts when the ranks negotiate the step's first gradient. toolkit ignores the
last step before an evaluation or a checkpoint, because its time includes the evaluation or the checkpoint.
"""

import math
import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from toolkit.model.study import Shares
from toolkit.study.fusion import Fusion
from toolkit.study.timeline_file import Event

REDUCE, COPY, QUEUE, NEGOTIATE, COMPUTE = range(5)
PHASES = ("reduce", "copy", "queue", "negotiate", "compute")

_PAUSE = 5.0
"""toolkit ignores a step that is longer than five times the median step, because such a step contains other
work, for example an evaluation.
"""

_CYCLES = 100_000
"""Maximum number of Horovod cycles whose lengths toolkit records, counted from the start of the timeline."""

_BYTES = {"float64": 8, "int64": 8, "float16": 2, "bfloat16": 2, "uint8": 1, "int8": 1, "bool": 1}
_REDUCING = re.compile(r"(MPI|NCCL|GLOO|DDL|MLSL|CCL|ADASUM)_.*(REDUCE|SCATTER|GATHER|ADASUM)|.*_ADASUM")


@dataclass(slots=True)
class Tensor:
    """A tensor: its name, its size in bytes, its total negotiation time in microseconds, and the number of
    its allreduces.
    """

    name: str = ""
    size: int = 0
    negotiation_micros: float = 0.0
    allreduces: int = 0


@dataclass(slots=True)
class Tally:
    """The counts and sums of the events in a timeline. Times are in microseconds."""

    events: int = 0
    tensors: dict[int, Tensor] = field(default_factory=dict)
    last_counts: dict[str, int] = field(default_factory=dict)
    """For each rank, how often it was the last rank to have a tensor ready."""
    delays: dict[str, float] = field(default_factory=dict)
    """For each rank, the sum of its delays in microseconds. In each negotiation, the delay of a rank is the
    time from the moment when the first rank is ready until this rank is ready.
    """
    negotiations: int = 0
    """The number of negotiations for which the timeline shows when each rank was ready. If Horovod's cache
    already has a tensor, the ranks send no messages about this tensor, and the timeline shows no times.
    """
    steps: list["array[float]"] = field(default_factory=lambda: [array("d") for _ in PHASES])
    ready: "array[float]" = field(default_factory=lambda: array("d"))
    """For each training step, the time from the start of the first gradient's negotiation to the start of the
    last gradient's negotiation.
    """
    cycles: "array[float]" = field(default_factory=lambda: array("d"))
    """The lengths of at most ``_CYCLES`` Horovod cycles, from the start of the timeline. A cycle is the time
    between two checks for ready gradients. The array is empty if the timeline does not mark cycles.
    """
    fusion: Fusion = field(default_factory=Fusion)

    @property
    def lengths(self) -> list[float]:
        return [sum(parts) for parts in zip(*self.steps, strict=True)]


class Reader:
    """Reads the events of a timeline in order, and keeps only counts and sums."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._open: dict[int, list[tuple[int, str, float]]] = {}
        self._active = [0, 0, 0, 0]
        self._now = 0.0
        self._step: set[int] = set()
        self._parts: list[float] = [0.0] * 5
        self._first = self._latest = 0.0
        self._ticks: dict[int, dict[str, float]] = {}
        self._kinds: dict[str, int] = {}
        self._marked = 0.0

    def take(self, trace: Iterable[Event]) -> None:
        tally = self.tally
        for event in trace:
            tally.events += 1
            match event.ph:
                case "B":
                    self._begin(event)
                case "E":
                    self._end(event)
                case "X":
                    if event.pid in self._ticks:
                        self._ticks[event.pid][event.name] = event.ts
                case "i":
                    if event.name == "CYCLE_START":
                        self._cycle(event.ts)
                case "M":
                    if event.name == "process_name" and event.args:
                        self._tensor(event.pid).name = event.args.name
                case _:
                    pass

    def _cycle(self, ts: float) -> None:
        if self._marked and len(self.tally.cycles) < _CYCLES:
            self.tally.cycles.append(ts - self._marked)
        self._marked = ts

    def _begin(self, event: Event) -> None:
        kind = self._kind(event.name)
        ts, pid = event.ts, event.pid
        if event.name == "NEGOTIATE_ALLREDUCE":
            if pid in self._step or not self._step:
                self._new_step(ts)
            self._pass(ts)
            self._step.add(pid)
            self._latest = ts
            self._ticks[pid] = {}
        else:
            self._pass(ts)
        if kind == REDUCE:
            self.tally.fusion.begin(pid, ts)
        self._open.setdefault(pid, []).append((kind, event.name, ts))
        if kind < COMPUTE:
            self._active[kind] += 1

    def _end(self, event: Event) -> None:
        stack = self._open.get(event.pid)
        if not stack:
            return
        self._pass(event.ts)
        kind, name, begun = stack.pop()
        if kind < COMPUTE:
            self._active[kind] -= 1
        if kind == REDUCE:
            self.tally.fusion.end(event.ts)
        elif kind == NEGOTIATE and name == "NEGOTIATE_ALLREDUCE":
            self._tensor(event.pid).negotiation_micros += event.ts - begun
            self._ranks(self._ticks.pop(event.pid, {}))
        elif name == "ALLREDUCE":
            self._count_reduction(event)

    def _count_reduction(self, event: Event) -> None:
        tensor = self._tensor(event.pid)
        tensor.allreduces += 1
        if event.args and not tensor.size:
            tensor.size = _size(event.args.dtype, event.args.shape)
        self.tally.fusion.size(event.pid, tensor.size)

    def _ranks(self, ticks: dict[str, float]) -> None:
        if len(ticks) < 2:
            return
        tally, first = self.tally, min(ticks.values())
        tally.negotiations += 1
        latest = max(ticks, key=lambda rank: ticks[rank])
        tally.last_counts[latest] = tally.last_counts.get(latest, 0) + 1
        for rank, ts in ticks.items():
            tally.delays[rank] = tally.delays.get(rank, 0.0) + ts - first

    def _pass(self, ts: float) -> None:
        """Add the time between the previous event and the time ``ts`` to the current phase."""
        passed = ts - self._now
        if passed <= 0:  # threads may write events out of order
            return
        a = self._active
        kind = REDUCE if a[0] else COPY if a[1] else QUEUE if a[2] else NEGOTIATE if a[3] else COMPUTE
        self._parts[kind] += passed
        self._now = ts

    def _new_step(self, ts: float) -> None:
        self._pass(ts)
        if self._step:
            for column, part in zip(self.tally.steps, self._parts, strict=True):
                column.append(part)
            self.tally.ready.append(self._latest - self._first)
        self._step.clear()
        self._parts = [0.0] * 5
        self._first = ts

    def _kind(self, name: str) -> int:
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = _kind(name)
        return kind

    def _tensor(self, pid: int) -> Tensor:
        return self.tally.tensors.setdefault(pid, Tensor())


def tally_events(lists: Iterable[list[Event]]) -> Tally:
    """Return the counts and sums of all events of a timeline."""
    reader = Reader()
    for trace in lists:
        reader.take(trace)
    return reader.tally


def shares(tally: Tally) -> Shares | None:
    """Return the fraction of a training step's time that each phase takes, or ``None`` for fewer than three
    steps.
    """
    lengths = tally.lengths
    if len(lengths) < 3:
        return None
    limit = _PAUSE * median(lengths)
    counted = [i for i, length in enumerate(lengths) if length <= limit]
    total = sum(lengths[i] for i in counted) or 1.0
    part = {
        name: sum(column[i] for i in counted) / total
        for name, column in zip(PHASES, tally.steps, strict=True)
    }
    step_count = sum(tally.last_counts.values())
    return Shares(
        **part,
        steps=len(counted),
        step_seconds=median(lengths[i] for i in counted) / 1e6,
        last_ranks={
            rank: count / step_count for rank, count in sorted(tally.last_counts.items(), key=lambda x: -x[1])
        },
    )


def _kind(name: str) -> int:
    if name.startswith("NEGOTIATE_"):
        return NEGOTIATE
    if name.startswith("MEMCPY_"):
        return COPY
    if name in {"QUEUE", "WAIT_FOR_DATA", "WAIT_FOR_OTHER_TENSOR_DATA"} or name.startswith("INIT_"):
        return QUEUE
    return REDUCE if _REDUCING.fullmatch(name) else COMPUTE


def _size(dtype: str, shape: str) -> int:
    return math.prod(int(n) for n in re.findall(r"\d+", shape)) * _BYTES.get(dtype, 4)
