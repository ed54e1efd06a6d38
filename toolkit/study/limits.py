"""Describe in sentences how far a training scales and what limits the scaling (pure functions)."""

from collections.abc import Iterator

from toolkit.model.study import Shares
from toolkit.study.fit import Fit, FitCheck, bandwidth, latency
from toolkit.study.statistics import Curve, MeasuredPoint, MedianSpread

_WELL = 0.9
"""The minimum parallel efficiency at which the report says that the speed is near the ideal."""

_WIDE = 3.0
"""The report calls a predicted range wide if its high end is more than three times its low end."""
_OPEN = 0.5
"""If the range of the serial fraction (a number from 0 to 1) is wider than 0.5, the report does not state
this fraction.
"""

_WORTH = 0.05
"""The report mentions a cause of lost time only if the cause takes at least this fraction of a training
step, from 0 to 1.
"""


_INPUT = (
    "{on} each rank waits for training samples {part} of the time. Use more cores for reading and decoding, "
    "faster storage, or fewer and larger files"
)
_SHARED = (
    "{on} the computation between allreduces takes {slower:.2g} times as long as expected from the smallest "
    "size, so the ranks probably share cores, memory bandwidth or a disk"
)
_LESS = "a larger batch needs fewer allreduces, and a faster network makes each allreduce shorter"


def sentences(
    curve: Curve, model: Fit | None, check: FitCheck | None, phrase: str = "an epoch takes"
) -> list[str]:
    """Return sentences that say how far a curve scales, and what limits the scaling.

    ``phrase`` is the text before a time in a sentence, for example "an epoch takes".
    """
    largest = curve.points[-1]
    if largest is curve.base:
        only = f"Measured only on {_ranks(largest)}: measure a second size to see how the training scales."
        return [only, *_known_limits(largest)]
    return [_reached_speed(curve, phrase), *_why(curve), *_model(curve, model), *_check_sentences(check)]


def _reached_speed(curve: Curve, phrase: str) -> str:
    base, largest = curve.base, curve.points[-1]
    gained = largest.speedup.value / base.speedup.value
    sized = f"On {_ranks(largest)} on {largest.nodes} node{'s' if largest.nodes > 1 else ''}"
    text = f"{sized} {phrase} {duration(largest.seconds.value)}, "
    alone = f"on {_ranks(base)}"
    if gained < 1:
        return f"{text}longer than the {duration(base.seconds.value)} {alone}: more ranks do not help."
    return f"{text}{gained:.3g} times as fast as {alone}: {percent(largest.efficiency.value)} of ideal."


def _why(curve: Curve) -> Iterator[str]:
    largest = curve.points[-1]
    yield from _threads(curve)
    if largest.efficiency.value >= _WELL:
        yield "The speed is near the ideal; try larger sizes."
    point = next((point for point in reversed(curve.points) if point.shares), None)
    if point is None or point.shares is None:
        yield from _known_limits(largest)
        if largest.efficiency.value < _WELL:
            yield (
                "The study did not measure the phases of a training step; `toolkit scale --profile` measures "
                "these phases."
            )
        return
    causes = sorted(_causes(curve, point, point.shares), reverse=True)
    texts = [text for part, text in causes if part >= _WORTH]
    if not texts:
        yield f"Communication takes {percent(point.shares.communication)} of a step on {_ranks(point)}."
        return
    for number, text in enumerate(texts):
        yield f"{'What limits the speed most' if number == 0 else 'The next limit'}: {text}."


def _threads(curve: Curve) -> Iterator[str]:
    base, largest = curve.base, curve.points[-1]
    few, many = largest.figures.threads, base.figures.threads
    if few and many and few != many:
        had = f"{many} in the run with {_ranks(base)}, but {few} in the run with {_ranks(largest)}"
        yield (
            f"The number of cores per rank differs: {had}. Set `--cpus-per-rank` to use the same number "
            "in all runs."
        )


def _causes(curve: Curve, point: MeasuredPoint, shares: Shares) -> Iterator[tuple[float, str]]:
    """Yield each cause of lost time in a training step: the fraction of the step's time that the cause takes,
    from 0 to 1, and a sentence about the cause.
    """
    alone = curve.base.seconds.value * curve.base.ranks / point.ranks
    # A timeline counts the wait for training samples as computation, so subtract this wait.
    busy = max(shares.compute - (point.waiting or 0), 0.0)
    slower = busy * point.seconds.value / (alone * max(1 - (curve.base.waiting or 0), _WORTH))
    on = f"on {_ranks(point)}"
    yield point.waiting or 0, _waits(point)
    if slower > 1 + _WORTH:
        yield busy * (1 - 1 / slower), _SHARED.format(on=on, slower=slower)
    negotiate, reduce = percent(shares.negotiate), percent(shares.reduce)
    yield shares.negotiate, f"{on} the ranks wait for each other during {negotiate} of a step{_last(shares)}"
    yield shares.reduce, f"{on} the allreduce takes {reduce} of a step; {_LESS}"
    yield shares.copy, f"{on} copying gradients into the fusion buffer takes {percent(shares.copy)} of a step"
    yield shares.queue, f"{on} gradients wait in Horovod's queue for {percent(shares.queue)} of a step"


def _known_limits(point: MeasuredPoint) -> Iterator[str]:
    if (point.waiting or 0) >= _WORTH:
        yield f"Known limits: {_waits(point)}."


def _waits(point: MeasuredPoint) -> str:
    return _INPUT.format(on=f"on {_ranks(point)}", part=percent(point.waiting or 0))


def _last(shares: Shares) -> str:
    if len(shares.last_ranks) < 2:
        return ""
    rank, part = max(shares.last_ranks.items(), key=lambda item: item[1])
    fair = 1 / len(shares.last_ranks)
    return f"; rank {rank} is the last in {percent(part)} of these waits" if part > 1.3 * fair else ""


def _model(curve: Curve, model: Fit | None) -> Iterator[str]:
    if model is None:
        return
    if len(curve.points) < 3:
        yield "Two sizes are not enough to separate serial work from communication; measure a third size."
        return
    serial = model.serial
    if serial.high - serial.low > _OPEN:
        yield "The measured times vary too much to separate serial work from communication."
        return
    holds = "serial work or latency" if curve.scaling == "weak" else "serial work or bandwidth"
    if serial.high >= 0.001:
        yield (
            f"By the model, {_range_text(serial)} of the time on one rank does not shrink with more ranks "
            f"({holds})."
        )
    if (rate := bandwidth(curve, model)) is not None:
        yield f"By the model, gradients travel at about {rate / 1e9:.2g} GB/s."
    if (each := latency(curve, model)) is not None:
        yield f"By the model, one exchange of a ring allreduce takes about {each * 1e6:.2g} µs."


def _check_sentences(check: FitCheck | None) -> Iterator[str]:
    if check:
        predicted = f"{duration(check.prediction.low)} to {duration(check.prediction.high)}"
        outside = "which is outside this range: the model does not describe this machine well"
        verdict = "which is within this range" if check.holds else outside
        if check.holds and check.prediction.high > _WIDE * check.prediction.low:
            verdict = "which is within this range, but the range is wide: more runs make the range narrower"
        yield (
            f"Check: from the smaller sizes, the model predicts {predicted} for {check.ranks} ranks; "
            f"the runs measured {duration(check.measurement)}, {verdict}."
        )


def _range_text(part: MedianSpread) -> str:
    low, high = percent(part.low), percent(part.high)
    if part.low == 0:
        return f"at most {high}"
    return low if low == high else f"{low} to {high}"


def _ranks(point: MeasuredPoint) -> str:
    return f"{point.ranks} rank{'s' if point.ranks > 1 else ''}"


def percent(part: float) -> str:
    """Return a part from 0 to 1 in percent, such as ``31 %``. Below ten percent, the text has up to two
    significant digits, as in ``2.4 %``.
    """
    return f"{100 * part:.0f} %" if part >= 0.0995 or part == 0 else f"{100 * part:.2g} %"


def duration(value: float) -> str:
    """Return a time in seconds as text with a unit, for example ``1.23 s`` or ``45 ms``. Below 1,000 s, the
    text has up to three significant digits.
    """
    if value >= 999.5:
        return f"{value:,.0f} s"
    return f"{value:.3g} s" if value >= 0.1 else f"{value * 1000:.3g} ms"
