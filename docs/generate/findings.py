"""A page for everything that ``toolkit doctor`` and ``toolkit explain`` can find."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from docs.generate.markdown import cell, fence, plain, table
from toolkit import knowledge
from toolkit.engine.logs.explain import explain
from toolkit.engine.registry import RULES
from toolkit.engine.rule import Rule
from toolkit.knowledge.examples import Example, example
from toolkit.knowledge.signatures import LogSignature
from toolkit.model.finding import Finding, Severity
from toolkit.report.meanings import meaning
from toolkit.report.rules import consequence, happens, related

_ADMONITION: dict[Severity, str] = {"error": "danger", "warning": "warning", "info": "info"}
_LONELY = "0: rank 0 of 1\n1: rank 0 of 1"
"""What ranks print that do not see each other, with the numbers that srun --label puts before it."""


_HEAD = """\
# Findings

A finding is one thing that was noticed: what is so, the evidence, what mends it, and how that is known. Its
id is the same in the output of every command, in JSON and here."""
_FORESEEN = """\
## What the doctor foresees

{count} rules of `toolkit doctor`, in the order of a launch. `toolkit doctor --explain ID` prints the page of
one; [all of them are on one page](../../rules.md), too."""
_TOLD = """\
## What job output tells

`toolkit explain` knows {count} lines of job output. Those that a rule foresees are on the page of that rule;
these stand for themselves."""


def pages() -> dict[str, str]:
    """Return the index of findings and their pages."""
    told = [s for s in knowledge.signatures() if not s.finding]
    (alone,) = explain(_LONELY)
    made = {rule.id: _rule(rule) for rule in RULES}
    made |= {signature.id: _signature(signature) for signature in told}
    made[alone.id] = _alone(alone)
    listed = {f"reference/findings/{name}.md": text for name, text in made.items()}
    return {"reference/findings/index.md": _index(told, alone), **listed}


def _index(told: list[LogSignature], alone: Finding) -> str:
    rows = [(rule.id, rule.severity, rule.title) for rule in RULES]
    lines = [(signature.id, signature.severity, signature.title) for signature in told]
    parts = [
        _HEAD,
        _FORESEEN.format(count=len(rows)),
        _table(rows),
        _TOLD.format(count=len(knowledge.signatures())),
        _table([*lines, (alone.id, alone.severity, alone.title)]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(rows: list[tuple[str, Severity, str]]) -> str:
    linked = [(f"[{name}]({name}.md)", severity, cell(title)) for name, severity, title in rows]
    return table(("finding", "severity", "what is so"), linked)


def _rule(rule: Rule) -> str:
    shown = example(rule.id)
    parts = [
        *_head(rule.id, rule.severity, rule.title, consequence(rule, shown)),
        "## What happens",
        *(plain(text) for text in happens(rule)),
        "## How it is recognised",
        _recognised(rule),
        *(_example(shown) if shown else ()),
        *_output(related(rule)),
        *_tail(f"{plain(rule.fix)}.", rule.source),
        "On the command line:",
        fence(f"toolkit doctor --explain {rule.id}", "sh"),
    ]
    return "\n\n".join(parts) + "\n"


def _signature(signature: LogSignature) -> str:
    told = "It is told from the output of a job; no rule foresees it."
    parts = [
        *_head(signature.id, signature.severity, signature.title, told),
        *_output((signature,)),
        *_tail(_numbered(signature.fix), signature.source),
    ]
    return "\n\n".join(parts) + "\n"


def _alone(finding: Finding) -> str:
    told = "It is told from what the ranks themselves print of their number."
    parts = [
        *_head(finding.id, finding.severity, finding.title, told),
        "## In the output of a job",
        fence(_LONELY, "text"),
        *_tail(f"{plain(finding.fix)}.", finding.source),
    ]
    return "\n\n".join(parts) + "\n"


def _head(name: str, severity: Severity, title: str, told: str) -> Iterator[str]:
    yield f"# {plain(title)} (`{name}`)"
    yield f'!!! {_ADMONITION[severity]} "{severity}"\n\n    {plain(told)}'


def _recognised(rule: Rule) -> str:
    if not rule.facts:
        return "By the words of the plan and of the request."
    return table(("fact", "what it is"), [(f"`{fact}`", cell(meaning(fact))) for fact in rule.facts])


def _example(shown: Example) -> Iterator[str]:
    yield "## For example"
    yield f"{plain(shown.title)}. Mode `{shown.mode}`, outcome `{shown.outcome}`: {plain(shown.because)}."
    yield fence("\n".join(shown.evidence), "text")


def _output(signatures: tuple[LogSignature, ...]) -> Iterator[str]:
    for _, same in groupby(signatures, attrgetter("finding")):
        yield "## In the output of a job"
        yield fence("\n".join(" ".join(s.sample.split()) for s in same), "text")


def _tail(fix: str, source: str) -> Iterator[str]:
    yield from ("## Fix", fix, "## Source", f"{plain(source)}.")


def _numbered(steps: Iterable[str]) -> str:
    return "\n".join(f"{number}. {plain(step)}" for number, step in enumerate(steps, 1))
