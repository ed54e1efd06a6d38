"""The page of one rule, from its own docstring."""

import inspect

from toolkit.engine.rule import Rule


def rule_page(rule: Rule) -> str:
    """Return what a rule finds, what it needs to know, what mends it and where it was learnt."""
    needs = ", ".join(rule.needs) or "nothing that may be unknown"
    return "\n".join(
        [
            f"{rule.id} ({rule.severity})",
            "",
            f"{rule.title}.",
            "",
            inspect.cleandoc(rule.check.__doc__ or ""),
            "",
            f"modes:   {', '.join(rule.modes)}",
            f"needs:   {needs}",
            f"fix:     {rule.fix}",
            f"source:  {rule.source}",
        ]
    )
