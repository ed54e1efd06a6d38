"""Test that the reference of commands contains everything that ``--help`` prints."""

import click
import pytest

from docs.generate.commands import Block, below, blocks, contexts, options, pages, summary, usage
from tests.unit.tables import every_row
from toolkit.cli.frame.commands import COMMANDS

CONTEXTS = list(contexts())


@pytest.fixture(autouse=True)
def own_help(monkeypatch):
    """Reset the help option of each command, because click caches it with the names of its first context."""
    for ctx in CONTEXTS:
        monkeypatch.setattr(ctx.command, "_help_option", None, raising=False)


def context(text):
    return click.Context(click.Command("x", help=text), info_name="x")


def test_the_index_names_every_command():
    index = pages()["reference/cli/index.md"]
    for ctx in CONTEXTS[1:]:
        assert f"[`{ctx.command_path}`]" in index


def test_the_index_says_how_commands_end():
    index = pages()["reference/cli/index.md"]
    assert "| 0 | The command succeeded. |" in index
    assert "| 2 | An option or a file is wrong" in index


def test_a_command_of_the_program_has_a_page_of_its_own():
    assert set(pages()) == {f"reference/cli/{name}.md" for name in ("index", *COMMANDS)}


@every_row("ctx", CONTEXTS[1:], ids=lambda c: c.command_path)
def test_a_page_has_every_option_with_its_meaning(ctx):
    page = pages()[f"reference/cli/{ctx.command_path.split()[1]}.md"]
    assert usage(ctx) in page
    for option in ctx.command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.opts[0] in page
            assert (option.help or "").split("  [")[0].replace("|", "\\|") in page


@every_row("ctx", CONTEXTS, ids=lambda c: c.command_path)
def test_nothing_of_the_help_is_left_unread(ctx):
    parts = list(blocks(ctx))
    assert parts[0].kind == "text"
    assert not any("\b" in part.text or "Example" in part.text for part in parts)
    assert summary(ctx)
    assert ("-h, --help", "Show this message and exit.") in options(ctx)
    assert all(meaning for _, meaning in options(ctx))


@every_row("ctx", CONTEXTS, ids=lambda c: c.command_path)
def test_an_example_can_be_copied_from_the_help_of_a_terminal(ctx):
    page = click.Context(
        ctx.command, info_name=ctx.info_name, parent=ctx.parent, terminal_width=80
    ).get_help()
    for part in blocks(ctx):
        for line in part.text.splitlines() if part.kind == "examples" else ():
            assert line in page


def test_paragraphs_lines_and_examples_are_told_apart():
    text = (
        "Do it,\n    now.\n\n\b\n  kept as\n    it is\n\n\b\nExamples:\n  x one\n  x two\n\nExample: x three"
    )
    assert list(blocks(context(text))) == [
        Block("text", "Do it, now."),
        Block("lines", "kept as\n  it is"),
        Block("examples", "x one\nx two"),
        Block("examples", "x three"),
    ]


def test_a_command_that_is_no_group_has_nothing_below_it():
    assert below(context("Do it.")) == []
    assert len(below(CONTEXTS[0])) == len(COMMANDS)


def test_the_choices_of_an_option_are_words_of_their_own():
    page = pages()["reference/cli/image.md"]
    assert "| `--for` `default` `size` `speed` `start` |" in page
    assert "| `-o, --output PATH` |" in page
