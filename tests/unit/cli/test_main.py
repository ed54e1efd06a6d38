"""Test the message and the exit status of toolkit for each kind of error."""

import importlib.metadata
import io
import os
import signal
import subprocess
import sys

import click
import pytest

from tests import forked
from tests.services.program import ROOT
from tests.unit.tables import every_row
from toolkit.cli import main as program
from toolkit.cli.frame.commands import COMMANDS
from toolkit.errors import BadInput, CheckFailed, Damaged, Interrupted, Missing


def run(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        program.main(list(words))
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


@pytest.fixture
def installed(monkeypatch):
    def install(work):
        command = click.command("probe")(work)
        monkeypatch.setitem(sys.modules, "tests.failing", type("Module", (), {"command": command}))
        monkeypatch.setitem(program.COMMANDS, "probe", ("tests.failing", "fail"))

    return install


@pytest.fixture
def failing(installed):
    def install(error):
        def work():
            raise error

        installed(work)

    return install


@every_row(
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
    assert run(capsys, "probe") == (code, "", "error: a\nhint: b\n")


def test_detail_stands_before_the_message(capsys, failing):
    failing(CheckFailed("the build failed", detail=["step 3", "no space"]))
    assert run(capsys, "probe")[2] == "    step 3\n    no space\nerror: the build failed\n"


def test_ctrl_c_ends_in_130(capsys, failing):
    failing(KeyboardInterrupt())
    code, out, err = run(capsys, "probe")
    assert (code, out, err.strip()) == (130, "", "error: interrupted")


@pytest.fixture
def handlers():
    """Restore the signal handlers after a test, because they apply to the whole process."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    kept = [signal.getsignal(number) for number in numbers]
    for number in numbers:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in zip(numbers, kept, strict=True):
        signal.signal(number, handler)


@every_row("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_and_a_terminal_that_goes_end_in_130(capsys, installed, handlers, number):
    installed(lambda: signal.raise_signal(number))
    code, _, err = run(capsys, "probe")
    assert (code, err.strip()) == (130, "error: interrupted")


def test_what_nohup_has_ignored_stays_ignored(capsys, installed, handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    installed(lambda: signal.raise_signal(signal.SIGHUP))
    assert run(capsys, "probe") == (0, "", "")


@every_row("words", [("probe",), ("--help",)])
def test_a_reader_of_the_output_that_goes_is_no_fault(monkeypatch, capsys, installed, words):
    installed(lambda: click.echo("x"))
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert run(capsys, *words) == (0, "", "")


@every_row("encoding", ["iso-8859-1", "ascii"])
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
    assert (
        err == "error: toolkit wrote to a pipe, but the program that reads the pipe has exited: Broken pipe\n"
    )


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


@every_row("flag", ["-q", "--quiet", "-v", "--verbose", "--debug"])
@every_row("words", [("{}", "probe"), ("probe", "{}"), ("image", "{}", "list"), ("image", "list", "{}")])
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
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("toolkit.job.submit.launch", fail)
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
    assert run(capsys, "probe") == (1, "", "error: /etc/shadow: Permission denied\n")


@every_row(
    "words",
    [
        ("nonsense",),
        ("--nonsense",),
        ("completion",),
        ("completion", "tcsh"),
        ("launch", "--nodes", "x"),
        ("launch", "--nodes", "0"),
        ("launch", "--mode", "srun-pmi"),
        ("launch", "--mode"),
        ("doctor", "a.sif", "b.sif"),
    ],
)
def test_a_wrong_call_ends_in_2_without_traceback(capsys, words):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    message, *fix = err.splitlines()
    assert message.startswith("error: ")
    # click's error about a missing value does not name the command.
    assert fix in ([f"hint: see `toolkit{f' {words[0]}' if words[0] in COMMANDS else ''} --help`"], [])


@every_row(
    ("words", "said"),
    [
        (["imgae"], "imgae: no such command (did you mean image?)"),
        (["image", "biuld"], "biuld: no such command (did you mean build?)"),
        (["jobs", "cancle"], "cancle: no such command (did you mean cancel?)"),
        (["data", "gte"], "gte: no such command (did you mean get?)"),
        (["site", "lst"], "lst: no such command (did you mean list?)"),
        (["cluster", "dwn"], "dwn: no such command (did you mean down?)"),
        (["xyzzy"], "xyzzy: no such command; choices: init, image, "),
        (
            ["doctor", "--explain", "image-lacks-pmi"],
            "unknown rule (did you mean image-lacks-pmix?)\nhint: list the rules",
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
    from toolkit import DISTRIBUTION, __version__

    assert run(capsys, "--version") == (0, f"toolkit ({DISTRIBUTION}) {__version__}\n", "")


@every_row("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed(capsys, shell):
    code, out, _ = run(capsys, "completion", shell)
    assert code == 0
    assert "_TOOLKIT_COMPLETE" in out


def test_an_error_stays_on_its_line_whatever_it_quotes(capsys):
    with pytest.raises(SystemExit):
        program.main(["launch", "no\nsuch\x1b[2J", "--dry-run"])
    assert "trainer 'no\\nsuch\\u001b[2J': not found" in capsys.readouterr().err


@every_row(
    ("words", "said"),
    [
        (["image", "pull", "docker://h/x:1"], "--output: missing"),
        (["launch", "--nodez", "2"], "--nodez: no such option (did you mean --nodes?)"),
        (["launch", "--mode"], "--mode: the value is missing"),
        (["launch", "--dry-run=yes"], "--dry-run: this option takes no value"),
        (["doctor", "a.sif", "b.sif", "c.sif"], "b.sif c.sif: unexpected argument"),
        (
            ["completion", "bahs"],
            "SHELL 'bahs': unknown value (did you mean bash?); choices: bash, zsh, fish",
        ),
        (["scale", "mnist", "--ranks", "1,x"], "--ranks '1,x': expected numbers separated by commas, "),
    ],
)
def test_a_wrong_call_names_the_word_and_its_fault(capsys, words, said):
    code, _, err = run(capsys, *words)
    assert code == 2
    assert err.startswith(f"error: {said}")


def test_a_wrong_value_is_told_with_the_choices(capsys):
    err = run(capsys, "launch", "--mode", "srun-pmi")[2]
    assert err.startswith(
        "error: --mode 'srun-pmi': unknown value (did you mean srun-pmix?); choices: srun-pmix, "
    )
    assert run(capsys, "doctor", "--nodes", "0")[2].startswith(
        "error: --nodes 0: expected a whole number of at least 1"
    )
    assert run(capsys, "completion")[2].startswith("error: SHELL: missing; choices: bash, zsh, fish")


def test_a_group_without_a_command_shows_its_help(capsys):
    said = "".join(run(capsys, "data")[1:])
    assert "Usage: toolkit data" in said
    assert "error: " not in said


def test_what_others_wrote_does_nothing_to_a_terminal(capsys, failing):
    failing(
        CheckFailed("it failed", detail=["\x1b[31mred\x1b[0m\tx", "\x1b]0;title\x07a\nb\x07", "10%\r20%"])
    )
    err = run(capsys, "probe")[2]
    assert err == "    red     x\n    a\n    b\\u0007\n    20%\nerror: it failed\n"


@every_row(
    ("module", "package", "wanted"),
    [("docker", "docker", "docker<"), ("yaml", "pyyaml", "pyyaml<"), ("invoke", "invoke", "invoke'")],
)
def test_a_package_that_is_not_there_is_named_with_what_installs_it(capsys, failing, module, package, wanted):
    failing(ModuleNotFoundError(f"No module named '{module}.x'", name=f"{module}.x"))
    code, _, err = run(capsys, "probe")
    assert code == 3
    assert err.startswith(f"error: the Python package {package} is not installed; this command needs it\n")
    assert f"pip install '{wanted}" in err


def test_without_metadata_the_package_is_named_alone(capsys, failing, monkeypatch):
    def unknown(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", unknown)
    failing(ModuleNotFoundError("No module named 'docker'", name="docker"))
    assert "`pip install 'docker'`\n" in run(capsys, "probe")[2]


def test_a_module_of_our_own_that_is_not_there_is_our_fault(capsys, failing):
    failing(ModuleNotFoundError("No module named 'toolkit.x'", name="toolkit.x"))
    code, _, err = run(capsys, "probe")
    assert code == 1
    assert "a bug in toolkit" in err


def closed(words, which):
    """Run toolkit in a shell that closes or redirects streams. For example, ``which`` is ``2>&-``."""
    line = f'exec "$0" -m toolkit "$@" {which}'
    return subprocess.run(
        ["sh", "-c", line, sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


@every_row("which", [(0,), (1,), (2,), (0, 1, 2)])
def test_a_stream_that_is_closed_changes_no_exit_code(which):
    assert forked.run(["image", "list"], closed=which).returncode == 0
    done = forked.run(["doctor", "no-such.sif"], closed=which)
    assert (done.returncode, done.stdout) == (2, b"")
    assert 2 in which or b"no-such.sif" in done.stderr


def test_streams_that_the_shell_closes_change_no_exit_code():
    assert closed(["doctor", "no-such.sif"], "<&- >&- 2>&-").returncode == 2


def test_to_read_from_a_closed_input_is_a_wrong_call():
    for words in (["explain", "-"], ["cluster", "exec", "--name", "none", "-i", "--", "cat"]):
        done = forked.run(words, closed=(0,))
        assert done.returncode == 2
        assert b"fault" not in done.stderr
    assert closed(["explain", "-"], "<&-").stderr.startswith("error: standard input is closed\n")


@every_row("unbuffered", ["", "1"])
def test_an_output_that_takes_no_more_is_named(monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    done = closed(["image", "list"], "> /dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: standard output: cannot be written: No space left on device",
        "hint: delete files on the disk of the output file, or redirect the output to another file",
    ]
