"""Format the analysis of a Horovod timeline: phases of a training step, late ranks, and settings to try."""

import shlex
import textwrap
from pathlib import Path
from typing import Any

import msgspec

from toolkit.errors import CheckFailed
from toolkit.report.plain import one_line
from toolkit.report.table import table
from toolkit.study.advice import Advice, advise
from toolkit.study.limits import percent
from toolkit.study.timeline import Tally, Tensor, shares, tally_events
from toolkit.study.timeline_file import events
from toolkit.units import format_size

_MEANING = {
    "negotiate": "ranks wait until a gradient is ready on all ranks",
    "queue": "a gradient that is ready on all ranks waits for its turn",
    "copy": "copying into and out of the fusion buffer",
    "reduce": "the allreduce itself",
    "compute": "no communication: the ranks compute, or wait for data",
}
_BAR = 24
_TENSORS = 5


def read_timeline(file: Path, width: int = 100) -> tuple[str, bytes]:
    """Read a Horovod timeline, and return its analysis as text and as JSON.

    Raises:
        BadInput: if the file is not a Horovod timeline.
        CheckFailed: if the timeline has fewer than three steps with allreduces.
    """
    tally = tally_events(events(file))
    phases = shares(tally)
    if phases is None:
        raise CheckFailed(
            f"{file}: the timeline has {tally.events:,} events, but toolkit needs at least "
            "three steps with allreduces"
        )
    advice = advise(tally)
    parts = {name: getattr(phases, name) for name in _MEANING}
    rows = [(name, percent(part), "█" * round(part * _BAR), _MEANING[name]) for name, part in parts.items()]
    steps = f"{phases.steps:,} steps of {1000 * phases.step_seconds:.3g} ms (median)"
    head = f"{one_line(file.name)}: {tally.events:,} events, {steps}"
    text = [head, table(("phase", "of a step", "", "meaning"), rows), _lag(tally), _waiting_rows(tally)]
    text.append(
        _advice_lines(advice, file, width)
        if advice
        else "The timeline has too few allreduces, so toolkit cannot suggest settings."
    )
    data: dict[str, Any] = {
        "schema": "toolkit.timeline/1",
        "events": tally.events,
        "shares": phases,
        "lag_seconds": {rank: micros / 1e6 for rank, micros in tally.delays.items()},
        "negotiated": tally.negotiations,
        "advice": None if advice is None else {**_fields(advice), "variables": advice.variables},
    }
    return "\n\n".join(filter(None, text)), msgspec.json.encode(data)


def _lag(tally: Tally) -> str:
    if not tally.negotiations:
        return (
            "The timeline does not show which ranks are late, because ranks do not report when a gradient in "
            "Horovod's cache is ready. To see late ranks, record a timeline with HOROVOD_CACHE_CAPACITY=0, "
            "which turns off this cache."
        )
    rows = [
        (
            rank,
            percent(tally.last_counts.get(rank, 0) / tally.negotiations),
            f"{lag / tally.negotiations / 1000:.3g} ms",
        )
        for rank, lag in sorted(tally.delays.items(), key=lambda item: -item[1])[:10]
    ]
    title = (
        f"In the {tally.negotiations:,} negotiations for which the timeline shows when each rank was ready:"
    )
    more = f"\n… and {len(tally.delays) - 10} ranks with shorter delays" if len(tally.delays) > 10 else ""
    return f"{title}\n{table(('rank', 'was the last', 'mean delay after the first rank'), rows)}{more}"


def _waiting_rows(tally: Tally) -> str:
    tensors = sorted(tally.tensors.values(), key=lambda tensor: -tensor.negotiation_micros)[:_TENSORS]
    rows = [
        (
            f"{tensor.negotiation_micros / 1e6:.3g} s",
            f"{tensor.allreduces:,}",
            format_size(tensor.size),
            _short(tensor),
        )
        for tensor in tensors
        if tensor.allreduces
    ]
    titles = ("total wait", "allreduces", "size", "tensor")
    return f"Tensors for which the ranks wait longest:\n{table(titles, rows)}" if rows else ""


def _short(tensor: Tensor) -> str:
    """Shorten a tensor's name to at most 60 characters. Keep the end of the name, because the beginning is
    often a long TensorFlow scope.
    """
    return tensor.name if len(tensor.name) <= 60 else f"…{tensor.name[-59:]}"


def _advice_lines(advice: Advice, file: Path, width: int) -> str:
    reasons = [
        textwrap.fill(text, width - 2, initial_indent="  · ", subsequent_indent="    ")
        for text in advice.reasons
    ]
    env = " ".join(f"--env {variable}" for variable in advice.variables)
    proof = [
        "To compare these settings with the defaults and with Horovod's autotuning:",
        f"  toolkit scale TRAINER --ranks N --prove {one_line(shlex.quote(str(file)))}",
    ]
    return "\n".join([f"Settings to try: {env}", *reasons, *proof])


def _fields(advice: Advice) -> dict[str, Any]:
    return {name: getattr(advice, name) for name in Advice.__dataclass_fields__}
