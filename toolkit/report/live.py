"""Format the results of trial launches: predicted and observed outcomes, messages and the MPI transport."""

import textwrap
from collections.abc import Iterator

from toolkit.model.facts import HostFacts
from toolkit.model.live import Live, Message, Trial
from toolkit.report.doctor.findings import findings
from toolkit.report.lines import Style, leave_unstyled
from toolkit.report.plain import join_lines
from toolkit.units import format_memory

_WIDEST = 100
_TIED = "\N{NO-BREAK SPACE}"


def live_page(live: Live, host: HostFacts, style: Style = leave_unstyled, width: int = _WIDEST) -> str:
    """Return the text that ``toolkit doctor --live`` prints about its trial launches."""
    width = min(width, _WIDEST)
    name = live.image.rpartition("/")[2]
    nodes = f"{live.nodes} node{'s' * (live.nodes > 1)}"
    ranks = f"{live.ranks_per_node} rank{'s' * (live.ranks_per_node > 1)}"
    shape = f"{nodes} \N{MULTIPLICATION SIGN} {ranks}"
    lines = [f"{style(name, 'bold')} tried on {style(live.place, 'bold')}, {shape}", ""]
    for trial in live.trials:
        lines += [*_trial(trial, live, host, style, width), ""]
    return join_lines(lines).rstrip()


def _trial(trial: Trial, live: Live, host: HostFacts, style: Style, width: int) -> Iterator[str]:
    yield style(trial.mode, "bold")
    yield from _row("predicted", f"{trial.predicted}: {trial.because}", width)
    if trial.observed is None:
        yield from _row("observed", "not tried: this machine or cluster cannot run this mode", width)
        return
    colour = "good" if trial.good else "bad"
    yield from (
        style(line, colour) for line in _row("observed", f"{trial.observed}{_sizes(trial, live)}", width)
    )
    if trial.seen.library:
        yield from _row("library", trial.seen.library, width)
    yield from _messages(trial.seen.messages, "nodes", "between nodes", width)
    yield from _messages(trial.seen.messages, "node", "within a node", width)
    if trial.observed == "ok":
        yield from _transport(trial, host, style, width)
    if trial.agrees is False:
        text = (
            f"the prediction was wrong: predicted {trial.predicted}, observed {trial.observed}; please "
            "report this difference"
        )
        yield from (style(line, "bad") for line in _row("", text, width))
        yield from _row("", f"predicted because {trial.because}", width)
    yield from _row("job", f"{trial.seconds:.1f} s; toolkit jobs logs {trial.job}".replace(" ", _TIED), width)
    if trial.findings:
        yield ""
        yield from findings(trial.findings, style, width)


def _sizes(trial: Trial, live: Live) -> str:
    ranks = live.nodes * live.ranks_per_node
    if not trial.seen.sizes:
        return f": none of {ranks} ranks completed MPI_Init"
    sizes = sorted(set(trial.seen.sizes))
    world = f"world size {sizes[0]}" if len(sizes) == 1 else f"world sizes {', '.join(map(str, sizes))}"
    hosts = ", ".join(dict.fromkeys(trial.seen.hosts))
    right = trial.seen.sums
    summed = "" if not right else "; the allreduce is correct" if all(right) else "; the allreduce is WRONG"
    return f": {len(trial.seen.sizes)} of {ranks} ranks on {hosts} found {world}{summed}"


def _messages(messages: tuple[Message, ...], location: str, label: str, width: int) -> Iterator[str]:
    selection = [m for m in messages if m.between == location]
    if not selection:
        return
    fastest = max(selection, key=lambda m: m.rate)
    first = min(selection, key=lambda m: m.bytes)
    latency = f"{first.seconds * 1e6:.1f} µs for {format_memory(first.bytes)}"
    yield from _row(label, f"{latency}; {_rate(fastest.rate)} with {format_memory(fastest.bytes)}", width)
    rest = ", ".join(
        f"{format_memory(m.bytes)} {m.seconds * 1e6:.1f} µs".replace(" ", _TIED) for m in selection
    )
    yield from _row("", rest, width)
    if damaged := [m for m in selection if not m.whole]:
        yield from _row("", f"damaged messages: {', '.join(format_memory(m.bytes) for m in damaged)}", width)


def _transport(trial: Trial, host: HostFacts, style: Style, width: int) -> Iterator[str]:
    if not any(m.between == "nodes" for m in trial.seen.messages):
        return
    transport = trial.seen.transport
    if transport is None:
        yield from _row("transport", "the MPI library does not report its transport", width)
        return
    yield from _row("transport", transport.name, width)
    yield from (style(line, "dim") for line in _row("", f"· {transport.evidence}", width))
    if trial.missed_fabric:
        fast = ", ".join((*(host.infiniband or ()), *(host.fabrics or ())))
        text = (
            f"MPI did not use the fast network: the nodes have {fast}, and the messages went over "
            f"{transport.name}"
        )
        yield from (style(line, "warn") for line in _row("", text, width))


def _row(label: str, text: str, width: int) -> list[str]:
    lines = textwrap.wrap(
        text, width, initial_indent=f"  {label:15}", subsequent_indent=" " * 17, break_on_hyphens=False
    )
    return [line.replace(_TIED, " ") for line in lines]


def _rate(rate: float) -> str:
    return f"{rate / 1e9:.2f} GB/s" if rate >= 1e9 else f"{rate / 1e6:.1f} MB/s"
