"""Test that toolkit runs, follows and prints a job with very long output in limited memory."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.unit.launch.examples import RECORD
from tests.unit.thorough import count
from toolkit.launch.tracking import records
from toolkit.run.ends import HEAD, TAIL

_SIZE = count(40_000_000, 200_000_000)
_MOST = (85 << 20) if _SIZE < 100_000_000 else (160 << 20)
"""The memory limit of the process in bytes.

The process needs 40 MiB without output, so the limit does not allow a copy of the whole output.
"""

# The test reads VmHWM because ru_maxrss includes the memory of pytest, the parent process.
_PROLOGUE = """
import atexit, os, sys
peak_to = int(sys.argv[3])
from pathlib import Path
def report():
    lines = Path("/proc/self/status").read_text().splitlines()
    os.write(peak_to, next(line.split()[1] for line in lines if line.startswith("VmHWM:")).encode())
atexit.register(report)
from toolkit.launch.tracking import records
from toolkit.run.local import LocalRunner
record = records.find(sys.argv[1])
count = 0
def on_line(line):
    global count
    count += len(line) + 1
"""
_RUN = """
from toolkit.launch.tracking.local_run import run_local
script = f"yes $(printf 'x%.0s' {{1..999}}) | head -c {sys.argv[2]}"
run_local(LocalRunner(), record, script, on_line)
print(count)
"""
_FOLLOW = """
from toolkit.launch.tracking.follow import follow
follow(LocalRunner(), record, on_line)
print(count)
"""
_LOGS = """
from toolkit.cli.main import main
sys.argv[1:] = ["jobs", "logs", record.key]
main()
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "run"
    folder.mkdir()
    spec = msgspec.structs.replace(RECORD.spec, directory=str(folder))
    record = msgspec.structs.replace(RECORD, id="", spec=spec, place="this machine", cluster=None, host=None)
    records.save(record)
    return record, folder


def peak_and_output(program: str, key: str) -> tuple[int, int, bytes]:
    """Return the peak memory of a program in bytes, the size of its output, and the last bytes."""
    reading, writing = os.pipe()
    words = [sys.executable, "-c", _PROLOGUE + program, key, str(_SIZE), str(writing)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, pass_fds=(writing,)) as process:
        os.close(writing)
        assert process.stdout
        printed, last = 0, b""
        while chunk := process.stdout.read(1 << 20):
            printed, last = printed + len(chunk), chunk[-100:]
    with os.fdopen(reading, "rb") as peak:
        kibibytes = int(peak.read())
    assert process.returncode == 0
    return kibibytes << 10, printed, last


def kept(key: str) -> bytes:
    return (records.folder(key) / records.OUTPUT).read_bytes()


def test_a_job_of_this_machine_is_run_in_bounded_memory_and_a_tail_is_kept(job) -> None:
    record, folder = job
    peak, _, last = peak_and_output(_RUN, record.key)
    assert int(last) == _SIZE == (folder / "output.log").stat().st_size
    assert peak < _MOST, f"{peak >> 20} MiB"
    assert HEAD + TAIL < len(kept(record.key)) < HEAD + TAIL + 100


def test_a_job_is_followed_and_its_output_printed_in_bounded_memory(job) -> None:
    record, folder = job
    output = folder / "output.log"
    with output.open("wb") as file:
        for _ in range(_SIZE // 1_000_000):
            file.write((b"y" * 999 + b"\n") * 1000)
    (folder / "exit-code").write_text("0\n")
    records.save(msgspec.structs.replace(record, state="running", id="", started="2026-11-25T10:00:00"))
    peak, _, last = peak_and_output(_FOLLOW, record.key)
    assert int(last) == _SIZE
    assert peak < _MOST, f"{peak >> 20} MiB"
    assert HEAD + TAIL < len(kept(record.key)) < HEAD + TAIL + 100
    peak, printed, _ = peak_and_output(_LOGS, record.key)
    assert printed == _SIZE
    assert peak < _MOST, f"{peak >> 20} MiB"
