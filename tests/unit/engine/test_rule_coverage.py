"""Test that each rule's test launches reach every branch of the rule, with and without a finding."""

import ast
import dataclasses
import json
from pathlib import Path

import coverage
import pytest

import toolkit.engine.rules as rules_package
from tests.unit.engine.fixtures import outcomes, tables
from tests.unit.tables import every_row
from toolkit.engine.case import Case
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES
from toolkit.engine.rule import Rule
from toolkit.model.finding import Finding
from toolkit.model.prediction import MODES

FIRES, QUIET, UNDECIDED = tables()
OUTCOMES = outcomes()
BY_ID = {rule.id: rule for rule in RULES}
FOLDER = Path(rules_package.__path__[0])
FILES = sorted(file for file in FOLDER.glob("*.py") if file.name != "__init__.py")


def said(rule: Rule, of: Case) -> Finding | None:
    _, findings = judge(of, (rule,))
    return next(iter(findings), None)


def numbered(table: dict[str, list[Case]]) -> list[tuple[str, Case]]:
    return [(name, one) for name, cases in table.items() if name in BY_ID for one in cases]


def of_rule(value: str | Case) -> str:
    return value if isinstance(value, str) else ""


def test_every_rule_has_a_case_that_fires_it_and_one_that_does_not():
    for table, what in ((FIRES, "fires"), (QUIET, "does not fire")):
        lacking = sorted(set(BY_ID) - {name for name, cases in table.items() if cases})
        assert not lacking, f"no case in tests/unit/engine/rules {what} these rules: {', '.join(lacking)}"
    unknown = sorted((set(FIRES) | set(QUIET) | set(UNDECIDED)) - set(BY_ID))
    assert not unknown, f"cases for rules that are not registered: {', '.join(unknown)}"


def test_every_rule_of_a_module_is_registered():
    for file in FILES:
        module = __import__(f"{rules_package.__name__}.{file.stem}", fromlist=["x"])
        made = [value for value in vars(module).values() if isinstance(value, Rule)]
        forgotten = [rule.id for rule in made if rule not in RULES]
        assert not forgotten, f"{file.name}: not in toolkit/engine/registry.py: {', '.join(forgotten)}"


def test_ids_are_slugs_and_are_used_once():
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert all(name.replace("-", "").isalnum() and name == name.lower() for name in ids)


@every_row(("name", "of"), numbered(FIRES), ids=of_rule)
def test_a_rule_fires_and_says_on_what_it_rests(name: str, of: Case):
    rule = BY_ID[name]
    finding = said(rule, of)
    assert finding is not None
    assert not finding.undecided or finding.severity != "info", finding.evidence
    assert finding.evidence
    assert all(finding.evidence)
    assert not [line for line in finding.evidence if "the probe did not read this fact" in line]
    assert finding.title
    assert finding.fix
    assert finding.source


@every_row(("name", "of"), numbered(FIRES), ids=of_rule)
def test_what_nobody_measured_is_told_as_not_decided_and_no_fault(name: str, of: Case):
    prediction, (finding, *_) = judge(of, (BY_ID[name],))
    assert finding.undecided == (prediction.outcome == "unknown")
    if finding.undecided:
        assert finding.severity == "warning"
        assert finding.title.startswith("Not decided: ") or finding.title.endswith("is unknown")
        assert "try the launch: `toolkit" in finding.fix


@every_row("rule", [r for r in RULES if not r.advice], ids=lambda r: r.id)
def test_a_rule_that_decides_leads_to_its_outcome(rule: Rule):
    assert rule.id in OUTCOMES, f"tests/unit/engine/rules: OUTCOMES lacks {rule.id}"
    assert rule.id in FIRES
    of = FIRES[rule.id][0]
    prediction, _ = judge(of, RULES)
    assert prediction.outcome == OUTCOMES[rule.id], prediction.because


@every_row("rule", [r for r in RULES if r.advice], ids=lambda r: r.id)
def test_advice_changes_no_outcome(rule: Rule):
    rules = (rule,)
    assert {judge(of, rules)[0].outcome for of in FIRES.get(rule.id, [])} == {"ok"}


@every_row(("name", "of"), numbered(QUIET), ids=of_rule)
def test_a_rule_is_silent_where_all_is_known_and_nothing_is_wrong(name: str, of: Case):
    finding = said(BY_ID[name], of)
    assert finding is None, finding


@every_row("name", sorted(set(QUIET) & set(BY_ID)))
def test_a_silent_rule_was_not_silent_for_want_of_facts(name: str):
    rule = BY_ID[name]
    lacking = {fact for fact in rule.facts if all(of.state(fact) == "unknown" for of in QUIET[name])}
    assert not lacking


@every_row(("name", "of"), numbered(UNDECIDED), ids=of_rule)
def test_a_rule_says_which_facts_it_lacks(name: str, of: Case):
    rule = BY_ID[name]
    finding = said(rule, of)
    assert finding is not None
    assert finding.undecided
    assert finding.evidence
    named = finding.fix.partition(": ")[2].split(", ")
    assert not [fact for fact in named if not _covered(fact, rule)]


@every_row("rule", RULES, ids=lambda r: r.id)
def test_a_rule_asks_for_no_fact_that_it_does_not_declare(rule: Rule):
    cases = [
        of for table in (FIRES, QUIET, UNDECIDED) for of in table.get(rule.id, []) if of.mode in rule.modes
    ]
    asked = {top(name) for of in cases for name in asked_for(rule, of)} - ALWAYS_KNOWN
    assert asked <= {top(name) for name in rule.facts}


ALWAYS_KNOWN = {"host.place", "image.path", "image.format"}


def asked_for(rule: Rule, of: Case) -> set[str]:
    fresh = dataclasses.replace(of)
    judge(fresh, (rule,))
    return fresh.asked_facts


def top(name: str) -> str:
    """Return the fact that contains a field: ``host.slurm`` for ``host.slurm.version``."""
    return ".".join(name.split(".")[:2])


def _covered(fact: str, rule: Rule) -> bool:
    return any(fact == told or fact.startswith(f"{told}.") for told in rule.facts)


@every_row("rule", RULES, ids=lambda r: r.id)
def test_a_rule_is_described_and_its_facts_exist(rule: Rule):
    assert rule.check.__doc__
    assert not rule.title.endswith(".")
    assert set(rule.modes) <= set(MODES)
    for fact in rule.facts:
        side, _, field = fact.partition(".")
        assert _exists(side, field), fact


def _exists(side: str, field: str) -> bool:
    one = FIRES[next(iter(FIRES))][0]
    kinds = {"host": type(one.host_facts), "image": type(one.image_facts)}
    parts = {"slurm": "SlurmFacts", "runtime": "ContainerRuntime", "mpi": "ImageMpi"}
    kind = kinds[side]
    for part in field.split("."):
        if part not in kind.__struct_fields__:
            return False
        kind = getattr(__import__(kind.__module__, fromlist=["x"]), parts[part]) if part in parts else kind
    return True


def _functions(file: Path) -> dict[range, str]:
    tree = ast.parse(file.read_text())
    return {
        range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1): node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[object]]]:
    """Run every rule on its test launches, and return the coverage report of each file."""
    report = tmp_path_factory.mktemp("coverage") / "report.json"
    measure = coverage.Coverage(branch=True, data_file=None, config_file=False, include=[f"{FOLDER}/*"])
    measure.start()
    try:
        for table in (FIRES, QUIET, UNDECIDED):
            for name, cases in table.items():
                for of in cases:
                    if name in BY_ID:
                        said(BY_ID[name], of)
    finally:
        measure.stop()
    measure.json_report(outfile=str(report))
    measured = json.loads(report.read_text())["files"]
    return {Path(name).name: found for name, found in measured.items()}


@every_row("file", FILES, ids=lambda f: f.name)
def test_the_cases_of_the_rules_reach_every_branch_of_their_code(file: Path, reached):
    assert file.name in reached, f"no case reaches {file.name}"
    functions = _functions(file)
    found = reached[file.name]
    missed = [(line, f"no case goes on to {_where(target)}") for line, target in found["missing_branches"]]
    missed += [(line, "no case reaches this line") for line in found["missing_lines"]]
    told = [f"{file.name}:{line} ({_inside(functions, line)}): {why}" for line, why in sorted(missed)]
    assert not (wrong := [line for line in told if " (): " not in line]), "\n".join(wrong)


def _inside(functions: dict[range, str], line: object) -> str:
    return next((name for lines, name in functions.items() if line in lines), "")


def _where(target: int) -> str:
    return "the end" if target < 0 else f"line {target}"
