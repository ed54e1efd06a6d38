"""Test that ``--requeue`` resubmits a failed job only after a fault of a node or a temporary fault."""

from pathlib import Path

import msgspec
import pytest

from tests.unit.launch.examples import RECORD
from tests.unit.tables import every_row
from toolkit.job.running import retry
from toolkit.job.running.retry import retry_faults
from toolkit.launch.tracking import records
from toolkit.model.job import JobRecord
from toolkit.model.progress import Silent
from toolkit.run.local import LocalRunner

ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered\nsrun: error: node4: task 3: Aborted\n"
BUG = "KeyError: 'x'\nsrun: error: node4: task 3: Exited with exit code 1\n"


class Told(Silent):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return the ``sbatch`` options of each submission; no job reaches Slurm."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    calls: list[tuple[str, ...]] = []

    def once_more(_runner, record, _demand, _secrets, _tell, options=()):
        calls.append(options)
        return record

    monkeypatch.setattr(retry, "submit_again", once_more)
    return calls


def run(output: str, ends: list[str], tell: Silent, **changes: object) -> JobRecord:
    """Run a job whose runs write ``output`` and end in the next state of ``ends``; return the last record."""
    spec = msgspec.structs.replace(RECORD.spec, **{"requeue": True, **changes})
    states = iter(ends)
    record = msgspec.structs.replace(RECORD, spec=spec, state=next(states), exit_code=1)
    records.save(record)
    records.keep(record, records.OUTPUT, output.encode())

    def watch(job: JobRecord) -> JobRecord:
        return msgspec.structs.replace(job, state=next(states))

    return retry_faults(LocalRunner(), record, None, {}, tell, watch)


def test_a_fault_of_a_node_is_tried_again_on_other_nodes(submitted: list[tuple[str, ...]]):
    assert run(ECC, ["failed", "completed"], Silent()).state == "completed"
    assert submitted == [("--exclude=node4",)]


def test_nodes_that_the_job_excludes_stay_excluded(submitted: list[tuple[str, ...]]):
    run(ECC, ["failed", "completed"], Silent(), exclude="node9")
    assert submitted == [("--exclude=node9,node4",)]


def test_a_fault_that_follows_the_job_ends_the_tries(submitted: list[tuple[str, ...]]):
    assert run(ECC, ["failed"] * 9, Silent()).state == "failed"
    assert len(submitted) == 2


@every_row(
    ("output", "ends", "changes"),
    [
        (BUG, ["failed"], {}),
        ("torch.OutOfMemoryError: CUDA out of memory\n", ["failed"], {}),
        ("step 1\n", ["failed"], {}),
        (ECC, ["cancelled"], {}),
        (ECC, ["timeout"], {}),
        (ECC, ["completed"], {}),
        (ECC, ["failed"], {"requeue": False}),
    ],
)
def test_nothing_else_is_submitted_again(submitted: list[tuple[str, ...]], output, ends, changes):
    run(output, ends, Silent(), **changes)
    assert submitted == []


def test_the_user_hears_why_a_bug_is_not_submitted_again(submitted: list[tuple[str, ...]]):
    told = Told()
    run(BUG, ["failed"], told)
    assert submitted == []
    assert told.notices == ["--requeue: no retry. Without a change, the same job will probably fail again."]
