"""Test that every command answers garbage with an error of one line before it contacts any service."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.full.garbage.call import load
from tests.full.garbage.matrix import wrong
from tests.full.garbage.slots import NO_FILES, SLOTS, Slot
from toolkit.cli.main import cli

_EVERYWHERE = {"verbose", "quiet", "debug"}


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    load()


@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: slot.name)
def test_garbage_is_answered_with_one_line_and_exit_2(slot: Slot) -> None:
    with tempfile.TemporaryDirectory(
        prefix="g-"
    ) as folder:  # the path must be short, because messages abbreviate long names
        _, found = wrong(slot, Path(folder))
    assert not found, "\n".join(["", *map(str, found)])


WITHOUT_A_CALL = {
    ("jobs resume", "--verify-key"),
    *(("env add", option) for option in ("--over", "--find-links")),
    ("env remove", "--over"),
}
"""Options that no slot calls.

``jobs resume --verify-key`` needs a job record; tests/unit/cli/test_gate.py tests it. The options of ``env``
need an environment, and have the same check as ``env create``.
"""


def test_the_table_has_every_option_that_takes_a_file() -> None:
    known = {(slot.command, slot.parameter) for slot in SLOTS}
    missing = [
        f"{name} {called}"
        for name, parameter, called in _parameters(cli, ())
        if _may_name_a_file(parameter, called) and (name, called) not in known | WITHOUT_A_CALL
    ]
    assert not missing, f"add to SLOTS, or to NO_FILES: {missing}"


def _may_name_a_file(parameter: click.Parameter, called: str) -> bool:
    if isinstance(parameter.type, click.Path | click.File):
        return True
    return isinstance(parameter.type, click.types.StringParamType) and called not in NO_FILES


def _parameters(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Parameter, str]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _parameters(below, (*path, name))
        return
    for parameter in command.params:
        if parameter.name not in _EVERYWHERE:
            longest = max(parameter.opts, key=len)
            yield " ".join(path), parameter, longest
