"""A page for everything that ``toolkit doctor`` and ``toolkit explain`` can find."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from docs.generate.markdown import cell, fence, plain, table
from toolkit import knowledge
from toolkit.engine.logs.signature_match import explain
from toolkit.engine.registry import RULES
from toolkit.engine.rule import Rule
from toolkit.knowledge.examples import Example, example
from toolkit.knowledge.signatures import LogSignature
from toolkit.model.finding import Finding, Severity
from toolkit.report.meanings import meaning
from toolkit.report.rules import consequence, happens, related_signatures

_ADMONITION: dict[Severity, str] = {"error": "danger", "warning": "warning", "info": "info"}
_SINGLETONS = "0: rank 0 of 1\n1: rank 0 of 1"
"""Output of ranks that each start as a world of size 1, with the numbers of ``srun --label``."""


_HEAD = """\
# Findings

A finding is one fault or remark: its title, the evidence, how to fix it, and its source. Its id is the same
in the output of every command, in JSON and here."""
_PREDICTED = """\
## Faults that the doctor predicts

{count} rules of `toolkit doctor`. Rules about the first steps of a launch come first.
`toolkit doctor --explain ID` prints the page of a rule. [All rules are on one page](../../rules.md), too."""
_IN_OUTPUT = """\
## Faults in the output of a job

`toolkit explain` recognises {count} messages in the output of jobs. A message that shows the fault of a rule
is on the page of that rule. The other messages have the separate pages in this table."""


def pages() -> dict[str, str]:
    """Return the index of findings and their pages."""
    apart = [s for s in knowledge.signatures() if not s.finding]
    (alone,) = explain(_SINGLETONS)
    made = {rule.id: _rule(rule) for rule in RULES}
    made |= {signature.id: _signature(signature) for signature in apart}
    made[alone.id] = _alone(alone)
    listed = {f"reference/findings/{name}.md": text for name, text in made.items()}
    return {"reference/findings/index.md": _index(apart, alone), **listed}


def _index(apart: list[LogSignature], alone: Finding) -> str:
    rows = [(rule.id, rule.severity, rule.title) for rule in RULES]
    lines = [(signature.id, signature.severity, signature.title) for signature in apart]
    parts = [
        _HEAD,
        _PREDICTED.format(count=len(rows)),
        _table(rows),
        _IN_OUTPUT.format(count=len(knowledge.signatures())),
        _table([*lines, (alone.id, alone.severity, alone.title)]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(rows: list[tuple[str, Severity, str]]) -> str:
    linked = [(f"[{cell(title)}]({name}.md)<br>`{name}`", severity) for name, severity, title in rows]
    return table(("finding", "severity"), linked)


def _rule(rule: Rule) -> str:
    shown = example(rule.id)
    parts = [
        *_head(rule.id, rule.severity, rule.title, consequence(rule, shown)),
        "## What happens",
        *(plain(text) for text in happens(rule)),
        "## How toolkit recognises this fault",
        _recognised(rule),
        *(_example(shown) if shown else ()),
        *_output(related_signatures(rule)),
        *_tail(_sentence(rule.fix), rule.source),
        "On the command line:",
        fence(f"toolkit doctor --explain {rule.id}", "sh"),
    ]
    return "\n\n".join(parts) + "\n"


def _signature(signature: LogSignature) -> str:
    how = "`toolkit explain` finds this fault in the output of a job; `toolkit doctor` does not predict it."
    parts = [
        *_head(signature.id, signature.severity, signature.title, how),
        *_output((signature,)),
        *_tail(_numbered(signature.fix), signature.source),
    ]
    return "\n\n".join(parts) + "\n"


def _alone(finding: Finding) -> str:
    how = "`toolkit explain` finds this fault in the rank numbers that the ranks print."
    parts = [
        *_head(finding.id, finding.severity, finding.title, how),
        "## In the output of a job",
        fence(_SINGLETONS, "text"),
        *_tail(_sentence(finding.fix), finding.source),
    ]
    return "\n\n".join(parts) + "\n"


def _head(name: str, severity: Severity, title: str, how: str) -> Iterator[str]:
    # The title in the navigation is plain text, so it has no backticks.
    yield f"---\ntitle: {json.dumps(title.replace('`', ''))}\n---"
    yield f"# {plain(title)} <code class=finding-id>{name}</code>"
    yield f'!!! {_ADMONITION[severity]} "{severity}"\n\n    {plain(how)}'


def _recognised(rule: Rule) -> str:
    if not rule.facts:
        return "From the plan of the launch and from your request, without facts of the image or the cluster."
    return table(("fact", "meaning"), [(f"`{fact}`", cell(meaning(fact))) for fact in rule.facts])


def _example(shown: Example) -> Iterator[str]:
    yield "## For example"
    yield f"{plain(shown.title)}. Mode `{shown.mode}`, outcome `{shown.outcome}`: {plain(shown.because)}."
    yield fence("\n".join(shown.evidence), "text")


def _output(signatures: tuple[LogSignature, ...]) -> Iterator[str]:
    for _, same in groupby(signatures, attrgetter("finding")):
        yield "## In the output of a job"
        yield fence("\n".join(" ".join(s.sample.split()) for s in same), "text")


def _tail(fix: str, source: str) -> Iterator[str]:
    yield from ("## Fix", fix, "## Source", _sentence(source))


def _sentence(text: str) -> str:
    """Return a text with a full stop, and with a capital letter unless the text begins with a name."""
    first, _, rest = text.partition(" ")
    begin = first.capitalize() if first.isalpha() and first.islower() else first
    return f"{plain(f'{begin} {rest}'.strip())}."


def _numbered(steps: Iterable[str]) -> str:
    return "\n".join(f"{number}. {plain(step)}" for number, step in enumerate(steps, 1))
