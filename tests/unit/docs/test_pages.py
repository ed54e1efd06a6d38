"""Test that toolkit accepts each command in the documentation, with its options and their values."""

import re
import shlex

import click
import pytest

from docs.generate import supported
from docs.generate.outside import ROOT
from tests.unit.tables import every_row
from toolkit.cli.main import cli

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", DOCS / "index.md", DOCS / "tutorial.md"]
PAGES += [*sorted((DOCS / "howto").glob("*.md")), *sorted((DOCS / "explanation").glob("*.md"))]
_BLOCK = re.compile(r"^(?: {4,}|\$ | {4}\$ )(?:~/\.local/toolkit/bin/)?toolkit (?P<words>.+)$", re.MULTILINE)
_SHORTENED = "…"


def commands(text):
    whole = text.replace("\\\n", " ")
    found = [match["words"] for match in _BLOCK.finditer(whole)]
    return [shlex.split(words, comments=True) for words in found if _SHORTENED not in words]


def parse(words):
    command, name, parent = cli, "toolkit", None
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        parent = click.Context(command, info_name=name, parent=parent)
        name, words = words[0], words[1:]
        command = command.get_command(parent, name)
        assert command is not None, f"toolkit has no command {name}"
    until = next((n for n, word in enumerate(words) if word in {">", "|", "&&", "<"}), len(words))
    command.make_context(name, words[:until], parent=parent)


SAID = [(path, words) for path in PAGES for words in commands(path.read_text())]


@every_row(("path", "words"), SAID, ids=[f"{p.stem}-{' '.join(w)}" for p, w in SAID])
def test_a_command_of_a_page_is_one_of_the_program(path, words):
    try:
        parse(words)
    except click.exceptions.Exit as end:  # options such as --version exit
        assert end.exit_code == 0


def test_every_guide_has_commands():
    named = {path for path, _ in SAID}
    assert {p for p in PAGES if p.parent.name == "howto" and p.stem != "index"} <= named
    assert len(SAID) > 60


@every_row("words", ["lunch mnist", "launch --nods 2", "launch --nodes two", "image bild x"])
def test_a_wrong_command_would_be_noticed(words):
    with pytest.raises((click.UsageError, AssertionError)):
        parse(words.split())


def test_commands_are_found_in_blocks_alone():
    text = "Use `toolkit x`.\n\n    toolkit a --b \\\n        c  # why\n    $ toolkit d\n    toolkit e …\n"
    assert commands(text) == [["a", "--b", "c"], ["d"]]


def test_the_page_of_supported_software_has_the_table_of_the_readme():
    page = supported.pages()[supported.PAGE]
    assert page.startswith("# Supported software and hardware\n")
    assert page.count("\n| ") >= 9
    assert "](docs/" not in page
