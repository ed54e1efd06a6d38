"""Test programs that only a login shell finds on PATH, with real shells and a fake remote host."""

import pytest

from tests.unit.tables import every_row
from toolkit.probe.asking import NodeChoice, command
from toolkit.probe.probe import read
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner
from toolkit.run.login_path import LoginPathRunner
from toolkit.run.remote.ssh import shell_line

PROGRAM = '#!/bin/sh\necho slurm-wlm 24.11.5 "$@"\n'


class Far(LocalRunner):
    """A fake remote host that runs a command as sshd does: in the user's shell, which is no login shell."""

    def __init__(self, home, shell="/bin/bash"):
        self.asked = []
        self._env = ("env", "-i", f"HOME={home}", f"SHELL={shell}", "PATH=/usr/bin:/bin")

    def run(self, command):
        self.asked.append(command.words)
        return super().run(self._far(command))

    def stream(self, command, on_line):
        return super().stream(self._far(command), on_line)

    def converse(self, command):
        return super().converse(self._far(command))

    def _far(self, command):
        words = (*self._env, "bash", "-c", shell_line(command))
        return Command(words, stdin=command.stdin, timeout=command.timeout)


@pytest.fixture
def home(tmp_path):
    programs = tmp_path / "slurm"
    programs.mkdir()
    for name in ("squeue", "sinfo", "srun"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    lines = "echo Welcome to the cluster", f'export PATH="{programs}:$PATH"'
    (tmp_path / ".profile").write_text("\n".join((*lines, "printf 'no line break'")))
    return tmp_path


def test_a_program_that_only_a_login_shell_finds_is_run(home):
    far = Far(home)
    assert far.run(Command.of("squeue", "--me")).status == 127
    runner = LoginPathRunner(far)
    assert runner.run(Command.of("squeue", "--me")).text == "slurm-wlm 24.11.5 --me\n"
    before = len(far.asked)
    assert runner.run(Command.of("sinfo")).ok
    assert len(far.asked) == before + 1, "the login shell is asked once"
    lines = []
    assert runner.stream(Command.of("squeue", "-h"), lines.append).ok
    assert lines == ["slurm-wlm 24.11.5 -h"]
    talk = runner.converse(Command.of("srun", "x"))
    assert talk.read() == b"slurm-wlm 24.11.5 x\n"
    talk.close()


def test_a_stream_finds_it_too(home):
    lines = []
    assert LoginPathRunner(Far(home)).stream(Command.of("squeue"), lines.append).ok
    assert lines[-1] == "slurm-wlm 24.11.5"


def test_what_is_found_without_a_login_shell_stays_what_it_is(home):
    own = home / "slurm" / "cat"
    own.write_text(PROGRAM)
    own.chmod(0o755)
    runner = LoginPathRunner(Far(home))
    assert runner.run(Command.of("squeue")).ok
    assert runner.run(Command.of("cat", stdin=b"as before")).text == "as before"


@every_row("shell", ["/bin/tcsh", "", "/no/such/bash"])
def test_a_login_shell_that_cannot_be_asked_so_is_stood_in_for_by_sh_or_changes_nothing(home, shell):
    done = LoginPathRunner(Far(home, shell)).run(Command.of("squeue"))
    assert done.status == (127 if shell == "/no/such/bash" else 0)


def test_a_program_that_ends_so_by_itself_is_not_run_twice(home):
    far = Far(home)
    count = home / "count"
    line = f"echo once >> {count}; exit 127"
    assert LoginPathRunner(far).run(Command.of("sh", "-c", line)).status == 127
    assert count.read_text() == "once\n"


def test_one_that_is_nowhere_is_looked_for_once(home):
    far = Far(home)
    runner = LoginPathRunner(far)
    assert runner.run(Command.of("sbatch")).status == 127
    asked = len(far.asked)
    assert runner.run(Command.of("sbatch")).status == 127
    assert len(far.asked) == asked + 1


def test_the_probe_finds_slurm_as_a_login_shell_does(home):
    done = Far(home).run(command(NodeChoice("0")))
    host = read(done.text, "far", NodeChoice("0")).host
    assert host.slurm is not None
    assert host.slurm.version == "24.11.5"


def test_a_profile_that_never_ends_leaves_the_probe_without(home):
    (home / ".profile").write_text("read line; sleep 60\n")
    probe = command(NodeChoice("0"))
    assert probe.stdin.count(b"timeout 5\n") == 1
    hurried = Command(probe.words, stdin=probe.stdin.replace(b"timeout 5\n", b"timeout 0.5\n"), timeout=60)
    done = Far(home).run(hurried)
    assert done.ok
    assert read(done.text, "far", NodeChoice("0")).host.slurm is None
