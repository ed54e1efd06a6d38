"""Compare the Horovod settings that toolkit suggests with the default settings and with Horovod's autotuning
(pure functions).
"""

from collections.abc import Iterable, Iterator

from toolkit.model.study import Study
from toolkit.study.advice import Advice
from toolkit.study.limits import duration, percent
from toolkit.study.statistics import Curve, MeasuredPoint

DEFAULT, SUGGESTED, TUNED = "default", "suggested", "autotune"

_TELLING = 3
"""If a series has fewer than three runs of a size, the report says that the result may be due to chance.

Suppose that three runs with the suggested settings are all faster than three runs with the default settings.
If the suggested settings have no effect, the probability of this result is 1/20.
"""


def settings(advice: Advice) -> dict[str, dict[str, str]]:
    """Return the environment variables for each of three series of runs: the default settings, the settings
    that ``advice`` suggests, and Horovod's autotuning.
    """
    chosen = dict(variable.split("=", 1) for variable in advice.variables)
    return {DEFAULT: {}, SUGGESTED: chosen, TUNED: {"HOROVOD_AUTOTUNE": "1"}}


def verdicts(study: Study, curves: Iterable[Curve]) -> list[str]:
    """Return the lines of a report about the suggested settings of Horovod. The first line lists the
    settings. For each size, the next lines say whether the settings helped. A size is a number of ranks on a
    number of nodes.

    The result is empty for a study that does not test suggested settings.
    """
    if SUGGESTED not in study.settings:
        return []
    points: dict[tuple[int, int], dict[str, MeasuredPoint]] = {}
    for curve in curves:
        for point in curve.points:
            points.setdefault((point.ranks, point.nodes), {})[curve.series] = point
    env = " ".join(f"{name}={value}" for name, value in study.settings[SUGGESTED].items())
    size_lines = [text for _, size in sorted(points.items()) for text in _size(size)]
    return [f"Suggested: {env}", *size_lines]


def _size(points: dict[str, MeasuredPoint]) -> Iterator[str]:
    suggested, default, tuned = (points.get(name) for name in (SUGGESTED, DEFAULT, TUNED))
    if suggested is None:
        return
    nodes = f"{suggested.nodes} node{'s' * (suggested.nodes > 1)}"
    on, took = f"On {suggested.ranks} ranks on {nodes}", _range_text(suggested)
    if default:
        result = {
            -1: (
                f"the suggested settings help: an epoch takes {took}, {_saving(suggested, default)} less than"
            ),
            0: f"the suggested settings make no measurable difference: an epoch takes {took}, compared with",
            1: (
                f"the suggested settings do not help: an epoch takes {took}, "
                f"{_extra(suggested, default)} more than"
            ),
        }[_compare_runs(suggested, default)]
        yield f"{on}, {result} {_range_text(default)} without these settings{_chance(suggested, default)}."
    if tuned:
        result = {
            -1: f"{_extra(tuned, suggested)} more than with the suggested settings",
            0: "with no measurable difference from the suggested settings",
            1: f"{_saving(tuned, suggested)} less than with the suggested settings",
        }[_compare_runs(suggested, tuned)]
        took = _range_text(tuned)
        yield f"{on}, with Horovod's autotuning, an epoch takes {took}, {result}{_chance(suggested, tuned)}."


def _compare_runs(first: MeasuredPoint, second: MeasuredPoint) -> int:
    """Return -1 if all runs of ``first`` are faster than all runs of ``second``. Return 1 if all runs of
    ``first`` are slower than all runs of ``second``, otherwise 0.
    """
    if first.seconds.high < second.seconds.low:
        return -1
    return int(first.seconds.low > second.seconds.high)


def _saving(first: MeasuredPoint, second: MeasuredPoint) -> str:
    return percent(1 - first.seconds.value / second.seconds.value)


def _extra(first: MeasuredPoint, second: MeasuredPoint) -> str:
    return percent(first.seconds.value / second.seconds.value - 1)


def _range_text(point: MeasuredPoint) -> str:
    low, high = duration(point.seconds.low), duration(point.seconds.high)
    return duration(point.seconds.value) + (f" ({low} to {high})" if low != high else "")


def _chance(*points: MeasuredPoint) -> str:
    few = min(len(point.runs) for point in points) < _TELLING
    return (
        f"; with so few runs, this result may be due to chance: run again with `--repeat {_TELLING}`"
        if few
        else ""
    )
