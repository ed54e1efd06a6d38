"""Suggest Horovod's fusion threshold and cycle time from a timeline, with reasons (pure functions).

The fusion threshold is the largest size of a fused allreduce. The cycle time is the time between two checks
for ready gradients.

The gradients of a training step have ``B`` bytes in total, and become ready one after another within the time
``R``. If Horovod reduces the gradients in ``k`` groups, each reduction takes the time ``a + b B/k``: a fixed
time ``a``, and a time ``b`` for each byte. Horovod reduces the first groups while the framework computes
later gradients. When the last gradient is ready, the training step must wait for the reductions that have not
finished. toolkit measures the fixed time and the time per byte, and suggests the number of groups with the
shortest wait. The suggested fusion threshold is the size of one group, rounded up to a whole MiB. The
suggested cycle time is the time in which the gradients of one group become ready. Horovod's default fusion
threshold is 128 MiB, and its default cycle time is 1 ms.
"""

import math
from dataclasses import dataclass, replace
from statistics import median

from toolkit.study.timeline import Tally
from toolkit.units import format_size

_MOST_GROUPS = 32
_LEAST_CYCLE, _MOST_CYCLE = 0.1, 25.0
"""The smallest and the largest cycle time that toolkit suggests, in milliseconds. Horovod works well with a
cycle time of 0.1 ms. A long cycle time delays small gradients.
"""
_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Suggested settings of Horovod, with the measured values that lead to them.

    Sizes are in bytes, and times are in milliseconds. ``rate`` is the rate of reductions in bytes per second.

    ``threshold`` is the suggested fusion threshold, and ``cycle`` is the suggested cycle time. ``now`` is the
    measured number of reductions per training step, and ``groups`` is the suggested number. ``gradient`` is
    the total size of a step's gradients, and ``ready`` is the time within which they become ready. ``start``
    is the fixed time of a reduction, and ``cycle_now`` is the measured cycle time; ``None`` means unknown.
    """

    threshold: int
    cycle: float
    groups: int
    now: float
    gradient: int
    ready: float
    start: float | None
    rate: float
    cycle_now: float | None
    reasons: tuple[str, ...]

    @property
    def variables(self) -> tuple[str, str]:
        return (f"HOROVOD_FUSION_THRESHOLD={self.threshold}", f"HOROVOD_CYCLE_TIME={self.cycle:g}")


def advise(tally: Tally) -> Advice | None:
    """Return suggested settings of Horovod. Return ``None`` if the timeline has fewer than three training
    steps or no allreduces.
    """
    fusion, steps = tally.fusion, len(tally.ready)
    if steps < 3 or not fusion.groups:
        return None
    most = max(tensor.allreduces for tensor in tally.tensors.values())
    # A tensor that Horovod reduces in most steps is a gradient. Horovod reduces metrics less often.
    gradient = sum(t.size for t in tally.tensors.values() if t.allreduces > most / 2)
    ready = median(tally.ready)
    line = fusion.line()
    start, slope = line or (0.0, fusion.time_sum / fusion.size_sum)
    groups = 1 if line is None else _groups(gradient, ready, start, slope)
    now = fusion.groups / steps
    cycle = min(max(_nice(ready / groups / 1000), _LEAST_CYCLE), _MOST_CYCLE)
    advice = Advice(
        threshold=_whole(gradient / groups),
        cycle=cycle,
        groups=groups,
        now=now,
        gradient=gradient,
        ready=ready / 1000,
        start=start / 1000 if line else None,
        rate=1e6 / slope,
        cycle_now=median(tally.cycles) / 1000 if len(tally.cycles) > 2 else None,
        reasons=(),
    )
    return replace(advice, reasons=tuple(_reasons(advice)))


def _groups(gradient: int, ready: float, start: float, slope: float) -> int:
    def waited(k: int) -> float:
        each = start + slope * gradient / k
        return each + max(0.0, (k - 1) * (each - ready / k))

    return min(range(1, _MOST_GROUPS + 1), key=waited)


def _reasons(advice: Advice) -> list[str]:
    size, rate = format_size(advice.gradient), f"{format_size(advice.rate)}/s"
    at_once = advice.ready < _LEAST_CYCLE
    within = "all at once" if at_once else f"within {advice.ready:.2g} ms"
    lines = [f"the gradients of a step have a total size of {size}, and become ready {within}"]
    if advice.start is None:
        lines.append(
            f"reductions run at {rate}; the timeline does not show how long a very small reduction takes"
        )
    else:
        lines.append(
            f"each reduction takes {advice.start:.2g} ms, plus the time to reduce its data at {rate}"
        )
    now = f"the timeline shows {advice.now:.1f}"
    if advice.groups == 1:
        lines.append(
            f"one reduction per step is best ({now}), so the suggested threshold is large enough for all "
            "gradients of a step"
        )
    else:
        first = "the first reductions run during the computation of later gradients"
        lines.append(f"{advice.groups} reductions per step are best ({now}): {first}")
    looks = "" if advice.cycle_now is None else f"Horovod's cycle time is {advice.cycle_now:.2g} ms now; "
    if at_once:
        lines.append(f"{looks}a longer cycle than {advice.cycle:g} ms would only delay the reductions")
    elif advice.ready / advice.groups > _MOST_CYCLE:
        lines.append(f"{looks}a longer cycle than {advice.cycle:g} ms would delay small gradients")
    else:
        lines.append(f"{looks}the gradients for one reduction become ready within {advice.cycle:g} ms")
    return lines


def _whole(size: float) -> int:
    """Return a size in bytes, rounded up to a whole MiB."""
    return max(1, math.ceil(size / _MIB)) * _MIB


def _nice(value: float) -> float:
    """Return a time in milliseconds, rounded up to 1, 2, 2.5 or 5 times a power of ten. For zero, return
    the smallest cycle time.
    """
    if value <= 0:
        return _LEAST_CYCLE
    power = 10 ** math.floor(math.log10(value))
    return next(float(f"{step * power:.4g}") for step in (1, 2, 2.5, 5, 10) if step * power >= value * 0.999)
