from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.launch.tracking import slurm
from toolkit.launch.tracking.slurm import JobStatus


@every_row("text", ["123\n", "123;cluster\n", "sbatch: a remark of a plugin\n123\n"])
def test_job_number_is_read(text):
    assert slurm.parse_sbatch(text) == "123"


def test_an_answer_without_number_is_none():
    assert slurm.parse_sbatch("Submitted nothing\n") is None


def test_a_controller_that_is_away_has_forgotten_nothing():
    assert slurm.says_forgotten("slurm_load_jobs error: Invalid job id specified\n")
    assert not slurm.says_forgotten("slurm_load_jobs error: Unable to contact slurm controller\n")
    assert not slurm.says_forgotten("")


def test_show_job_of_a_running_job():
    text = "JobId=5 JobName=a b JobState=RUNNING Reason=None ExitCode=0:0 NodeList=node[1-2]"
    assert slurm.parse_show_job(text) == JobStatus("running", "", "node[1-2]", None)


def test_show_job_of_a_waiting_job_gives_the_reason():
    text = "JobId=5 JobState=PENDING Reason=Resources ExitCode=0:0 NodeList=(null)"
    assert slurm.parse_show_job(text) == JobStatus("pending", "Resources", "", None)


@every_row(("code", "meant"), [("3:0", 3), ("0:9", 137), ("0:0", 0), ("odd", None)])
def test_exit_code_of_a_failed_job(code, meant):
    status = slurm.parse_show_job(f"JobState=FAILED Reason=NonZeroExitCode ExitCode={code} NodeList=n")
    assert status is not None
    assert status.exit_code == meant


def test_text_that_is_no_job_is_nothing():
    assert slurm.parse_show_job("slurm_load_jobs error: Invalid job id specified") is None
    assert slurm.parse_account("") is None


def test_a_state_of_a_later_slurm_is_unknown_and_no_error():
    status = slurm.parse_show_job("JobState=TELEPORTED Reason=None ExitCode=0:0")
    assert status is not None
    assert status.state == "unknown"


@every_row(
    ("text", "state"),
    [("COMPLETED|0:0", "completed"), ("CANCELLED by 1000|0:15", "cancelled"), ("TIMEOUT|0:0", "timeout")],
)
def test_accounting_is_read(text, state):
    status = slurm.parse_account(f"\n{text}\n")
    assert status is not None
    assert status.state == state


def test_words_are_raw():
    assert slurm.sbatch("/a b/job.sh", "/a b").words == ("sbatch", "--parsable", "/a b/job.sh")
    assert slurm.sbatch("/a b/job.sh", "/a b").cwd == "/a b"
    assert slurm.scancel("7", "9").words == ("scancel", "7", "9")
    assert "--states=all" in slurm.list_own_jobs().words
    assert "--states=all" not in slurm.list_own_jobs(live=True).words
    assert "7" in slurm.show_job("7").words
    assert "7" in slurm.account("7").words


WAITING = (
    "JobId=5 JobName=mnist Priority=10 JobState=PENDING Reason=Priority Restarts=2 ExitCode=0:0 "
    "StartTime=2026-11-21T19:00:00 EndTime=Unknown Partition=batch ReqNodeList=(null) NodeList=(null) "
    "WorkDir=/x JobState=FAILED"
)


def test_a_waiting_job_tells_when_it_may_start_where_and_how_often_it_did():
    status = slurm.parse_show_job(WAITING)
    assert status == JobStatus(
        "pending", "Priority", "", None, started="2026-11-21T19:00:00", restarts=2, partition="batch"
    )


def test_when_a_job_has_to_end_is_not_when_it_ended():
    text = "JobState=RUNNING StartTime=2026-11-21T19:00:00 EndTime=2026-11-21T20:00:00 ExitCode=0:0"
    assert slurm.parse_show_job(text).ended == ""
    assert slurm.parse_show_job(text.replace("RUNNING", "COMPLETED")).ended == "2026-11-21T20:00:00"


def test_accounting_tells_when_and_where():
    status = slurm.parse_account("TIMEOUT|0:0|2026-11-21T19:00:00|2026-11-21T20:00:00|node[1-2]\n")
    assert (status.started, status.ended, status.nodes) == (
        "2026-11-21T19:00:00",
        "2026-11-21T20:00:00",
        "node[1-2]",
    )


def test_of_several_jobs_those_that_go_on_are_told_at_once():
    text = (
        "7|RUNNING|None|node[1-2]|2026-11-21T19:00:00\n8|PENDING|Priority||N/A\n9|COMPLETED|None|n|x\nodd\n"
    )
    assert slurm.parse_some(text) == {
        "7": JobStatus("running", "", "node[1-2]", started="2026-11-21T19:00:00"),
        "8": JobStatus("pending", "Priority"),
    }
    assert "--jobs=7,8" in slurm.query_jobs(["7", "8"]).words


def test_the_place_in_the_queue_counts_those_that_wait_for_their_turn_alone():
    text = "3|Priority\n4_[1-9]|Resources\n5|JobHeldUser\n6|Dependency\n7|Priority\n8|Priority\n"
    assert slurm.parse_waiting(text, "7") == (3, 4)
    assert slurm.parse_waiting(text, "4") == (2, 4)
    assert slurm.parse_waiting(text, "5") is None
    assert slurm.parse_waiting("", "7") is None


def test_jobs_of_a_folder_are_found_by_it_and_by_no_other():
    text = "12|/w/runs/a\n9|/w/runs/a\n10|/w/runs/ab\n11_3|/w/runs/a\n\n"
    assert slurm.parse_own_jobs(text, "/w/runs/a") == ["9", "11", "12"]


def test_tasks_of_an_array_are_of_its_folder_and_so_are_those_that_went_on_from_their_own():
    assert slurm.parse_own_jobs("48_[0-3]|/w\n9_0|/w/0\n", "/w") == ["9", "48"]
    assert slurm.parse_own_jobs("48_0|/w\n48_[1-3%2]|/w\n60_1|/w/1\n61|/w/a\n62_1|/w/1/1\n", "/w") == [
        "48",
        "60",
    ]


def test_a_job_is_found_where_slurm_tells_what_a_symbolic_link_comes_to():
    key = "mnist-20261122-063253-1eef55"
    text = f"41|/gpfs/scratch/ada/toolkit/runs/{key}\n42_1|/gpfs/scratch/ada/toolkit/runs/{key}/1\n"
    others = f"43|/work/ada/toolkit/runs/{key}/a\n44|/work/ada/toolkit/runs/x-{key}\n45|\n"
    assert slurm.parse_own_jobs(text + others, f"/work/ada/toolkit/runs/{key}") == ["41", "42"]


def test_of_an_array_what_goes_on_counts_first_and_then_what_failed():
    def lines(*states):
        return "\n".join(f"JobId={n} JobState={state} ExitCode=0:0" for n, state in enumerate(states))

    assert slurm.parse_show_job(lines("COMPLETED", "FAILED", "RUNNING", "PENDING")).state == "running"
    assert slurm.parse_show_job(lines("COMPLETED", "PENDING", "FAILED")).state == "pending"
    assert slurm.parse_show_job(lines("COMPLETED", "FAILED", "COMPLETED")).state == "failed"
    assert slurm.parse_account("COMPLETED|0:0\nTIMEOUT|0:0\n").state == "timeout"
    assert slurm.parse_some("7_[2-9]|PENDING|Priority||N/A\n7_1|RUNNING|None|n1|x\n")["7"].state == "running"


def test_the_tasks_of_an_array_are_told_one_by_one():
    shown = (
        "JobId=12 ArrayJobId=7 ArrayTaskId=3-5%2 JobState=PENDING NodeList=(null) ExitCode=0:0\n"
        "JobId=9 ArrayJobId=7 ArrayTaskId=1 JobState=RUNNING NodeList=node1 ExitCode=0:0\n"
        "JobId=8 ArrayJobId=7 ArrayTaskId=0 JobState=FAILED NodeList=node2 ExitCode=3:0\n"
    )
    told = [(t.index, t.state, t.exit_code, t.nodes) for t in slurm.parse_show_job(shown).tasks]
    waits = [(index, "pending", None, "") for index in (3, 4, 5)]
    assert told == [(0, "failed", 3, "node2"), (1, "running", None, "node1"), *waits]
    accounted = (
        "COMPLETED|0:0|a|b|node1|7_0\nTIMEOUT|0:0|a|b|node2|7_1\nPENDING|0:0|||None assigned|7_[2-3%1]\n"
    )
    assert [(t.index, t.state) for t in slurm.parse_account(accounted).tasks] == [
        (0, "completed"),
        (1, "timeout"),
        (2, "pending"),
        (3, "pending"),
    ]
    assert slurm.parse_show_job("JobId=7 JobState=RUNNING ExitCode=0:0").tasks == ()


def test_a_task_writes_where_its_number_says():
    where = slurm.output_path("/w", "output-%4a.log", "12", "mnist", "3")
    assert where == "/w/output-0003.log"
    assert slurm.output_path("/w", "%A_%a-%j-%x.log", "12", "mnist", "3") == "/w/12_3-%j-mnist.log"
    assert slurm.output_path("/w", "output-%a.log", "12", "mnist") == "/w/output-%a.log"


@every_row(
    ("output", "path"),
    [
        ("output.log", "/w/output.log"),
        ("%x-%j.log", "/w/mnist-12.log"),
        ("%6j", "/w/000012"),
        ("100%%-%A", "/w/100%-12"),
        ("/else/%j", "/else/12"),
        ("%N.log", "/w/%N.log"),
    ],
)
def test_where_a_job_writes_is_told_from_its_pattern(output, path):
    assert slurm.output_path("/w", output, "12", "mnist") == path


@given(st.text() | st.text("|_= \n[]-0123456789JobStateRUNNINGPD", max_size=300))
def test_whatever_slurm_prints_is_read_or_passed_over(text):
    slurm.parse_show_job(f"JobState={text} Restarts={text}")
    slurm.parse_account(text)
    slurm.parse_some(text)
    slurm.parse_waiting(text, "7")
    slurm.parse_own_jobs(f"{text}|/w", "/w")
    slurm.parse_sbatch(text)
