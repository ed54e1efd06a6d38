"""The one place that exits: what each kind of error says and ends in."""

import io
import os
import signal
import sys

import click
import pytest

from toolkit.cli import main as program
from toolkit.cli.commands import COMMANDS
from toolkit.errors import BadInput, CheckFailed, Damaged, Interrupted, Missing


def run(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        program.main(list(words))
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


@pytest.fixture
def installed(monkeypatch):
    """A command that does what it is given; stands in for any command."""

    def install(work):
        command = click.command("probe")(work)
        monkeypatch.setitem(sys.modules, "tests.failing", type("Module", (), {"command": command}))
        monkeypatch.setitem(program.COMMANDS, "probe", ("tests.failing", "fail"))

    return install


@pytest.fixture
def failing(installed):
    """A command that raises what it is given."""

    def install(error):
        def work():
            raise error

        installed(work)

    return install


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CheckFailed("a", fix="b"), 1),
        (Damaged("a", fix="b"), 2),
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


@pytest.fixture
def handlers():
    """What the program does with signals is the process's; put it back."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    kept = [signal.getsignal(number) for number in numbers]
    for number in numbers:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in zip(numbers, kept, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_and_a_terminal_that_goes_end_in_130(capsys, installed, handlers, number):
    installed(lambda: signal.raise_signal(number))
    code, _, err = run(capsys, "probe")
    assert (code, err.strip()) == (130, "toolkit: interrupted")


def test_what_nohup_has_ignored_stays_ignored(capsys, installed, handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    installed(lambda: signal.raise_signal(signal.SIGHUP))
    assert run(capsys, "probe") == (0, "", "")


@pytest.mark.parametrize("words", [("probe",), ("--help",)])
def test_a_reader_of_the_output_that_goes_is_no_fault(monkeypatch, capsys, installed, words):
    installed(lambda: click.echo("x"))
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert run(capsys, *words) == (0, "", "")


@pytest.mark.parametrize("encoding", ["iso-8859-1", "ascii"])
def test_what_a_terminal_cannot_show_is_replaced(monkeypatch, installed, encoding):
    installed(lambda: print("x\u2588\u0142"))
    told = io.BytesIO()
    with io.TextIOWrapper(told, encoding) as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(SystemExit) as ended:
            program.main(["probe"])
        out.flush()
        assert (ended.value.code, told.getvalue()) == (0, b"x??\n")


def test_a_pipe_that_breaks_elsewhere_is_told(capsys, failing):
    failing(BrokenPipeError(32, "Broken pipe"))
    code, out, err = run(capsys, "probe")
    assert (code, out) == (1, "")
    assert err == "toolkit: a program that was being written to ended: Broken pipe\n"


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


@pytest.mark.parametrize("flag", ["-q", "--quiet", "-v", "--verbose", "--debug"])
@pytest.mark.parametrize(
    "words", [("{}", "probe"), ("probe", "{}"), ("image", "{}", "list"), ("image", "list", "{}")]
)
def test_what_is_told_may_be_said_anywhere(capsys, installed, words, flag):
    heard = {}
    installed(click.pass_context(lambda ctx: heard.update(ctx.obj)))
    code, _, err = run(capsys, *(flag if word == "{}" else word for word in words))
    assert (code, err) == (0, "")
    if "probe" in words:
        (said,) = (name for name, given in heard.items() if given)
        assert said.startswith(flag.strip("-"))


def test_a_command_does_not_repeat_what_may_be_said_anywhere(capsys):
    assert "--quiet" in run(capsys, "--help")[1]
    for words in (("doctor",), ("image",), ("image", "list"), ("jobs", "show")):
        assert "--quiet" not in run(capsys, *words, "--help")[1]


def test_behind_the_dashes_a_word_is_the_programs(capsys, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("toolkit.cli.launching.run", fail)
    code, _, err = run(capsys, "launch", "mnist", "--", "--debug", "--quiet")
    assert code == 1
    assert "Traceback" not in err
    with pytest.raises(ZeroDivisionError):
        program.main(["launch", "mnist", "--debug", "--", "x"])


def test_the_words_of_another_program_are_left_to_it(capsys):
    code, _, err = run(capsys, "cluster", "exec", "--name", "none", "srun", "--quiet", "hostname")
    assert code == 2
    assert "--quiet" in err


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["imgae"], "No such command 'imgae', did you mean image?"),
        (["image", "biuld"], "No such command 'biuld', did you mean build?"),
        (["jobs", "cancle"], "No such command 'cancle', did you mean cancel?"),
        (["data", "gte"], "No such command 'gte', did you mean get?"),
        (["site", "lst"], "No such command 'lst', did you mean list?"),
        (["cluster", "dwn"], "No such command 'dwn', did you mean down?"),
        (["xyzzy"], "No such command 'xyzzy'."),
        (
            ["doctor", "--explain", "image-lacks-pmi"],
            "no such rule, did you mean image-lacks-pmix?; choices:",
        ),
    ],
)
def test_a_mistyped_word_is_told_with_the_one_that_is_close(capsys, words, said):
    code, _, told = run(capsys, *words)
    assert code == 2
    assert said in told


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


def test_an_error_stays_on_its_line_whatever_it_quotes(capsys):
    assert program.one_line("a\nb\x1b[2Jc é") == "a?b?[2Jc é"
    with pytest.raises(SystemExit):
        program.main(["launch", "no\nsuch\x1b[2J", "--dry-run"])
    assert "there is no trainer 'no?such?[2J'" in capsys.readouterr().err
