"""Submitting and following, against recorded answers of Slurm; the real one is in tests/integration."""

import msgspec
import pytest

from tests.unit.launch.examples import RECORD
from toolkit.errors import CheckFailed
from toolkit.launch import jobs, records
from toolkit.run.command import Completed

RUNNING = "JobId=7 JobState=RUNNING Reason=None ExitCode=0:0 NodeList=node[1-2]"
DONE = "JobId=7 JobState=COMPLETED Reason=None ExitCode=0:0 NodeList=node[1-2]"
FAILED = "JobId=7 JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0 NodeList=node[1-2]"
REFUSAL = """sbatch: error: invalid partition specified: gpu
sbatch: error: Batch job submission failed: Invalid partition name specified
"""
GONE = (1, "", "slurm_load_jobs error: Invalid job id specified\n")


class Recorded:
    """Answers each program with its recorded texts in turn, the last for good; files are a dict."""

    place = "recorded"

    def __init__(self, files=None, **answers):
        self.answers = {name: list(texts) for name, texts in answers.items()}
        self.files = dict(files or {})
        self.ran = []

    def run(self, command):
        self.ran.append(command.words)
        left = self.answers.get(command.words[0], [(127, "", "not found")])
        answer = left.pop(0) if len(left) > 1 else left[0]
        status, out, err = answer if isinstance(answer, tuple) else (0, answer, "")
        return Completed(command, status, out.encode(), err.encode())

    def write(self, target, content, mode=0o644):
        self.files[target] = content

    def read(self, target, offset=0):
        return self.files.get(target, b"")[offset:]


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(jobs, "_OUTPUT_SECONDS", 0.01)
    monkeypatch.setattr(jobs, "_FIRST_QUERY", 0.02)
    monkeypatch.setattr(jobs, "_SETTLE_SECONDS", 0.02)


def test_submitting_writes_the_script_and_keeps_the_number():
    slurm = Recorded(sbatch=["41\n"])
    record = jobs.submit(slurm, msgspec.structs.replace(RECORD, id=""), "#!/bin/bash\n")
    assert record.id == "41"
    assert records.find(None) == record
    assert slurm.files[f"{RECORD.spec.directory}/job.sh"] == b"#!/bin/bash\n"
    assert (records.folder(record.key) / "job.sh").read_bytes() == b"#!/bin/bash\n"


def test_a_refusal_is_told_in_sbatchs_words_and_leaves_no_record():
    slurm = Recorded(
        sbatch=[
            (
                1,
                "",
                REFUSAL,
            )
        ]
    )
    with pytest.raises(
        CheckFailed, match="refused the job: Batch job submission failed: Invalid partition"
    ) as caught:
        jobs.submit(slurm, RECORD, "x")
    assert any("invalid partition specified: gpu" in line for line in caught.value.detail)
    assert records.every() == []


def test_following_hands_over_each_line_once_and_keeps_output_and_metrics():
    directory = RECORD.spec.directory
    slurm = Recorded(
        {f"{directory}/output.log": b"one\ntwo\nlast without end", f"{directory}/metrics.jsonl": b"{}\n"},
        scontrol=[RUNNING, RUNNING, DONE],
    )
    lines, states = [], []
    record = jobs.follow(slurm, RECORD, lines.append, lambda s: states.append(s.state))
    assert lines == ["one", "two", "last without end"]
    assert states == ["running", "running", "completed"]
    assert (record.state, record.exit_code) == ("completed", 0)
    assert records.find(None) == record
    assert (records.folder(record.key) / "output.log").read_text() == "one\ntwo\nlast without end"
    assert (records.folder(record.key) / "metrics.jsonl").read_text() == "{}\n"


def test_a_failed_job_keeps_its_exit_code():
    record = jobs.follow(Recorded(scontrol=[FAILED]), RECORD, print)
    assert (record.state, record.exit_code) == ("failed", 3)


def test_output_is_kept_when_following_is_interrupted():
    directory = RECORD.spec.directory

    def stop(_line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.follow(Recorded({f"{directory}/output.log": b"one\n"}, scontrol=[RUNNING]), RECORD, stop)
    assert (records.folder(RECORD.key) / "output.log").read_text() == "one\n"


def test_accounting_is_asked_when_the_controller_has_forgotten():
    assert jobs.query(Recorded(scontrol=[GONE], sacct=["TIMEOUT|0:0\n"]), "7").state == "timeout"


@pytest.mark.parametrize(("left", "state"), [(b"0\n", "completed"), (b"4\n", "failed")])
def test_the_scripts_own_status_counts_where_nobody_remembers(left, state):
    slurm = Recorded({f"{RECORD.spec.directory}/exit-code": left}, scontrol=[GONE])
    record = jobs.refresh(slurm, RECORD)
    assert record.state == state
    assert jobs.follow(slurm, RECORD, print).state == state


def test_a_job_that_left_no_trace_is_unknown():
    assert jobs.refresh(Recorded(scontrol=[GONE]), RECORD).state == "unknown"


def test_a_job_that_has_ended_is_not_asked_for_again():
    slurm = Recorded(scontrol=[RUNNING])
    ended = msgspec.structs.replace(RECORD, state="completed")
    assert jobs.refresh(slurm, ended) == ended
    assert slurm.ran == []


def test_cancel():
    slurm = Recorded(scancel=[""])
    assert jobs.cancel(slurm, RECORD).state == "cancelled"
    assert slurm.ran == [("scancel", "7")]
    with pytest.raises(CheckFailed, match="cancelling job 7"):
        jobs.cancel(Recorded(scancel=[(1, "", "no")]), RECORD)
