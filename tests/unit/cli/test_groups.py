"""Test that help shows the options of ``launch`` and ``scale`` in groups."""

import importlib

import click
import pytest
from click.testing import CliRunner

from tests.unit.tables import every_row
from toolkit.cli.main import cli
from toolkit.cli.options.groups import GROUP_OF, group_of
from toolkit.cli.options.whole import WholeNumber

GROUPS = ["Common:", "Resources:", "Image:", "Program:", "Slurm:", "Advanced:"]
LONG = ("launch", "scale")


def options(name):
    command = importlib.import_module(f"toolkit.cli.{name}").command
    return {param.name for param in command.params if isinstance(param, click.Option) and not param.hidden}


@every_row("name", LONG)
def test_help_has_the_groups_in_order_at_80_columns(name):
    lines = CliRunner().invoke(cli, [name, "--help"], terminal_width=80).stdout.splitlines()
    assert [line for line in lines if line in GROUPS] == GROUPS
    assert [line for line in lines[lines.index("Common:") :] if len(line) > 80] == []
    assert not any("INTEGER" in line for line in lines)


def commands(command, *words):
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), *words, name)


@every_row("words", list(commands(cli)))
def test_help_breaks_lines_between_words(words):
    lines = CliRunner().invoke(cli, [*words, "--help"], terminal_width=80).stdout.splitlines()
    assert [line for line in lines if line.endswith("-") or "TEXT" in line] == []
    assert not any(line.endswith("...") for line in lines if not line.startswith("Usage: "))
    assert [line for line in lines if len(line) > 80] == []


def test_a_group_names_only_options_that_there_are():
    assert set(GROUP_OF) <= options("launch") | options("scale") | options("notebook") | {
        "help",
        "host",
        "cluster",
    }


def test_what_no_group_names_is_advanced():
    assert group_of("ssh_config") == "Advanced"
    assert group_of("image") == "Common"


@every_row(
    ("value", "bounds", "said"),
    [
        ("two", (1,), "'two': expected a whole number of at least 1"),
        ("0", (1,), "0: expected a whole number of at least 1"),
        ("9", (1, 8), "9: expected a whole number from 1 to 8"),
        ("9" * 5000, (1,), "expected a whole number of at least 1"),
    ],
)
def test_a_wrong_number_is_told_what_to_write(value, bounds, said):
    with pytest.raises(click.BadParameter) as caught:
        WholeNumber(*bounds).convert(value, None, None)
    assert said in caught.value.message


def test_a_number_within_bounds():
    assert WholeNumber(1, 8).convert("8", None, None) == 8
