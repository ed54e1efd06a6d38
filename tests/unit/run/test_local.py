"""Test the runner for this machine with programs that every machine has."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.errors import CheckFailed, Missing
from toolkit.run import local
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner

HERE = LocalRunner()


def sh(script, **more):
    return Command(("sh", "-c", script), **more)


def test_streams_and_status_come_back_apart():
    done = HERE.run(sh("echo out; echo err >&2; exit 3"))
    assert (done.status, done.text, done.errors, done.ok) == (3, "out\n", "err\n", False)


def test_words_reach_the_program_as_they_are():
    words = ("printf", "%s|", "a b", "$(id)", "'", "\n")
    assert HERE.run(Command(words)).text == "a b|$(id)|'|\n|"


def test_stdin_env_and_cwd(tmp_path):
    done = HERE.run(sh("cat; echo $X; pwd", stdin=b"in ", env={"X": "1"}, cwd=str(tmp_path)))
    assert done.text == f"in 1\n{tmp_path}\n"


def test_more_output_than_a_pipe_holds_on_both_streams():
    done = HERE.run(sh("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"))
    assert (len(done.stdout), len(done.stderr)) == (300000, 300000)


def test_a_missing_program_is_named_with_what_to_do():
    with pytest.raises(Missing, match="no-such-program is not installed") as caught:
        HERE.run(Command.of("no-such-program"))
    assert "install no-such-program" in caught.value.fix


def test_a_folder_on_path_that_cannot_be_searched_hides_no_missing_program(tmp_path, monkeypatch):
    # The execution of a folder fails in the same way as a search in a folder that the user may not read.
    (tmp_path / "no-such-program").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(Missing, match="no-such-program is not installed"):
        HERE.run(Command.of("no-such-program"))


def test_a_file_that_may_not_be_executed(tmp_path):
    (tmp_path / "plain").write_text("x")
    with pytest.raises(Missing, match="cannot be executed"):
        HERE.run(Command.of(str(tmp_path / "plain")))


def test_a_timeout_ends_the_program_and_all_that_it_started(tmp_path):
    done = HERE.run(sh(f"sleep 60 & echo $! > {tmp_path}/pid; wait", timeout=0.5))
    assert done.timed_out
    assert not done.ok
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_stream_hands_over_lines_of_both_streams_and_the_last_without_end():
    lines = []
    done = HERE.stream(sh("echo a; echo b >&2; printf c"), lines.append)
    assert sorted(lines) == ["a", "b", "c"]
    assert (done.text, done.errors) == ("a\nc", "b\n")


@every_row("run", [HERE.run, lambda command: HERE.stream(command, lambda _: None)])
def test_a_program_that_closes_its_input_unread_is_no_error(run):
    done = run(sh("exec <&-; echo on; exit 3", stdin=b"x" * 1_000_000))
    assert (done.status, done.text) == (3, "on\n")


def test_stream_gives_input_to_a_program_that_answers_while_it_reads():
    given = os.urandom(1_000_000)
    lines = []
    done = HERE.stream(Command(("cat",), stdin=given, timeout=20), lines.append)
    assert done.stdout == given[-(1 << 16) :]
    assert len(lines) == given.count(b"\n") + (not given.endswith(b"\n"))
    assert HERE.stream(Command(("cat",), stdin=b"", timeout=20), lambda _: None).stdout == b""


def test_stream_times_out_while_its_input_is_not_read():
    assert HERE.stream(sh("sleep 60", stdin=b"x" * 1_000_000, timeout=0.3), print).timed_out


def test_stream_times_out():
    began = time.monotonic()
    assert HERE.stream(sh("sleep 60", timeout=0.3), print).timed_out
    assert time.monotonic() - began < 10


def test_an_interrupt_ends_what_was_started(tmp_path):
    def stop():
        while not (tmp_path / "pid").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        HERE.run(sh(f"echo $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; sleep 60"))
    thread.join()
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_require_tells_status_and_last_lines():
    with pytest.raises(CheckFailed, match="making tea: sh exited with status 4") as caught:
        HERE.run(sh("echo no water >&2; exit 4")).require("making tea", fix="fetch water")
    assert caught.value.detail == ("no water",)
    assert caught.value.fix == "fetch water"
    with pytest.raises(CheckFailed, match="timed out"):
        HERE.run(sh("sleep 9", timeout=0.1)).require("waiting")
    assert HERE.run(sh("true")).require("nothing").ok


def test_files_are_replaced_whole(tmp_path):
    target = tmp_path / "deep" / "file"
    HERE.write(str(target), b"one", 0o600)
    HERE.write(str(target), b"two", 0o600)
    assert HERE.read(str(target)) == b"two"
    assert HERE.read(str(target), 1) == b"wo"
    assert HERE.read(str(tmp_path / "absent")) == b""
    assert target.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in target.parent.iterdir()] == ["file"]


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path):
    target = tmp_path / "folder"
    (target / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        HERE.write(str(target), b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_send_copies_what_is_not_there_and_tells_progress(tmp_path):
    source = tmp_path / "a"
    source.write_bytes(b"x" * 1000)
    seen = []
    for already in (0, 400):
        target = tmp_path / "b" / str(already)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(b"x" * already)
        HERE.send(source, str(target), lambda done, total: seen.append((done, total)))
        assert target.read_bytes() == source.read_bytes()
        assert seen[-2:] == [(already, 1000), (1000, 1000)]


def has_ended(pid):
    """Return whether a process ends within 5 s; a killed process closes its pipes shortly before its end."""
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


@every_row(("mode", "shut"), [(0o600, True), (0o700, True), (0o644, False)])
def test_a_private_file_makes_its_own_folder_private_and_no_other(tmp_path, mode, shut):
    HERE.write(str(tmp_path / "runs" / "mine" / "job.sh"), b"", mode)
    own, above = ((tmp_path / name).stat().st_mode & 0o077 for name in ("runs/mine", "runs"))
    assert (own == 0, above == 0) == (shut, False)
    (tmp_path / "runs" / "mine").chmod(0o755)
    HERE.write(str(tmp_path / "runs" / "mine" / "job.sh"), b"", mode)
    assert (tmp_path / "runs" / "mine").stat().st_mode & 0o777 == 0o755


def test_a_conversation_that_is_closed_has_ended_for_who_reads_it_on():
    talk = LocalRunner().converse(Command(("sh", "-c", "echo here; cat")))
    assert talk.read() == b"here\n"
    read: list[bytes] = []
    waiting = threading.Thread(target=lambda: read.append(talk.read()))
    waiting.start()
    talk.close()
    waiting.join(20)
    assert (read, talk.read()) == ([b""], b"")


def test_a_pipe_that_a_child_has_kept_does_not_hold_up_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_GRACE", 0.2)
    child = "for _ in $(seq 1000); do [ ! -e end ] || exit 0; sleep 0.02; done"
    line = f"cd {tmp_path}; setsid sh -c '{child}' & echo here"
    talk = LocalRunner().converse(Command(("sh", "-c", line)))
    assert talk.read() == b"here\n"
    waiting = threading.Thread(target=talk.read)
    waiting.start()
    talk.close()
    assert waiting.is_alive()  # the thread waits for the child
    (tmp_path / "end").touch()
    waiting.join(20)
    assert not waiting.is_alive()
    assert talk.read() == b""
