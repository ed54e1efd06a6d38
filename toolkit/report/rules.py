"""Format the rules of ``toolkit doctor`` as a list, as a page for each rule, and as one document."""

import inspect
import textwrap
from collections.abc import Iterable, Iterator

from toolkit import knowledge
from toolkit.engine.rule import Rule
from toolkit.knowledge.examples import Example, example
from toolkit.knowledge.signatures import LogSignature
from toolkit.model.prediction import MODES
from toolkit.report.meanings import meaning

_WIDTH = 80
_INDENT = "  "
_NO_FACTS = "none; the rule uses only the planned launch and the user's command and options"


def rule_list(rules: Iterable[Rule]) -> str:
    """Return a list with the severity, the ID and the title of each rule."""
    return "\n".join(_hung(f"{r.severity:8} {r.id:32} ", r.title) for r in rules)


def happens(rule: Rule) -> tuple[str, ...]:
    """Return the paragraphs of a rule's docstring, which explain the fault and the reason for it."""
    paragraphs = inspect.cleandoc(rule.check.__doc__ or "").split("\n\n")
    return tuple(" ".join(paragraph.replace("``", "").split()) for paragraph in paragraphs)


def related_signatures(rule: Rule) -> tuple[LogSignature, ...]:
    """Return the log signatures (text patterns) by which ``toolkit explain`` finds the rule's fault in job
    output.
    """
    return tuple(s for s in knowledge.signatures() if s.finding == rule.id)


def consequence(rule: Rule, example: Example | None) -> str:
    """Return how a rule affects the predicted outcome of a launch. If the outcome of ``example`` is not "ok",
    the text also names this outcome.
    """
    if rule.advice:
        return "The rule does not change the predicted outcome of a launch."
    modes = f"mode{'s' * (len(rule.modes) > 1)} {', '.join(rule.modes)}"
    where = "every mode" if set(rule.modes) == set(MODES) else modes
    ends = (
        f" In the example, the outcome is {example.outcome}." if example and example.outcome != "ok" else ""
    )
    return f"The rule decides the outcome of a launch in {where}.{ends}"


def general_fix(rule: Rule) -> str:
    """Return the text of a rule's fix, without details of a particular launch. If the rule lists exactly one
    alternative launch mode, the fix names this mode. If the rule lists several modes, the fix says "another
    mode".
    """
    if not rule.instead:
        return rule.fix
    alternative = f"mode {rule.instead[0]}" if len(rule.instead) == 1 else "another mode"
    return f"use {alternative} if it is predicted to work; or {rule.fix}"


def rule_page(rule: Rule) -> str:
    """Return the page of a rule: the fault, its effect on a launch, the facts that the rule uses, an example,
    sample lines of job output, the fix and the source.
    """
    shown = example(rule.id)
    parts = [
        f"{rule.id} ({rule.severity})\n\n{_filled(f'{rule.title}.')}",
        "What happens\n" + "\n\n".join(_filled(text, _INDENT) for text in happens(rule)),
        "Effect on a launch\n" + _filled(consequence(rule, shown), _INDENT),
        "Facts that the rule uses\n" + "\n".join(_recognition_lines(rule)),
    ]
    if shown:
        parts.append("For example\n" + "\n".join(_example(shown)))
    if lines := related_signatures(rule):
        parts.append("In the output of a job\n" + "\n".join(_sample(s) for s in lines))
    parts += ["Fix\n" + _filled(general_fix(rule), _INDENT), "Source\n" + _filled(rule.source, _INDENT)]
    return "\n\n".join(parts)


def _recognition_lines(rule: Rule) -> Iterator[str]:
    if not rule.facts:
        yield _filled(_NO_FACTS, _INDENT)
    width = max((len(fact) for fact in rule.facts), default=0)
    for fact in rule.facts:
        yield _hung(f"{_INDENT}{fact:{width}}  ", meaning(fact) or fact.rpartition(".")[2].replace("_", " "))


def _example(example: Example) -> Iterator[str]:
    yield _filled(example.title, _INDENT)
    yield from (_hung(f"{_INDENT * 2}· ", line) for line in example.evidence)
    if example.outcome != "ok":
        yield _hung(f"{_INDENT * 2}{example.mode}, {example.outcome}: ", example.because)


def document(rules: Iterable[Rule]) -> str:
    """Return a Markdown document with a table of ``rules`` and a section for each rule."""
    known = tuple(rules)
    lines = [
        "# The rules",
        "",
        f"All {len(known)} rules of `toolkit doctor`. Rules about the first steps of a launch come first.",
        "This page is generated.",
        "`toolkit doctor --explain ID` prints the page of a rule, `toolkit doctor --rules --json` lists all.",
        "",
        "| rule | severity | finding |",
        "|---|---|---|",
        *(f"| [{r.id}](#{r.id}) | {r.severity} | {_cell(r.title)} |" for r in known),
    ]
    return "\n".join([*lines, *(line for rule in known for line in _section(rule))]) + "\n"


def _section(rule: Rule) -> Iterator[str]:
    shown = example(rule.id)
    yield from ("", f"## {rule.id}", "", f"**{rule.title}.** ({rule.severity})", "")
    for text in (*happens(rule), consequence(rule, shown)):
        yield from (text, "")
    facts = ", ".join(f"`{fact}`" for fact in rule.facts)
    yield f"- facts: {facts or _NO_FACTS}"
    if shown:
        yield f"- example, {shown.mode}, {shown.outcome}: {_plain(shown.title)}"
        yield from (f"  - `{_plain(line)}`" for line in shown.evidence)
    for signature in related_signatures(rule):
        yield f"- in the output of a job: `{_plain(signature.sample)}`"
    yield f"- fix: {general_fix(rule)}"
    yield f"- source: {rule.source}"


def _sample(signature: LogSignature) -> str:
    """Return a sample line of job output that shows the rule's fault, truncated to the width of the page."""
    line = f"{_INDENT}| {' '.join(signature.sample.split())}"
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _hung(start: str, text: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
