"""Format the table of a cluster's machines: groups of equal nodes, and the differences between the groups."""

import textwrap
from collections.abc import Iterator

from toolkit.model.facts import HostFacts
from toolkit.probe.bundle import Bundle
from toolkit.probe.group import differences, format_field
from toolkit.probe.hostlist import fold
from toolkit.report.lines import Style

_NARROWEST = 20
_WIDEST_NAME = 30


def machines(bundle: Bundle, style: Style, width: int) -> Iterator[str]:
    """Yield a line for each group of equal nodes, for the login node, and for nodes that did not answer.

    toolkit prints the facts of the largest group in another table. The line of any other group shows only the
    facts that differ from the facts of the largest group.
    """
    rows = list(_rows(bundle))
    if not rows:
        return
    yield style("Machines", "bold")
    column = min(_WIDEST_NAME, max(len(name) for name, _, _ in rows))
    for name, count, text in rows:
        first, *rest = textwrap.wrap(text, max(_NARROWEST, width - column - 10))
        names = textwrap.wrap(name, column)
        lines = [first, *rest]
        lines += [""] * (len(names) - len(lines))
        for number, line in enumerate(lines):
            label = names[number] if number < len(names) else ""
            yield f"  {label:{column}}  {count if number == 0 else '':>4}  {line}".rstrip()


def _rows(bundle: Bundle) -> Iterator[tuple[str, str, str]]:
    if bundle.groups:
        reference = bundle.groups[0].facts
        for group in bundle.groups:
            text = _differing(group.facts, reference, group.differs) or "as above"
            yield fold(group.nodes), str(len(group.nodes)), text
        if bundle.login is not None:
            names = differences(reference, bundle.login)
            yield "login host", "", _differing(bundle.login, reference, names) or "as above"
    elif why := bundle.host.unknown.get("compute_nodes"):
        yield "login host", "", f"toolkit read the facts above on the login host; {why}"
    reasons: dict[str, list[str]] = {}
    for node, why in bundle.silent.items():
        reasons.setdefault(why, []).append(node)
    for why, nodes in reasons.items():
        yield fold(nodes), str(len(nodes)), why


def _differing(facts: HostFacts, reference: HostFacts, names: tuple[str, ...]) -> str:
    return "; ".join(
        f"{name.replace('_', ' ')}: {format_field(facts, name)} (above: {format_field(reference, name)})"
        if format_field(facts, name) != format_field(reference, name)
        else f"{name.replace('_', ' ')}: differs in details that this page does not show"
        for name in names
    )
