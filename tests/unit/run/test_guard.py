"""Test that a killed toolkit leaves no child process, and that toolkit's normal exit kills no detached
process.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.unit.tables import every_row
from toolkit.run.command import Command
from toolkit.run.guard import _SCRIPT, Guard
from toolkit.run.local import LocalRunner

_PARENT = """
import sys
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner
command, how = Command(("sh", "-c", sys.argv[2])), sys.argv[1]
if how == "run":
    LocalRunner().run(command)
elif how == "stream":
    LocalRunner().stream(command, lambda line: None)
else:
    LocalRunner().converse(command).read()
"""
_SETTLED = 0.5
"""Seconds after which the guard has registered a child, also on a busy machine."""
_MOST_SECONDS = 60.0
"""Seconds after which the test fails if a child still runs; the guard kills it after one second."""


def parent(how: str, script: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen((sys.executable, "-c", _PARENT, how, script), stdout=subprocess.DEVNULL)


def numbers(file: Path, count: int) -> list[int]:
    deadline = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < deadline:
        words = file.read_text().split() if file.exists() else []
        if len(words) == count:
            return [int(word) for word in words]
        time.sleep(0.02)
    raise AssertionError(f"{file} has not got {count} numbers")


def runs(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def wait_for_end(children: list[int]) -> None:
    begun = time.monotonic()
    while any(map(runs, children)):
        assert time.monotonic() - begun < _MOST_SECONDS, "a child outlived its parent"
        time.sleep(0.02)


def test_children_have_one_second_to_end_before_they_are_killed():
    assert re.search(r"^signal=TERM; signal\nsleep 1\nsignal=KILL; signal$", _SCRIPT, re.MULTILINE)


@every_row("how", ["run", "stream", "converse"])
@every_row("heeds", ["", "trap '' TERM; "], ids=["asked", "deaf"])
def test_child_and_grandchild_end_with_a_parent_that_is_killed(tmp_path, how, heeds):
    file = tmp_path / "numbers"
    script = f"{heeds}sleep 300 & sleep {_SETTLED}; echo $$ $! >{file}; wait; sleep 300"
    process = parent(how, script)
    children = numbers(file, 2)
    process.kill()
    process.wait()
    try:
        wait_for_end(children)
    finally:
        for number in filter(runs, children):
            os.kill(number, signal.SIGKILL)


def test_a_grandchild_in_a_group_of_its_own_ends_too(tmp_path):
    file = tmp_path / "numbers"
    own = "import os, time; os.setpgid(0, 0); time.sleep(300)"
    script = f"{sys.executable} -c '{own}' & sleep {_SETTLED}; echo $$ $! >{file}; wait"
    process = parent("run", script)
    children = numbers(file, 2)
    assert os.getpgid(children[1]) == children[1]
    process.kill()
    process.wait()
    try:
        wait_for_end(children)
    finally:
        for number in filter(runs, children):
            os.kill(number, signal.SIGKILL)


def test_what_a_command_left_behind_on_purpose_stays_when_its_parent_ends_well(tmp_path):
    file = tmp_path / "numbers"
    process = parent("run", f"sleep 300 >/dev/null 2>&1 & echo $! >{file}")
    (left,) = numbers(file, 1)
    assert process.wait(20) == 0
    time.sleep(0.3)
    try:
        assert runs(left)
    finally:
        os.kill(left, signal.SIGKILL)


def test_a_guard_that_was_ended_does_not_stop_the_work():
    guard = Guard()
    guard.prepare()
    guard.watch(2**22 + 1)  # no process has this number: it is above pid_max (proc_sys_kernel(5))
    os.close(guard._pipe)
    reading, guard._pipe = os.pipe()
    os.close(reading)
    guard.watch(2**22 + 2)
    guard.release(2**22 + 1)
    os.close(guard._pipe)


def test_many_commands_are_guarded_by_one_shell():
    here = LocalRunner()

    def children() -> set[str]:
        return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

    here.run(Command.of("true"))
    before = children()
    for _ in range(5):
        here.run(Command.of("true"))
    assert children() == before
