"""Test that toolkit refuses an empty value of an option or argument, which usually comes from an unset
variable.
"""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.unit.tables import every_row
from toolkit.cli.main import cli
from toolkit.errors import BadInput


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    ctx = click.Context(command)
    for name in command.list_commands(ctx):
        if (inner := command.get_command(ctx, name)) is not None:
            yield from commands(inner, (*path, name))


ALL = dict(commands(cli))
OPTIONS = [
    (path, max(param.opts, key=len))
    for path, command in ALL.items()
    for param in command.params
    if isinstance(param, click.Option) and not param.is_flag and not param.count
]


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_every_option_of_every_command_refuses_an_empty_value():
    assert len(OPTIONS) > 150
    wrong = []
    for path, option in OPTIONS:
        error = CliRunner().invoke(cli, (*path, f"{option}="), obj={}).exception
        if not isinstance(error, BadInput) or error.message != f"{option}: the value is empty":
            wrong.append((path, option, error))
    assert not wrong


@every_row("option", ["--verify-key", "--fix", "--site", "--image", "--host", "--cluster"])
def test_a_value_of_its_own_word_may_not_be_empty_either(option):
    error = CliRunner().invoke(cli, ("launch", option, "", "--", "true"), obj={}).exception
    assert isinstance(error, BadInput)
    assert error.message == f"{option}: the value is empty"
    assert error.fix == "give a value; if you gave a shell variable, set the variable"


def test_every_argument_refuses_an_empty_value():
    wrong = []
    for path, command in ALL.items():
        arguments = [p for p in command.params if isinstance(p, click.Argument)]
        if arguments and arguments[0].type is not click.UNPROCESSED:
            error = CliRunner().invoke(cli, (*path, ""), obj={}).exception
            if not isinstance(error, BadInput) or "the value is empty" not in error.message:
                wrong.append((path, error))
    assert not wrong


def test_words_of_another_program_may_be_empty():
    error = CliRunner().invoke(cli, ("launch", "--image", "/nope.sif", "--", "echo", ""), obj={}).exception
    assert isinstance(error, BadInput)
    assert "no such file" in error.message


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOOLKIT_SITE", "")
    error = CliRunner().invoke(cli, ("launch", "--image", "/nope.sif", "--", "true"), obj={}).exception
    assert "no such file" in error.message
