"""Test the generated files of a release, and the list of files that are out of date."""

import tomllib
from functools import cache

import pytest

from docs.generate import released
from docs.generate.examples import examples
from docs.generate.released import changed, files, main, write
from tests.unit.engine.fixtures import tables
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES


@cache
def made_files() -> dict[str, str]:
    return files()


@cache
def made_examples() -> str:
    return examples()


def test_the_pages_and_the_shared_files_are_made():
    assert {"docs/rules.md", "docs/matrix.md", "share/man/man1/toolkit.1"} <= set(made_files())
    assert all(f"\n## {rule.id}\n" in made_files()["docs/rules.md"] for rule in RULES)
    assert "\n## Trainings\n" in made_files()["docs/matrix.md"]


def test_every_rule_gets_an_example_of_what_it_says():
    made = tomllib.loads(made_examples())["rule"]
    assert list(made) == [rule.id for rule in RULES]
    for rule in RULES:
        case = tables()[0][rule.id][0]
        finding = next(f for f in judge(case, (rule,))[1] if f.id == rule.id)
        assert (made[rule.id]["title"], made[rule.id]["evidence"]) == (finding.title, list(finding.evidence))


def test_files_that_differ_lack_or_are_left_over_are_named_and_written(tmp_path):
    made = {"docs/a.md": "new\n", "docs/b.md": "same\n", "share/man/c.1": "made\n"}
    for name, text in {"docs/a.md": "old\n", "docs/b.md": "same\n", "share/man/gone.1": "x"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    differing = ["docs/a.md", "share/man/c.1", "share/man/gone.1"]
    assert changed(tmp_path, made) == differing
    assert (tmp_path / "docs/a.md").read_text() == "old\n"
    assert write(tmp_path, made) == differing
    assert {name: (tmp_path / name).read_text() for name in made} == made
    assert not (tmp_path / "share/man/gone.1").exists()
    assert changed(tmp_path, made) == []


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    made, made_of_rules = made_files(), made_examples()
    monkeypatch.setattr(released, "ROOT", tmp_path)
    monkeypatch.setattr(released, "files", lambda: made)
    monkeypatch.setattr(released.examples, "examples", lambda: made_of_rules)
    write(tmp_path, made)
    write(tmp_path, {"recipes/knowledge/examples.toml": made_of_rules})
    return tmp_path


def test_the_check_names_what_a_release_would_change_and_changes_nothing(checkout, capsys):
    assert main(["--check"]) == 0
    assert capsys.readouterr() == ("", "")
    page = checkout / "docs" / "matrix.md"
    page.write_text("old")
    assert main(["--check"]) == 1
    out, err = capsys.readouterr()
    assert out == "docs/matrix.md\n"
    assert "python -m docs.generate.released" in err
    assert page.read_text() == "old"
    assert main([]) == 0
    assert main(["--check"]) == 0
