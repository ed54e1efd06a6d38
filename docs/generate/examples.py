"""Make ``recipes/knowledge/examples.toml``: for each rule, its finding about one launch.

Each launch is the first case of the rule's tests. toolkit ships ``examples.toml``, and reads it to explain a
rule.
"""

import json

from tests.unit.engine.fixtures import tables
from toolkit.engine.case import Case
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES
from toolkit.engine.rule import Rule

_HEAD = """\
# For each rule: its finding about one launch. `make release` writes this file by this command:
# .venv/bin/python -m docs.generate.released
"""


def examples() -> str:
    """Return the text of ``examples.toml``: for each rule, the first case in which it reports a finding."""
    fires = tables()[0]
    return "\n".join([_HEAD, *(_example(rule, fires[rule.id][0]) for rule in RULES)])


def _example(rule: Rule, case: Case) -> str:
    prediction, findings = judge(case, (rule,))
    finding = next(f for f in findings if f.id == rule.id)
    because = prediction.because if prediction.outcome != "ok" else "this rule alone does not stop the launch"
    values = {
        "title": finding.title,
        "mode": case.mode,
        "outcome": prediction.outcome,
        "because": because,
    }
    lines = [f"{name} = {_string(value)}" for name, value in values.items()]
    evidence = "".join(f"    {_string(line)},\n" for line in finding.evidence)
    return f"[rule.{rule.id}]\n" + "\n".join(lines) + f"\nevidence = [\n{evidence}]\n"


def _string(value: str) -> str:
    """Return a basic string of TOML, which has the syntax of a JSON string."""
    return json.dumps(value, ensure_ascii=False)
