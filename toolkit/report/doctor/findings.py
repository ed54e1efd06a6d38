"""Format findings on a page: the fault, its evidence, and the fix."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from toolkit.model.finding import Finding
from toolkit.report.lines import Style, wrap_text

NONE_SILENCED: Mapping[str, str] = MappingProxyType({})
_SEVERITY_STYLE = {"error": "bad", "warning": "warn", "info": "dim"}


def findings(
    all_findings: tuple[Finding, ...],
    style: Style,
    width: int,
    *,
    labelled: bool = True,
    answer_text: str = "",
    silenced: Mapping[str, str] = NONE_SILENCED,
) -> Iterator[str]:
    """Yield the lines of each finding (a fault or a remark). The last lines list the IDs of all findings of
    the severity "info" that toolkit cannot decide, because facts about the image or the host are missing.

    If ``labelled`` is false, the lines of a finding do not show its severity. Callers set ``labelled`` to
    false for findings about launch modes that this launch does not use, because such findings cannot stop the
    launch. ``answer_text`` is the advice above the findings. If the advice already contains the fix of a
    finding, the lines of this finding omit the fix.

    ``silenced`` maps the id of a hidden finding to the reason for hiding it. toolkit shows the finding and
    the reason only with ``--all``. toolkit never hides errors, and shows no reason for them.
    """
    undecided = [f for f in all_findings if f.undecided and f.severity == "info"]
    for finding in (f for f in all_findings if f not in undecided):
        yield from _head(finding, style, width, labelled=labelled)
        yield from wrap_text(finding.title, 11, width)
        for line in finding.evidence:
            yield from (style(part, "dim") for part in wrap_text(line, 13, width, prefix="· "))
        if is_silenced(finding, silenced):
            yield from wrap_text(f"silenced: {silenced[finding.id]}", 13, width, prefix="· ")
        if finding.fix[1:] not in answer_text:
            yield from _fix_lines(finding.fix, width)
        yield ""
    if undecided:
        label = style("info     ", "dim") if labelled else ""
        yield f"  {label}not decided, because facts are missing"
        yield from wrap_text(", ".join(finding.id for finding in undecided), 11, width)
        for line in dict.fromkeys(line for finding in undecided for line in finding.evidence):
            yield from (style(part, "dim") for part in wrap_text(line, 13, width, prefix="· "))
        yield ""


def without_silenced(all_findings: tuple[Finding, ...], silenced: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return the findings that the shorter page shows, which omits silenced findings."""
    return tuple(finding for finding in all_findings if not is_silenced(finding, silenced))


def is_silenced(finding: Finding, silenced: Mapping[str, str]) -> bool:
    """Return whether ``silenced`` hides a finding. toolkit never hides errors, which stop the launch."""
    return finding.id in silenced and finding.severity != "error"


def _fix_lines(fix: str, width: int) -> Iterator[str]:
    """Yield the lines of a fix. If the fix has several alternatives, number them, the best first."""
    choices = re.split(r"; or,? ", fix)
    if len(choices) == 1:
        yield from wrap_text(fix, 16, width, prefix="fix: ", outdent=5)
        return
    for number, choice in enumerate(choices, 1):
        label = f"{'fix:' if number == 1 else '':4} {number}. "
        step = f"{choice[0].upper()}{choice[1:]}."
        yield from wrap_text(step, 11 + len(label), width, prefix=label, outdent=len(label))


def _head(finding: Finding, style: Style, width: int, *, labelled: bool) -> Iterator[str]:
    """Yield a line with the severity, the ID and the launch modes of a finding. If the launch modes do
    not fit on this line, all of them are on the next lines.
    """
    label = f"{style(f'{finding.severity:8}', _SEVERITY_STYLE[finding.severity])} " if labelled else ""
    head = f"  {label}{style(finding.id, 'bold')}"
    modes = f"({', '.join(finding.modes)})" if finding.modes else ""
    if 11 + len(finding.id) + 2 + len(modes) <= width:
        yield f"{head}{style(f'  {modes}', 'dim')}" if modes else head
        return
    yield head
    yield from (style(line, "dim") for line in wrap_text(modes, 11, width))
