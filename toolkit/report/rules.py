"""The list of rules, and the page of one from its own docstring."""

import inspect
import textwrap
from collections.abc import Iterable

from toolkit.engine.rule import Rule

_WIDTH = 80


def rule_list(rules: Iterable[Rule]) -> str:
    """Return a line a rule, or more where its title is long."""
    return "\n".join(_hung(f"{r.severity:8} {r.id:32} ", r.title) for r in rules)


def rule_page(rule: Rule) -> str:
    """Return what a rule finds, what it needs to know, what mends it and where it was learnt."""
    said = inspect.cleandoc(rule.check.__doc__ or "").split("\n\n")
    needs = ", ".join(rule.needs) or "nothing that may be unknown"
    return "\n".join(
        [
            f"{rule.id} ({rule.severity})",
            "",
            textwrap.fill(f"{rule.title}.", _WIDTH),
            "",
            "\n\n".join(textwrap.fill(" ".join(paragraph.split()), _WIDTH) for paragraph in said),
            "",
            _hung("modes:   ", ", ".join(rule.modes)),
            _hung("needs:   ", needs),
            _hung("fix:     ", rule.fix),
            _hung("source:  ", rule.source),
        ]
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
