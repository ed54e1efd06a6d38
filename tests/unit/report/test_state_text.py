import msgspec

from tests.unit.launch.examples import RECORD
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.launch.tracking.state_text import describe_resumption, describe_state, nodes, todo


def test_a_job_that_waits_tells_its_place_the_reason_and_when():
    status = JobStatus("pending", "Priority", started="2026-11-21T19:00:12", place=(3, 12))
    assert describe_state(status) == (
        "waits, place 3 of 12 in the queue: jobs with a higher priority start first (Priority); "
        "expected to start 2026-11-21 19:00, the cluster's time"
    )
    assert todo(status, "7") == ""


def test_a_job_that_would_wait_for_ever_says_so_and_what_to_do():
    status = JobStatus("pending", "JobHeldUser")
    assert (
        describe_state(status)
        == "waits and will not start by itself: the owner held the job (`scontrol hold`) (JobHeldUser)"
    )
    assert todo(status, "7") == "release the job: scontrol release 7"


def test_restarts_are_told():
    assert describe_state(JobStatus("running", "", "node[1-2]", restarts=1)) == (
        "runs on node[1-2], started again once"
    )
    assert "started again 3 times" in describe_state(JobStatus("running", restarts=3))
    assert describe_state(JobStatus("pending", restarts=1)) == "waits for a restart"


def test_other_answers_have_their_words():
    assert "does not answer" in describe_state(JobStatus("unknown", answer="silent"))
    assert "unknown state" in describe_state(JobStatus("unknown"))
    assert describe_state(JobStatus("running")) == "runs"


def test_a_successor_is_named():
    record = msgspec.structs.replace(RECORD, id="8", numbers=("7", "8"))
    assert describe_resumption(record).startswith("7 wrote a checkpoint and stopped before its time limit")
    assert describe_resumption(record).endswith("job 8 resumes from the checkpoint")


def test_a_thousand_nodes_are_told_in_a_few_words():
    assert nodes("node[1-1000]") == "node[1-1000]"
    racks = ",".join(f"r{rack}n[001-100]" for rack in range(1, 11))
    assert nodes(racks) == "1000 nodes, r1n001 to r10n100"
