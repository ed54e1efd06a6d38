"""The one place that exits: what each kind of error says and ends in."""

import sys

import click
import pytest

from toolkit.cli import main as program
from toolkit.cli.commands import COMMANDS
from toolkit.errors import BadInput, CheckFailed, Interrupted, Missing


def run(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        program.main(list(words))
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


@pytest.fixture
def failing(monkeypatch):
    """A command that raises what it is given; stands in for any command."""

    def install(error):
        @click.command("probe")
        def command():
            raise error

        monkeypatch.setitem(sys.modules, "tests.failing", type("Module", (), {"command": command}))
        monkeypatch.setitem(program.COMMANDS, "probe", ("tests.failing", "fail"))

    return install


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CheckFailed("a", fix="b"), 1),
        (BadInput("a", fix="b"), 2),
        (Missing("a", fix="b"), 3),
        (Interrupted("a", fix="b"), 130),
    ],
)
def test_each_error_has_its_exit_code_a_line_and_a_fix(capsys, failing, error, code):
    failing(error)
    assert run(capsys, "probe") == (code, "", "toolkit: a\n  fix: b\n")


def test_detail_stands_before_the_message(capsys, failing):
    failing(CheckFailed("the build failed", detail=["step 3", "no space"]))
    assert run(capsys, "probe")[2] == "    step 3\n    no space\ntoolkit: the build failed\n"


def test_ctrl_c_ends_in_130(capsys, failing):
    failing(KeyboardInterrupt())
    code, out, err = run(capsys, "probe")
    assert (code, out, err.strip()) == (130, "", "toolkit: interrupted")


def test_no_traceback_reaches_a_person(capsys, failing):
    failing(ZeroDivisionError("division by zero"))
    code, _, err = run(capsys, "probe")
    assert code == 1
    assert "Traceback" not in err
    assert "--debug" in err


def test_debug_shows_the_traceback(failing):
    failing(ZeroDivisionError("division by zero"))
    with pytest.raises(ZeroDivisionError):
        program.main(["--debug", "probe"])


def test_a_file_that_the_system_refuses_is_named(capsys, failing):
    failing(PermissionError(13, "Permission denied", "/etc/shadow"))
    assert run(capsys, "probe") == (1, "", "toolkit: /etc/shadow: Permission denied\n")


@pytest.mark.parametrize(
    "words", [("nonsense",), ("--nonsense",), ("completion", "tcsh"), ("launch", "--nodes", "x")]
)
def test_a_wrong_call_ends_in_2_without_traceback(capsys, words):
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "Traceback" not in err


def test_every_command_of_the_table_exists_and_has_help(capsys):
    for name in COMMANDS:
        code, out, _ = run(capsys, name, "--help")
        assert code == 0, name
        assert "Usage: toolkit " + name in out


def test_help_lines_follow_the_house_style():
    for name, (_, text) in COMMANDS.items():
        assert len(text) <= 60, name
        assert not text.endswith("."), name
        assert text[0].isupper(), name


def test_version(capsys):
    from toolkit import __version__

    assert run(capsys, "--version") == (0, f"toolkit {__version__}\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed(capsys, shell):
    code, out, _ = run(capsys, "completion", shell)
    assert code == 0
    assert "_TOOLKIT_COMPLETE" in out
