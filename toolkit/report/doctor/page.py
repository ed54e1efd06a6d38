"""Format the page of ``toolkit doctor``: the answer and the next command, then the reasons."""

from collections.abc import Iterator, Mapping

import msgspec

from toolkit.engine.main_fault import main_fault
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import Finding
from toolkit.model.prediction import Request, Verdict
from toolkit.report.doctor.answer import answer, answer_lines, host_answer
from toolkit.report.doctor.findings import NONE_SILENCED, findings, without_silenced
from toolkit.report.doctor.sides import in_short, side_by_side
from toolkit.report.doctor.ways import way, ways
from toolkit.report.lines import Style, leave_unstyled, wrap_text
from toolkit.report.plain import join_lines

_WIDEST = 100


def page(
    host: HostFacts,
    image: ImageFacts,
    verdict: Verdict,
    request: Request,
    *,
    next_command: str,
    advice: str = "",
    full: bool = False,
    silenced: Mapping[str, str] = NONE_SILENCED,
    style: Style = leave_unstyled,
    width: int = _WIDEST,
) -> str:
    """Return the page about an image on a host. The page shows ``next_command`` beside or below the answer.

    ``advice`` says what to do if the answer is not "Yes". A ``full`` page contains all facts, all launch
    modes, the findings about launch modes that this launch does not use, and the findings in ``silenced``
    (finding id → reason for hiding the finding).
    """
    width = min(width, _WIDEST)
    lines = [*answer_lines(answer(verdict, request.mode), next_command, style, width), ""]
    lines += [*_heading(host, image, request, style, width)]
    if full:
        lines += ["", *side_by_side(host, image, style, width), ""]
        lines += [style("Launch modes", "bold"), *ways(verdict, host, request, style, width), ""]
    else:
        lines += [*in_short(host, image, style, width), *_chosen(verdict, host, request, style, width), ""]
    if advice:
        lines += [style("What to do", "bold"), *wrap_text(advice, 2, width), ""]
    relevant, irrelevant = _split_findings(verdict, request)
    loud = without_silenced(relevant, silenced)
    shown = relevant if full else _needed_findings(loud, verdict, request)
    if shown:
        lines += [style("Findings", "bold")]
        lines += [*findings(shown, style, width, answer_text=advice, silenced=silenced)]
    if irrelevant and full:
        lines += [style("Why not the other modes", "bold")]
        lines += [*findings(irrelevant, style, width, labelled=False, silenced=silenced)]
    if not full:
        lines += [*wrap_text(_left_out(verdict, (*relevant, *irrelevant), shown), 0, width)]
    return join_lines(lines).rstrip()


def host_page(
    host: HostFacts,
    all_findings: tuple[Finding, ...],
    next_command: str = "toolkit doctor IMAGE",
    *,
    full: bool = False,
    silenced: Mapping[str, str] = NONE_SILENCED,
    style: Style = leave_unstyled,
    width: int = _WIDEST,
) -> str:
    """Return the page for a call of ``toolkit doctor`` without an image: whether the host can launch
    containers. Only a ``full`` page contains the findings in ``silenced``.
    """
    width = min(width, _WIDEST)
    doctor_answer = host_answer(host.place, all_findings)
    lines = [
        *answer_lines(doctor_answer, next_command if doctor_answer.word == "Yes" else "", style, width),
        "",
    ]
    lines += [*side_by_side(host, None, style, width), ""]
    shown = all_findings if full else without_silenced(all_findings, silenced)
    if shown:
        lines += [style("Findings", "bold"), *findings(shown, style, width, silenced=silenced)]
    if hidden := len(all_findings) - len(shown):
        lines += [f"--all also shows {hidden} silenced finding{'s' if hidden > 1 else ''}."]
    return join_lines(lines).rstrip()


def _split_findings(verdict: Verdict, request: Request) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return two groups of findings. The first group contains the findings about the recommended or requested
    launch mode, and the findings about every mode. The second group contains the findings about other modes.

    If toolkit recommends no mode and the user requested no mode, all findings are in the first group.
    """
    mode = verdict.chosen or request.mode
    relevant = tuple(f for f in verdict.findings if mode is None or not f.modes or mode in f.modes)
    return relevant, tuple(f for f in verdict.findings if f not in relevant)


def _needed_findings(
    candidates: tuple[Finding, ...], verdict: Verdict, request: Request
) -> tuple[Finding, ...]:
    """Return the errors and warnings among ``candidates`` that the page shows without ``--all``.

    If no launch mode works and the user requested no mode, return only the main fault and the findings that
    do not depend on the mode.
    """
    wrong = tuple(f for f in candidates if f.severity != "info")
    # A finding that toolkit cannot decide does not change the answer "No".
    if answer(verdict, request.mode).word == "No":
        wrong = tuple(f for f in wrong if not f.undecided)
    if not (verdict.chosen or request.mode):
        first = main_fault(verdict)
        wrong = tuple(f for f in wrong if f == first or not f.modes)
    return tuple(msgspec.structs.replace(f, modes=()) for f in wrong)


def _left_out(
    verdict: Verdict, all_findings: tuple[Finding, ...], printed_findings: tuple[Finding, ...]
) -> str:
    """Return a sentence that says what the option ``--all`` adds to the page.

    ``printed_findings`` are the findings of ``all_findings`` that the page already contains.
    """
    works = [p.mode for p in verdict.predictions if p.outcome == "ok" and p.mode != verdict.chosen]
    also = f"Also predicted to work: {', '.join(works)}. " if works and verdict.chosen else ""
    more = len(all_findings) - len(printed_findings)
    further = f", {more} further finding{'s' if more > 1 else ''}" if more else ""
    count = len(verdict.predictions)
    modes = f"all {count} launch modes" if count > 1 else "the launch mode"
    return f"{also}--all shows {modes}{further}, and the facts."


def _chosen(verdict: Verdict, host: HostFacts, request: Request, style: Style, width: int) -> Iterator[str]:
    """Yield the lines about the chosen launch mode, or about the mode that the user requested."""
    mode = verdict.chosen or request.mode
    for prediction in verdict.predictions:
        if prediction.mode == mode:
            yield ""
            yield from way(prediction, verdict, host, request, style, width)


def _heading(host: HostFacts, image: ImageFacts, request: Request, style: Style, width: int) -> Iterator[str]:
    name = image.path.rpartition("/")[2] or image.path
    nodes = f"{request.nodes} node{'s' if request.nodes > 1 else ''}"
    ranks = f"{request.ranks_per_node} rank{'s' if request.ranks_per_node > 1 else ''}"
    shape = f"{nodes} \N{MULTIPLICATION SIGN} {ranks}"
    if len(f"{name} on {host.place}, {shape}") <= width:
        yield f"{style(name, 'bold')} on {style(host.place, 'bold')}, {shape}"
        return
    yield from (style(line, "bold") for line in wrap_text(f"{name} on {host.place}, {shape}", 0, width))
