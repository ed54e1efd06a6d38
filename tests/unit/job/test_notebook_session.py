"""Test a notebook's tunnel if the program on the node, the job or the connection ends."""

import msgspec
import pytest

from tests.unit.launch.examples import RECORD
from toolkit.errors import CheckFailed, Interrupted, Missing
from toolkit.job.running import notebook_session
from toolkit.job.running.notebook_session import (
    TunnelSession,
    _close_notebook,
    _ended_early,
    _forward_until_end,
)
from toolkit.launch import notebook
from toolkit.launch.tracking import jobs
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner
from toolkit.run.tunnel import Tunnel

PLACE = notebook.NotebookAddress("node1", 40017)
SPEAKS = "echo '@ 0 h '; exit"
FAILS = "echo 'srun: error: no such job' >&2; exit 1"


class Node(LocalRunner):
    """Runs the given scripts in turn instead of the program on the node, and repeats the last script."""

    def __init__(self, *scripts):
        self.left = list(scripts)

    def converse(self, command):
        return super().converse(Command(("sh", "-c", self.left.pop(0) if self.left[1:] else self.left[0])))


@pytest.fixture
def tunnel():
    made = Tunnel()
    yield made
    made.close()


@pytest.fixture
def slurm(monkeypatch, tmp_path):
    """Return a function that sets the job's states for the next queries; the tests do not wait between
    queries.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(notebook_session.time, "sleep", lambda _: None)

    def answering(*states):
        left = list(states)

        def refresh(_, record, *__):
            state = left.pop(0) if left[1:] else left[0]
            return msgspec.structs.replace(record, state=state), True

        monkeypatch.setattr(jobs, "refresh", refresh)

    return answering


def test_a_far_end_that_is_lost_is_started_again_and_the_address_is_told_once(tunnel, slurm):
    slurm(*["running"] * 8, "completed")
    told = []
    node = Node(SPEAKS, FAILS, SPEAKS)
    record = _forward_until_end(node, RECORD, PLACE, tunnel, lambda: told.append(1))
    assert record.state == "completed"
    assert told == [1]
    assert len(node.left) == 1


def test_one_that_never_starts_is_given_up_with_its_words_and_the_way_back(tunnel, slurm):
    slurm("running")
    with pytest.raises(Missing) as raised:
        _forward_until_end(Node(FAILS), RECORD, PLACE, tunnel, lambda: None)
    assert raised.value.detail == ("srun: error: no such job",)
    assert raised.value.fix == f"connect again: `toolkit notebook --attach {RECORD.key}`"


def test_a_far_end_that_goes_with_its_job_is_no_fault(tunnel, slurm):
    slurm("running", "timeout")
    assert _forward_until_end(Node(FAILS), RECORD, PLACE, tunnel, lambda: None).state == "timeout"


def test_a_kept_job_is_left_alone_and_the_way_back_is_told(monkeypatch):
    monkeypatch.setattr(jobs, "cancel", lambda *_: pytest.fail("it was cancelled"))
    said = _close_notebook(LocalRunner(), RECORD, TunnelSession(port=0, keep=True, on_open=lambda *_: None))
    assert isinstance(said, Interrupted)
    assert "still runs" in said.message
    assert f"`toolkit notebook --attach {RECORD.key}`" in said.fix


def test_a_job_that_could_not_be_ended_is_told(monkeypatch):
    def cancel(*_):
        raise CheckFailed("scancel timed out")

    monkeypatch.setattr(jobs, "cancel", cancel)
    said = _close_notebook(LocalRunner(), RECORD, TunnelSession(port=0, keep=False, on_open=lambda *_: None))
    assert "may still run: scancel timed out" in said.message
    assert said.fix == f"cancel the job: `toolkit jobs cancel {RECORD.key}`"


def test_no_jupyter_is_told_with_what_to_do():
    error = _ended_early(msgspec.structs.replace(RECORD, state="failed", exit_code=notebook.NO_JUPYTER))
    assert isinstance(error, Missing)
    assert "--packages" in error.fix
