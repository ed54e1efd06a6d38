"""Test the project's other files: README, CONTRIBUTING, the citation, and files for GitHub and pre-commit."""

import re
from pathlib import Path
from typing import Any

import yaml

from docs.generate.outside import ROOT
from tests.unit.tables import every_row
from toolkit import __version__

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ISSUES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
HOOKS = ROOT / ".pre-commit-config.yaml"
FILES = [*WORKFLOWS, *ISSUES, HOOKS, ROOT / "CITATION.cff"]
_VARIABLE = re.compile(r"^(\w+) *[:?]?= *(.*)$", re.MULTILINE)
_NAME = re.compile(r"\$\((\w+)\)")
_TARGET = re.compile(r"^(?!\.PHONY)([\w./-]+(?: [\w./-]+)*) *:(?!=)", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?://)(?P<path>[^)#]*)(?:#(?P<anchor>[^)]*))?\)")
_PINNED = re.compile(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def targets(text: str) -> set[str]:
    values = dict(_VARIABLE.findall(text))
    lines = _NAME.sub(lambda found: values.get(found[1], found[0]), text)
    return {name for names in _TARGET.findall(lines) for name in names.split()}


MAKEFILE = targets((ROOT / "Makefile").read_text())


def called(command: str) -> set[str]:
    words = [run.split() for run in re.findall(r"\bmake ([^\n;&|`]+)", command)]
    return {word for run in words for word in run if "=" not in word and not word.startswith("-")}


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in loaded(path)["jobs"].values() for step in job["steps"]]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


@every_row("page", PAGES, ids=lambda path: path.stem)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    wrong = []
    for found in _LINK.finditer(page.read_text()):
        target = page.parent / found["path"] if found["path"] else page
        if not target.exists() or (found["anchor"] and found["anchor"] not in anchors(target)):
            wrong.append(found[0])
    assert not wrong


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}


def test_the_guide_for_contributors_names_only_files_and_targets_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = {name for cell in re.findall("`([^`\n]+)`", text) for name in cell.split()}
    files = {
        name for name in named if re.match(r"(toolkit|tests|docs|recipes|containers|slurm|share)/", name)
    }
    assert len(files) > 30
    missing = {name for name in files if not re.search("NAME|TOPIC", name) and not list(ROOT.glob(name))}
    assert missing == set()
    asked = {name for cell in re.findall("`([^`\n]+)`", text) for name in called(cell)}
    assert asked >= {"test", "test-all", "words"}
    assert asked - MAKEFILE == set()


@every_row("path", FILES, ids=lambda path: path.name)
def test_a_file_is_yaml_and_not_empty(path: Path) -> None:
    assert isinstance(loaded(path), dict)


def test_workflows_and_hooks_call_targets_that_exist() -> None:
    commands = [step.get("run", "") for path in WORKFLOWS for step in steps(path)]
    commands += [hook["entry"] for repo in loaded(HOOKS)["repos"] for hook in repo["hooks"]]
    asked = {name for command in commands for name in called(command)}
    assert {"test", "unit", "test-all", "words"} <= asked
    assert asked - MAKEFILE == set()


@every_row("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_least_rights_and_pinned_actions(path: Path) -> None:
    workflow = loaded(path)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"] == {"contents": "read"}
        assert job["timeout-minutes"] > 0
    lines = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not _PINNED.search(line)] == []
    checkouts = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_the_workflow_runs_every_python_and_the_nightly_tests() -> None:
    workflow = loaded(ROOT / ".github" / "workflows" / "ci.yml")
    pythons = workflow["jobs"]["unit"]["strategy"]["matrix"]["python"]
    assert pythons[0] == "3.11"
    assert [int(one.split(".")[1]) for one in pythons] == list(range(11, 11 + len(pythons)))
    assert workflow[True]["schedule"]  # YAML 1.1 reads the key `on` as true
    assert "schedule" in workflow["jobs"]["nightly"]["if"]


def test_the_workflow_installs_the_packages_that_setup_needs() -> None:
    setup = (ROOT / "scripts" / "setup.sh").read_text()
    needed = set(re.findall(r"^    \w+:([\w.-]+)", setup, re.MULTILINE))
    installed = set(loaded(ROOT / ".github" / "workflows" / "ci.yml")["env"]["PACKAGES"].split())
    assert needed - {"docker.io", "npm"} == installed


def test_issue_templates_ask_for_the_doctor_and_have_the_fields_of_github() -> None:
    forms = [path for path in ISSUES if path.name != "config.yml"]
    assert len(forms) >= 3
    for path in forms:
        form = loaded(path)
        assert {"name", "description", "body"} <= set(form)
        asked = [item for item in form["body"] if item["type"] != "markdown"]
        ids = [item["id"] for item in asked]
        assert len(ids) == len(set(ids))
        assert all(item["attributes"]["label"] for item in asked)
        assert any("toolkit doctor" in label and "--json" in label for label in labels(asked)), path.name


def labels(items: list[dict[str, Any]]) -> list[str]:
    return [item["attributes"]["label"] for item in items]


def test_hooks_have_the_programs_that_contributors_install() -> None:
    hooks = {hook["id"]: hook for repo in loaded(HOOKS)["repos"] for hook in repo["hooks"]}
    assert {"ruff-format", "ruff", "codespell", "words", "shellcheck"} == set(hooks)
    assert all(hook["language"] == "system" for hook in hooks.values())
    locked = (ROOT / "requirements" / "dev.txt").read_text()
    own = {
        hook["entry"].split()[0].removeprefix(".venv/bin/")
        for hook in hooks.values()
        if ".venv" in hook["entry"]
    }
    assert own
    assert [name for name in own if f"\n{name}==" not in locked] == []


def test_the_citation_names_the_release_and_its_date() -> None:
    citation = loaded(ROOT / "CITATION.cff")
    assert citation["version"] == __version__
    assert citation["license"] == "Apache-2.0"
    assert f"\n## {__version__} - {citation['date-released']}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


@every_row(
    ("command", "asked"),
    [
        ("make test CHANGED=1", {"test"}),
        ("cd x && make -j2 unit docs", {"unit", "docs"}),
        ("cmake test", set()),
        ("make test; make words", {"test", "words"}),
    ],
)
def test_targets_are_read_from_commands(command: str, asked: set[str]) -> None:
    assert called(command) == asked


def test_targets_are_read_with_the_values_of_variables() -> None:
    text = (
        "V := .venv\nALL := test-a test-b\n.PHONY: x\n$(V)/ready: y\n$(ALL): test-%: z\n\tdo it\none two:\n"
    )
    assert targets(text) == {".venv/ready", "test-a", "test-b", "one", "two"}
