"""Make ``recipes/knowledge/examples.toml`` and ``docs/rules.md`` from the rules and their cases.

    .venv/bin/python -m tests.unit.engine.rule_pages

writes them; a test says when that has to be done.
"""

import json
from pathlib import Path

from tests.unit.engine.fixtures import tables
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "recipes" / "knowledge" / "examples.toml"
DOCUMENT = ROOT / "docs" / "rules.md"
_HEAD = """\
# For every rule what it says of one launch on which it fires. Made from its tests:
# .venv/bin/python -m tests.unit.engine.rule_pages
"""


def examples() -> str:
    """Return what ``examples.toml`` has to be: the first case that fires each rule, judged by that rule."""
    fires = tables()[0]
    parts = [_HEAD]
    for rule in RULES:
        of = fires[rule.id][0]
        prediction, findings = judge(of, (rule,))
        finding = next(f for f in findings if f.id == rule.id)
        because = prediction.because if prediction.outcome != "ok" else "as far as this rule goes, it works"
        told = [
            ("title", finding.title),
            ("mode", of.mode),
            ("outcome", prediction.outcome),
            ("because", because),
        ]
        lines = [f"{name} = {_text(value)}" for name, value in told]
        evidence = "".join(f"    {_text(line)},\n" for line in finding.evidence)
        parts.append(f"[rule.{rule.id}]\n" + "\n".join(lines) + f"\nevidence = [\n{evidence}]\n")
    return "\n".join(parts)


def _text(value: str) -> str:
    """Return a basic string of TOML, which is that of JSON."""
    return json.dumps(value, ensure_ascii=False)


def document() -> str:
    """Return what ``docs/rules.md`` has to be."""
    from toolkit.report.rules import document as made

    return made(RULES)


if __name__ == "__main__":
    EXAMPLES.write_text(examples())
    DOCUMENT.write_text(document())
