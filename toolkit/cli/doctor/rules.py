"""``toolkit doctor --rules`` and ``--explain ID``: print the rules of the prediction."""

from toolkit.cli.frame.say import say_json, say_text
from toolkit.errors import BadInput
from toolkit.near import suggest_near


def show_rules(page: str | None, *, as_json: bool) -> None:
    """Print the description of the rule with the ID ``page``. If ``page`` is ``None``, list all rules.

    Raises:
        BadInput: if no rule has the ID ``page``.
    """
    from toolkit.engine.registry import RULES

    chosen = [rule for rule in RULES if page in {None, rule.id}]
    if not chosen:
        known = [rule.id for rule in RULES]
        raise BadInput(
            f"--explain {page}: unknown rule{suggest_near(page or '', known)}",
            fix="list the rules: `toolkit doctor --rules`",
        )
    if as_json:
        from toolkit.report.doctor.as_json import rules_json

        say_json(rules_json(chosen))
        return
    from toolkit.report.rules import rule_list, rule_page

    say_text(rule_page(chosen[0]) if page else rule_list(chosen))
