"""Test the inputs of ``toolkit explain``: a file, a folder of output files, a job of toolkit or of Slurm."""

import os
from pathlib import Path

import msgspec
import pytest

from tests.unit.launch.examples import RECORD
from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.job.explanation import of_job, of_place
from toolkit.launch.tracking import records
from toolkit.launch.tracking.accounting import failures, output_files, parse_steps

ACCOUNT = """\
812|OUT_OF_MEMORY|0:125|node[1-2]|00:01:02|01:00:00||4G
812.batch|OUT_OF_MEMORY|0:125|node1|00:01:02||3.9G|4G
812.extern|COMPLETED|0:0|node[1-2]|00:01:02||0|4G
812.0|OUT_OF_MEMORY|0:125|node[1-2]|00:00:58||3.8G|4G
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    return tmp_path


def slurm(place: Path, name: str, answer: str) -> None:
    """Put a fake Slurm command that prints ``answer`` on PATH."""
    (place / f"{name}.txt").write_text(answer)
    program = place / "bin" / name
    program.write_text(f"#!/bin/sh\ncat '{place}/{name}.txt'\n")
    program.chmod(0o755)


def test_all_output_files_of_a_folder_are_read(state: Path):
    folder = state / "run"
    folder.mkdir()
    (folder / "slurm-1.out").write_text("epoch 1\nepoch 2\n")
    (folder / "slurm-1.err").write_text("loading\nKeyError: 'x'\n")
    (folder / "model.bin").write_text("RuntimeError: not output\n")
    found = of_place(str(folder))
    assert found.root is not None
    assert (found.root.file, found.root.number, found.root.text) == ("slurm-1.err", 2, "KeyError: 'x'")


def test_the_files_of_the_ranks_are_told_apart(state: Path):
    folder = state / "run"
    for rank, text in enumerate(("step 1\n", "ValueError: empty shard\n")):
        (folder / f"rank{rank}").mkdir(parents=True)
        (folder / f"rank{rank}" / "stderr.log").write_text(text)
    found = of_place(str(folder))
    assert found.root is not None
    assert (found.root.file, found.root.number) == ("rank1/stderr.log", 1)


def test_a_folder_without_output_is_refused(state: Path):
    with pytest.raises(BadInput, match="the folder contains no job output"):
        of_place(str(state / "bin"))


@every_row("name", ["absent", "4711"])
def test_a_name_that_is_neither_file_nor_job_is_refused(state: Path, name: str):
    slurm(state, "sacct", "")
    slurm(state, "scontrol", "")
    with pytest.raises(BadInput, match=name):
        of_place(name)


@every_row(
    ("begin", "fault"),
    [
        (b"\x7fELF\x02", "is a program"),
        (b"\x1f\x8b\x08", "is compressed"),
        (b"\x28\xb5\x2f\xfd", "is compressed"),
    ],
)
def test_a_file_that_is_no_output_is_refused(tmp_path: Path, begin: bytes, fault: str):
    file = tmp_path / "job.out"
    file.write_bytes(begin + b"error: write failed\n")
    with pytest.raises(BadInput, match=fault):
        of_place(str(file))


def test_a_job_of_slurm_is_explained_by_its_files_and_the_accounting(state: Path):
    output = state / "train.out"
    output.write_text("epoch 1\nslurm_script: line 9: 77 Killed    python train.py\n")
    slurm(state, "scontrol", f"JobId=812 JobName=x StdErr={output} StdOut={output}\n")
    slurm(state, "sacct", ACCOUNT)
    found = of_place("812")
    assert found.root is not None
    assert found.fault is not None
    assert found.fault.id == "out-of-memory"
    assert found.retry == "user"


def test_the_accounting_alone_names_the_class(state: Path):
    slurm(state, "sacct", ACCOUNT)
    found = of_place("812")
    assert found.root is not None
    assert found.root.number == 0
    assert found.root.text == (
        "sacct: 812.0 OUT_OF_MEMORY 0:125, on node[1-2], ran 00:00:58, used 3.8G, asked for 4G"
    )
    assert found.fault is not None
    assert found.fault.id == "out-of-memory"


@every_row(
    ("state_word", "code", "class_", "retry"),
    [
        ("NODE_FAIL", "0:0", "node-or-hardware", "node"),
        ("TIMEOUT", "0:0", "time-limit", "user"),
        ("CANCELLED by 1000", "0:0", "cancelled", "transient"),
        ("PREEMPTED", "0:0", "cancelled", "transient"),
        ("FAILED", "1:0", "exit-status", "user"),
        ("FAILED", "0:11", "signal", "user"),
    ],
)
def test_each_state_of_the_accounting_has_a_class(state: Path, state_word, code, class_, retry):
    slurm(state, "sacct", f"9|{state_word}|{code}|n1|00:00:01|00:10:00||\n")
    found = of_place("9")
    assert found.fault is not None
    assert (found.fault.id, found.retry) == (class_, retry)


def test_a_record_of_this_machine_is_explained_with_its_errors_and_the_accounting(state: Path):
    folder = state / "job"
    folder.mkdir()
    (folder / "err.txt").write_text("starting\nRuntimeError: no data\n")
    spec = msgspec.structs.replace(RECORD.spec, directory=str(folder), error="err.txt")
    record = msgspec.structs.replace(
        RECORD, key="k", id="812", spec=spec, host=None, cluster=None, state="failed", exit_code=1
    )
    records.save(record)
    records.keep(record, records.OUTPUT, b"step 1\nstep 2\n")
    slurm(state, "sacct", "812|FAILED|1:0|n1|00:00:01|00:10:00||\n")
    for found in (of_job(record), of_place("812"), of_place(str(folder)), of_place(str(records.folder("k")))):
        assert found.root is not None
        assert (found.root.file, found.root.number) == ("err.txt", 2)


def test_steps_of_ranks_come_first_and_no_state_twice():
    assert [end.step for end in failures(parse_steps(ACCOUNT))] == ["812.0"]
    assert failures(parse_steps("7|COMPLETED|0:0|n1|1|2||\n7.0|RUNNING|0:0|n1|1|||\n")) == []


def test_the_controller_names_the_files_of_a_job():
    text = "JobId=1 JobName=a b\n   StdErr=/w/e.txt\n   StdIn=/dev/null\n   StdOut=/w/o.txt\n"
    assert output_files(text) == ["/w/e.txt", "/w/o.txt"]
