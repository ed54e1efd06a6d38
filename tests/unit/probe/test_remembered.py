"""Test when a launch uses stored facts of a host, and when it probes the host again."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit import hints
from toolkit.errors import BadInput
from toolkit.probe import remembered
from toolkit.probe.asking import of_job
from toolkit.probe.probe import gather
from toolkit.probe.remembered import HostMemory, forget, seconds_of
from toolkit.run.command import Completed

EVIDENCE = Path(__file__).parents[2] / "evidence"
ANSWER = (EVIDENCE / "virtual-cluster-nodes.txt").read_bytes()
STATE = Path(__file__).parents[3] / "containers" / "machine-state.sh"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))


class Host:
    """A fake host that answers the probe and reports ``state``, a hash of the machine's state."""

    def __init__(self, answer=ANSWER, state="a", place="ada@far"):
        self.answer, self.state, self.place = answer, state * 64, place
        self.probed = 0

    def run(self, command):
        if b"toolkit-state:" in (command.stdin or b""):
            return Completed(command, 0, f"welcome\ntoolkit-state:{self.state}\n".encode(), b"")
        self.probed += 1
        return Completed(command, 0, self.answer, b"")


def asked(host, seconds=600, partition=None):
    """Get the facts as a launch does; return the age of stored facts, or ``None`` after a new probe."""
    memory, choice = HostMemory(seconds), of_job(partition)
    return memory.gather(host, choice, lambda: gather(host, choice)), memory.age


def test_a_host_that_answered_is_not_probed_again():
    host = Host()
    first, age = asked(host)
    assert (host.probed, age) == (1, None)
    again, age = asked(host)
    assert (host.probed, again) == (1, first)
    assert 0 <= age < 60


def test_another_state_host_or_partition_is_probed():
    host = Host()
    asked(host)
    host.state = "b" * 64
    assert asked(host)[1] is None
    assert asked(host)[1] is not None
    assert asked(host, partition="gpu")[1] is None
    other = Host(state="b", place="ada@near")
    assert asked(other)[1] is None
    assert (host.probed, other.probed) == (3, 1)


def test_facts_are_used_for_some_minutes_only(monkeypatch):
    host = Host()
    asked(host, 60)
    now = remembered.time.time()
    for later, probed in ((59, 1), (61, 2), (0, 3)):  # the third time is before the second
        monkeypatch.setattr(remembered.time, "time", lambda later=later: now + later)
        asked(host, 60)
        assert host.probed == probed


def test_without_a_memory_the_state_is_not_asked():
    host = Host()
    host.state = None  # an invalid state
    asked(host, 0)
    asked(host, 0)
    assert host.probed == 2
    assert not list(Path(os.environ["TOOLKIT_CACHE_DIR"]).rglob("*.json"))


@every_row(
    "answer",
    [
        (EVIDENCE / "virtual-cluster-login.txt").read_bytes(),
        (EVIDENCE / "queue-is-full.txt").read_bytes(),
        ANSWER.replace(b"@rc 0\n", b"@rc 124\n", 1),
    ],
)
def test_an_answer_with_gaps_is_not_kept(answer):
    host = Host(answer)
    asked(host)
    assert asked(host)[1] is None
    assert host.probed == 2


@every_row("state", ["", "x", "a" * 63])
def test_a_host_that_cannot_say_its_state_is_probed_each_time(state):
    host = Host()
    host.state = state
    asked(host)
    asked(host)
    assert host.probed == 2


def test_what_is_forgotten_or_damaged_is_asked_again():
    host = Host()
    asked(host)
    forget()
    assert asked(host)[1] is None
    (kept,) = Path(os.environ["TOOLKIT_CACHE_DIR"]).rglob("*.json")
    kept.write_bytes(kept.read_bytes()[:-3])
    assert asked(host)[1] is None
    assert kept.stat().st_mode & 0o077 == 0
    hints.drop("nothing-there")


def test_the_variable_says_how_long():
    assert [seconds_of(text) for text in (None, "", "0", "90")] == [600, 600, 0, 90]
    for text in ("-1", "ten", "1.5", "1e3", "9" * 30, "²"):
        with pytest.raises(BadInput, match="is not a number of seconds"):
            seconds_of(text)


SHELLS = [shell for shell in (("sh",), ("bash",), ("busybox", "sh")) if shutil.which(shell[0])]


@every_row("shell", SHELLS)
def test_the_state_of_a_machine_changes_with_what_a_launch_depends_on(tmp_path, shell):
    home, programs = tmp_path / "home", tmp_path / "bin"
    (home / ".openmpi").mkdir(parents=True)
    programs.mkdir()

    def state(**more):
        env = {"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", **more}
        words = [*shell, "-c", STATE.read_text()]
        said = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
        (found,) = remembered._STATE.findall(said)
        return found

    seen = [state()]
    assert state(SSH_CLIENT="10.0.0.1 5 22", TERM="xterm") == seen[0]
    seen.append(state(OMPI_MCA_btl="self"))
    (home / ".openmpi" / "mca-params.conf").write_text("btl = self\n")
    seen.append(state())
    launcher = programs / "srun"
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o755)
    seen.append(state())
    launcher.write_text("#!/bin/sh\necho\n")
    seen.append(state())
    assert len(set(seen)) == 5
    assert seen[-1] == state()
