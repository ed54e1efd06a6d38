"""Test submitting, querying and cancelling jobs with recorded answers of Slurm; tests/full uses a real
Slurm.
"""

import msgspec
import pytest

from tests.unit.launch.examples import RECORD, spec
from tests.unit.launch.recorded import AWAY, DONE, FAILED, GONE, REFUSAL, RUNNING, UNANSWERED, Recorded
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed, Interrupted, Lost, Missing
from toolkit.launch.tracking import jobs, records, submission
from toolkit.model.hidden import Hidden
from toolkit.model.job import JobTask
from toolkit.run import patience
from toolkit.scheduler import pbs

PLAIN = spec()
NEW = msgspec.structs.replace(RECORD, id="")
OUTPUT = f"{RECORD.spec.directory}/output.log"
METRICS = f"{RECORD.spec.directory}/metrics.jsonl"
EXIT_CODE = f"{RECORD.spec.directory}/exit-code"


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(jobs, "_CANCEL_PAUSE", 0.01)
    monkeypatch.setattr(jobs, "_CANCEL_SECONDS", 0.05)
    monkeypatch.setattr(submission, "_LOOK_PAUSES", (0.0,))


def kept(name):
    return (records.folder(RECORD.key) / name).read_text()


def test_the_secrets_of_a_job_are_removed_with_its_end_and_asked_for_to_go_on():
    spec = msgspec.structs.replace(RECORD.spec, secrets=("MY_TOKEN",))
    slurm = Recorded(
        scontrol=[FAILED], squeue=[""], rm=[""], files={f"{spec.directory}/job.sh": b"x"}, sbatch=["8"]
    )
    record, _ = jobs.refresh(slurm, msgspec.structs.replace(RECORD, spec=spec))
    assert ("rm", "-f", "--", f"{spec.directory}/secrets.sh") in slurm.ran
    submission.resubmit(slurm, record, {"MY_TOKEN": Hidden("c4n4ry")})
    assert slurm.files[f"{spec.directory}/secrets.sh"] == b"export MY_TOKEN=c4n4ry\n"


def test_submitting_writes_the_script_and_keeps_the_number():
    slurm = Recorded(sbatch=["41\n"])
    record = submission.submit(slurm, NEW, "#!/bin/bash\n")
    assert (record.id, record.state) == ("41", "pending")
    assert records.find(None) == record
    assert slurm.files[f"{RECORD.spec.directory}/job.sh"] == b"#!/bin/bash\n"
    assert kept("job.sh") == "#!/bin/bash\n"


def test_a_script_for_pbs_is_not_submitted_by_sbatch():
    for_pbs = "#!/bin/bash\n# Made by toolkit\n" + "".join(f"#PBS {line}\n" for line in pbs.header(PLAIN))
    with pytest.raises(BadInput, match="for PBS"):
        submission.submit(Recorded(), NEW, for_pbs)
    assert records.every() == []
    assert submission.submit(Recorded(sbatch=["41"]), NEW, "#!/bin/bash\ncat <<E\n#PBS -N x\nE\n").id == "41"


def test_a_refusal_is_told_in_sbatchs_words_and_leaves_no_record():
    slurm = Recorded(sbatch=[(1, "", REFUSAL)])
    with pytest.raises(CheckFailed, match="rejected the job: Batch job submission failed: Inv") as caught:
        submission.submit(slurm, NEW, "x")
    assert any("invalid partition specified: gpu" in line for line in caught.value.detail)
    assert records.every() == []


def test_where_there_is_no_sbatch_no_record_is_left():
    absent = Missing("sbatch is not installed on this machine")
    absent.__cause__ = FileNotFoundError("sbatch")
    with pytest.raises(Missing, match="not installed"):
        submission.submit(Recorded(sbatch=[absent]), NEW, "x")
    assert records.every() == []


@every_row(
    ("answer", "error", "said"),
    [
        (None, Missing, "sbatch did not answer within 60 s"),
        (Missing("login: the SSH connection was lost"), Missing, "the SSH connection was lost"),
        ((255, "", ""), Missing, "a signal killed sbatch"),
        ((-9, "", ""), Missing, "a signal killed sbatch"),
        ((137, "", ""), Missing, "a signal killed sbatch"),
        (
            (1, "", UNANSWERED),
            Missing,
            "recorded: Batch job submission failed: Socket timed out on send/recv",
        ),
        ("Submitted, says a plugin\n", Missing, "sbatch printed no job number"),
        (KeyboardInterrupt(), Interrupted, "interrupted while sbatch ran"),
    ],
)
def test_a_job_that_may_have_been_submitted_is_not_forgotten(answer, error, said):
    with pytest.raises(error, match=said) as caught:
        submission.submit(Recorded(sbatch=[answer]), NEW, "x")
    assert "may have been submitted" in caught.value.message
    assert "squeue --me" in caught.value.fix
    left = records.find(None)
    assert (left.key, left.id, left.state) == (NEW.key, "", "unknown")


@every_row("answer", [(137, "", ""), (1, "", UNANSWERED)])
def test_a_job_that_was_submitted_without_an_answer_is_found(answer):
    mine = f"7|{NEW.spec.directory}\n"
    record = submission.submit(Recorded(sbatch=[answer], squeue=[mine]), NEW, "x")
    assert (record.id, record.state) == ("7", "pending")


def test_an_interrupt_before_sbatch_leaves_no_record():
    class Interrupting(Recorded):
        def write(self, target, content, mode=0o644):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        submission.submit(Interrupting(), NEW, "x")
    assert records.every() == []


def test_accounting_is_asked_when_the_controller_has_forgotten():
    assert jobs.query(Recorded(scontrol=[GONE], sacct=["TIMEOUT|0:0\n"]), "7").state == "timeout"


def test_a_site_without_accounting_need_not_have_sacct():
    status = jobs.query(Recorded(scontrol=[GONE], sacct=[Missing("sacct is not installed")]), "7")
    assert (status.state, status.answer) == ("unknown", "forgotten")


@every_row("answer", [AWAY, None, (127, "", "scontrol: not found")])
def test_no_answer_is_not_the_answer_that_there_is_no_such_job(answer):
    assert jobs.query(Recorded(scontrol=[answer]), "7").answer == "silent"


def test_slurm_is_not_asked_about_a_job_without_a_number():
    slurm = Recorded(scontrol=[RUNNING])
    assert jobs.query(slurm, "").state == "unknown"
    assert slurm.ran == []


@every_row(("left", "state"), [(b"0\n", "completed"), (b"4\n", "failed")])
def test_the_scripts_own_status_counts_where_nobody_remembers(left, state):
    record, _ = jobs.refresh(Recorded({EXIT_CODE: left}, scontrol=[GONE]), RECORD)
    assert record.state == state
    lost = msgspec.structs.replace(NEW, state="unknown")
    assert jobs.refresh(Recorded({EXIT_CODE: left}), lost)[0].state == state


def test_a_job_that_left_no_trace_is_unknown():
    assert jobs.refresh(Recorded(scontrol=[GONE]), RECORD)[0].state == "unknown"


def test_a_controller_that_is_away_changes_no_record():
    running = msgspec.structs.replace(RECORD, state="running")
    assert jobs.refresh(Recorded(scontrol=[AWAY]), running) == (running, False)


def test_a_job_that_has_ended_is_not_asked_for_again():
    slurm = Recorded(scontrol=[RUNNING])
    ended = msgspec.structs.replace(RECORD, state="completed")
    assert jobs.refresh(slurm, ended) == (ended, True)
    assert slurm.ran == []


def test_output_and_metrics_of_a_job_that_nobody_followed_are_brought_here_at_its_end():
    slurm = Recorded({OUTPUT: b"all of it\n", METRICS: b"{}\n"}, scontrol=[RUNNING, FAILED])
    record, _ = jobs.refresh(slurm, RECORD)
    assert not (records.folder(RECORD.key) / "output.log").exists()
    record, _ = jobs.refresh(slurm, record)
    assert (record.state, record.exit_code) == ("failed", 3)
    assert (kept("output.log"), kept("metrics.jsonl")) == ("all of it\n", "{}\n")


def test_cancel_waits_for_the_end_and_brings_the_output_here():
    ended = RUNNING.replace("RUNNING", "CANCELLED").replace("0:0", "0:15")
    slurm = Recorded({OUTPUT: b"so far\n"}, scancel=[""], scontrol=[RUNNING, ended])
    assert jobs.cancel(slurm, RECORD).state == "cancelled"
    assert slurm.ran[0] == ("scancel", "7")
    assert kept("output.log") == "so far\n"


def test_a_job_that_takes_its_time_to_end_is_not_called_cancelled_yet():
    assert jobs.cancel(Recorded(scancel=[""], scontrol=[RUNNING]), RECORD).state == "running"


def test_a_job_that_ended_by_itself_meanwhile_is_what_slurm_says():
    assert jobs.cancel(Recorded(scancel=[""], scontrol=[DONE]), RECORD).state == "completed"


def test_what_cannot_be_cancelled_is_told():
    with pytest.raises(CheckFailed, match="cancelling job 7"):
        jobs.cancel(Recorded(scancel=[(1, "", "no")]), RECORD)
    slurm = Recorded(scancel=[""])
    with pytest.raises(CheckFailed, match="number") as caught:
        jobs.cancel(slurm, NEW)
    assert "squeue --me" in caught.value.fix
    assert slurm.ran == []


FOLDER = RECORD.spec.directory
STOPPED = FAILED.replace("ExitCode=3:0", "ExitCode=75:0")


@every_row("answer", [None, Missing("login: the SSH connection was lost"), (255, "", "")])
def test_a_submission_whose_answer_was_lost_is_found_by_its_folder_and_not_made_twice(answer):
    slurm = Recorded(sbatch=[answer], squeue=[f"40|/elsewhere\n41|{FOLDER}\n"])
    record = submission.submit(slurm, NEW, "x")
    assert (record.id, record.numbers, record.state) == ("41", ("41",), "pending")
    assert [words[0] for words in slurm.ran].count("sbatch") == 1


def test_a_job_in_doubt_gets_its_number_when_it_is_asked_for():
    slurm = Recorded(squeue=[f"41|{FOLDER}\n"], scontrol=[RUNNING])
    record, _ = jobs.refresh(slurm, msgspec.structs.replace(NEW, state="unknown"))
    assert (record.id, record.state) == ("41", "running")


SILENT = [AWAY, None, Missing("login: the SSH connection was lost")]


@every_row("answer", SILENT)
def test_a_job_in_doubt_is_not_called_forgotten_while_slurm_does_not_answer(answer):
    lost = msgspec.structs.replace(NEW, state="unknown")
    assert jobs.refresh(Recorded(squeue=[answer]), lost) == (lost, False)
    assert jobs.refresh(Recorded(squeue=[""]), lost) == (lost, True)
    with pytest.raises(Missing):
        jobs.find_number(Recorded(squeue=[answer]), lost)


def test_the_status_of_one_run_is_not_the_end_of_a_job_that_may_go_on_after_it():
    spec = msgspec.structs.replace(RECORD.spec, chain=2)
    lost = msgspec.structs.replace(NEW, state="unknown", spec=spec)
    assert jobs.refresh(Recorded({EXIT_CODE: b"75\n"}, squeue=[AWAY]), lost) == (lost, False)


def test_a_submission_in_doubt_is_looked_for_again_where_slurm_does_not_answer_at_once(monkeypatch):
    monkeypatch.setattr(submission, "_LOOK_PAUSES", (0.0, 0.0))
    slurm = Recorded(sbatch=[None], squeue=[AWAY, f"41|{FOLDER}\n"])
    assert submission.submit(slurm, NEW, "x").id == "41"


def test_a_submission_in_doubt_waits_for_a_connection_that_is_away(monkeypatch):
    monkeypatch.setattr(submission, "_LOOK_PAUSES", (0.0,))
    monkeypatch.setattr(patience, "_FIRST_PAUSE", 0.01)
    lost = Lost("login: the SSH connection was lost")
    slurm = Recorded(sbatch=[lost], squeue=[lost, lost, lost, f"41|{FOLDER}\n"])
    assert submission.submit(slurm, NEW, "x").id == "41"
    assert [words[0] for words in slurm.ran].count("sbatch") == 1


def test_slurm_is_not_asked_for_a_job_of_this_machine_alone():
    local = msgspec.structs.replace(NEW, state="running", started="2026-11-21T10:00:00", nodes="there")
    slurm = Recorded(squeue=[AWAY])
    assert jobs.refresh(slurm, local) == (local, True)
    assert slurm.ran == []


def test_where_and_when_it_ran_and_how_often_is_kept():
    shown = "JobState=RUNNING Restarts=2 StartTime=2026-11-21T19:00:00 NodeList=node[1-2] ExitCode=0:0"
    ended = shown.replace("RUNNING", "COMPLETED") + " EndTime=2026-11-21T20:00:00"
    slurm = Recorded(scontrol=[shown, ended, (1, "", "")])
    records.save(RECORD)
    record, _ = jobs.refresh(slurm, RECORD)
    record, _ = jobs.refresh(slurm, record)
    assert records.find(RECORD.key) == record
    assert (record.restarts, record.nodes, record.started, record.ended) == (
        2,
        "node[1-2]",
        "2026-11-21T19:00:00",
        "2026-11-21T20:00:00",
    )


def test_jobs_of_one_place_that_go_on_are_asked_for_together():
    many = [msgspec.structs.replace(RECORD, key=f"k{n}", id=str(n)) for n in range(1, 101)]
    told = "".join(f"{n}|RUNNING|None|node1|2026-11-21T19:00:00\n" for n in range(1, 100))
    slurm = Recorded(squeue=[told], scontrol=[DONE])
    looked = jobs.refresh_all(slurm, many)
    assert [record.state for record, _ in looked] == [*["running"] * 99, "completed"]
    assert all(reached for _, reached in looked)
    assert len(slurm.ran) == 2


def test_once_slurm_is_silent_the_others_are_not_asked_for():
    many = [msgspec.structs.replace(RECORD, key=f"k{n}", id=str(n)) for n in range(3)]
    slurm = Recorded(squeue=[AWAY], scontrol=[AWAY])
    assert [reached for _, reached in jobs.refresh_all(slurm, many)] == [False] * 3
    assert len([words for words in slurm.ran if words[0] == "scontrol"]) == 1


def test_a_job_that_stopped_in_time_goes_on_under_the_number_of_its_successor():
    slurm = Recorded(scontrol=[STOPPED], squeue=[f"7|{FOLDER}\n8|{FOLDER}\n"])
    record, _ = jobs.refresh(slurm, RECORD)
    assert (record.state, record.id, record.numbers, record.restarts) == ("pending", "8", ("7", "8"), 1)


@every_row("answer", SILENT)
def test_a_job_that_stopped_in_time_has_not_ended_while_slurm_does_not_say_what_follows(answer):
    running = msgspec.structs.replace(RECORD, state="running")
    records.save(running)
    slurm = Recorded(scontrol=[STOPPED], squeue=[answer, f"7|{FOLDER}\n8|{FOLDER}\n"])
    assert jobs.refresh(slurm, running) == (running, False)
    assert records.find(None).state == "running"
    assert jobs.refresh(slurm, running)[0].numbers == ("7", "8")


def test_a_job_that_is_complete_has_ended_whatever_slurm_says_of_others():
    chained = msgspec.structs.replace(RECORD, spec=msgspec.structs.replace(RECORD.spec, chain=2))
    assert jobs.refresh(Recorded(scontrol=[DONE], squeue=[AWAY]), chained)[0].state == "completed"


@every_row("answer", SILENT)
def test_nothing_is_submitted_again_while_slurm_does_not_say_what_goes_on(answer):
    ended = msgspec.structs.replace(RECORD, state="failed", exit_code=75)
    slurm = Recorded({f"{FOLDER}/job.sh": b"x"}, sbatch=["9\n"], squeue=[answer])
    with pytest.raises(Missing, match=r"because another job may already resume") as caught:
        submission.resubmit(slurm, ended)
    assert caught.value.fix.endswith(f"`toolkit jobs resume {RECORD.key}`")
    assert not any(words[0] == "sbatch" for words in slurm.ran)


def test_a_job_that_failed_has_no_successor_that_it_is_asked_for():
    slurm = Recorded(scontrol=[FAILED], squeue=[f"8|{FOLDER}\n"])
    assert jobs.refresh(slurm, RECORD)[0].state == "failed"
    assert not any(words[0] == "squeue" for words in slurm.ran)


def test_going_on_does_not_wait_again_for_the_time_to_begin():
    spec = msgspec.structs.replace(RECORD.spec, begin="now+1hour")
    slurm = Recorded({f"{FOLDER}/job.sh": b"x"}, sbatch=["9\n"], squeue=[""])
    submission.resubmit(slurm, msgspec.structs.replace(RECORD, state="failed", spec=spec))
    assert slurm.ran[-1] == ("sbatch", "--parsable", "--begin=now", f"{FOLDER}/job.sh")


def test_going_on_submits_the_same_script_under_the_same_record():
    ended = msgspec.structs.replace(RECORD, state="failed", exit_code=75)
    slurm = Recorded({f"{FOLDER}/job.sh": b"x"}, sbatch=["9\n"], squeue=[""])
    record = submission.resubmit(slurm, ended)
    assert slurm.ran[-1] == ("sbatch", "--parsable", f"{FOLDER}/job.sh")
    assert (record.key, record.id, record.numbers, record.state) == (RECORD.key, "9", ("7", "9"), "pending")
    assert record.exit_code is None


def test_what_cannot_go_on_is_told_and_its_record_stays():
    records.save(RECORD)
    with pytest.raises(CheckFailed, match="only a job that has ended can be resumed"):
        submission.resubmit(Recorded(), RECORD)
    ended = msgspec.structs.replace(RECORD, state="timeout")
    with pytest.raises(Missing, match=r"job\.sh no longer exists"):
        submission.resubmit(Recorded(), ended)
    with pytest.raises(CheckFailed, match="rejected"):
        submission.resubmit(
            Recorded({f"{FOLDER}/job.sh": b"x"}, sbatch=[(1, "", REFUSAL)], squeue=[""]), ended
        )
    assert records.find(None) == RECORD


def test_ctrl_c_while_a_job_is_submitted_again_says_that_it_may_run():
    slurm = Recorded({f"{FOLDER}/job.sh": b"x"}, sbatch=[KeyboardInterrupt()], squeue=[""])
    with pytest.raises(Interrupted, match="the job may have been submitted") as caught:
        submission.resubmit(slurm, msgspec.structs.replace(RECORD, state="failed", exit_code=75))
    assert caught.value.fix.startswith(f"run again: `toolkit jobs resume {RECORD.key}`")


def test_a_job_of_this_machine_alone_runs_until_it_leaves_its_status():
    alone = msgspec.structs.replace(NEW, state="running")
    records.save(alone)
    assert jobs.refresh(Recorded(), alone)[0].state == "running"
    record, _ = jobs.refresh(Recorded({EXIT_CODE: b"3\n"}), alone)
    assert (record.state, record.exit_code) == ("failed", 3)


def test_what_somebody_submitted_again_by_hand_is_taken_over_and_not_submitted_a_third_time():
    ended = msgspec.structs.replace(RECORD, state="failed", exit_code=75)
    slurm = Recorded({f"{FOLDER}/job.sh": b"x"}, squeue=[f"7|{FOLDER}\n8|{FOLDER}\n"])
    assert submission.resubmit(slurm, ended).numbers == ("7", "8")
    assert not any(words[0] == "sbatch" for words in slurm.ran)


def test_a_job_without_slurm_of_another_machine_is_not_ended_from_here():
    local = msgspec.structs.replace(NEW, state="running", nodes="there", started="2026-11-21T10:00:00")
    with pytest.raises(CheckFailed, match="runs without Slurm on there") as caught:
        jobs.cancel(Recorded(), local)
    assert caught.value.fix == f"run this command on there: `toolkit jobs cancel {local.key}`"


ARRAY = msgspec.structs.replace(RECORD.spec, array="0-2", output="output-%a.log")


def test_an_array_has_its_tasks_and_what_each_wrote():
    states = zip(("COMPLETED", "RUNNING", "PENDING"), ("0:0", "0:0", "0:0"), strict=True)
    lines = [f"JobId=7 ArrayTaskId={i} JobState={s} ExitCode={code}" for i, (s, code) in enumerate(states)]
    record = msgspec.structs.replace(RECORD, spec=ARRAY)
    records.save(record)
    record, _ = jobs.refresh(Recorded(scontrol=["\n".join(lines)]), record)
    assert (record.state, [task.state for task in record.tasks]) == (
        "running",
        ["completed", "running", "pending"],
    )
    # Slurm no longer lists the first task. The second task wrote its status before Slurm reported its end.
    files = {f"{FOLDER}/{i}/{name}": f"{name} {i}".encode() for i in range(3) for name in ("metrics.jsonl",)}
    files |= {f"{FOLDER}/output-{i}.log": f"said {i}\n".encode() for i in range(3)}
    files |= {f"{FOLDER}/1/exit-code": b"4\n"}
    last = "JobId=7 ArrayTaskId=2 JobState=COMPLETED ExitCode=0:0"
    record, _ = jobs.refresh(Recorded(files, scontrol=[last]), record)
    assert [(task.state, task.exit_code) for task in record.tasks] == [
        ("completed", 0),
        ("failed", 4),
        ("completed", 0),
    ]
    assert (record.state, record.exit_code) == ("failed", 4)
    assert records.find(None) == record
    for i in range(3):
        kept = records.folder(record.key) / str(i)
        assert (kept / "metrics.jsonl").read_text() == f"metrics.jsonl {i}"
        assert (kept / "output.log").read_text() == f"said {i}\n"


def test_an_array_whose_task_left_nothing_has_no_known_end():
    tasks = (JobTask(index=0, state="completed", exit_code=0), JobTask(index=1, state="running"))
    record = msgspec.structs.replace(RECORD, spec=ARRAY, tasks=tasks, state="running")
    records.save(record)
    gone = Recorded({f"{FOLDER}/1/exit-code": b"0\n"}, scontrol=[GONE], sacct=[Missing("no sacct")])
    record, _ = jobs.refresh(gone, record)
    assert [task.state for task in record.tasks] == ["completed", "completed", "unknown"]
    assert record.state == "unknown"


# Tasks of an array that continue as jobs with other numbers

CHAINED = msgspec.structs.replace(RECORD, spec=msgspec.structs.replace(ARRAY, chain=2), numbers=("7",))


def told(number, *tasks):
    lines = [f"JobId={number} ArrayTaskId={i} JobState={state} ExitCode={code}:0" for i, state, code in tasks]
    return "\n".join(lines)


ENDED = told(7, (0, "COMPLETED", 0), (1, "FAILED", 75), (2, "FAILED", 75))
SUCCESSORS = f"8_1|{FOLDER}/1\n9_2|{FOLDER}/2\n10|{FOLDER}0\n"


def test_an_array_goes_on_as_long_as_one_of_its_tasks_does():
    slurm = Recorded(scontrol=[ENDED], squeue=[SUCCESSORS])
    record, _ = jobs.refresh(slurm, CHAINED)
    assert (record.state, record.id, record.numbers, record.restarts) == ("pending", "9", ("7", "8", "9"), 2)
    # The later job ends first.
    slurm = Recorded(scontrol=[told(9, (2, "COMPLETED", 0))], squeue=[f"8_1|{FOLDER}/1\n"])
    record, _ = jobs.refresh(slurm, record)
    assert (record.state, record.id, record.numbers, record.restarts) == ("pending", "8", ("7", "9", "8"), 2)
    slurm = Recorded(scontrol=[told(8, (1, "COMPLETED", 0))], squeue=[""])
    record, _ = jobs.refresh(slurm, record)
    assert (record.state, record.exit_code) == ("completed", 0)
    assert [task.state for task in record.tasks] == ["completed"] * 3


def test_how_a_task_went_on_that_nobody_asked_for_is_told_by_the_status_that_it_left():
    slurm = Recorded({f"{FOLDER}/{i}/exit-code": b"0\n" for i in (1, 2)}, scontrol=[ENDED], squeue=[""])
    record, _ = jobs.refresh(slurm, CHAINED)
    assert (record.state, record.exit_code) == ("completed", 0)


def test_a_task_that_failed_counts_more_than_one_that_stopped_in_time():
    shown = told(7, (0, "FAILED", 75), (1, "FAILED", 9), (2, "COMPLETED", 0))
    record, _ = jobs.refresh(Recorded(scontrol=[shown], squeue=[""]), CHAINED)
    assert (record.state, record.exit_code) == ("failed", 9)


def test_an_array_is_not_submitted_again_beside_a_task_that_goes_on():
    ended = msgspec.structs.replace(CHAINED, state="failed", exit_code=75, numbers=("7", "8"))
    slurm = Recorded({f"{FOLDER}/job.sh": b"x"}, squeue=[f"8_1|{FOLDER}/1\n"], sbatch=["11\n"])
    record = submission.resubmit(slurm, ended)
    assert (record.state, record.id) == ("pending", "8")
    assert not any(words[0] == "sbatch" for words in slurm.ran)
    # toolkit resubmits an array whose tasks have all ended, even if Slurm still lists the task numbers.
    slurm.answers["squeue"] = [""]
    assert submission.resubmit(slurm, ended).numbers == ("7", "8", "11")
    assert not any("--states=all" in words for words in slurm.ran)


def test_cancelling_an_array_ends_all_that_goes_on_of_it():
    slurm = Recorded(squeue=[f"7_0|{FOLDER}\n{SUCCESSORS}", ""], scancel=[""], scontrol=[ENDED])
    jobs.cancel(slurm, CHAINED)
    assert ("scancel", "7", "8", "9") in slurm.ran
    slurm = Recorded(squeue=[AWAY], scancel=[""], scontrol=[RUNNING])
    jobs.cancel(slurm, msgspec.structs.replace(RECORD, spec=ARRAY, key="other"))
    assert ("scancel", "7") in slurm.ran


def test_an_array_whose_submission_was_cut_off_is_found_though_a_task_went_on():
    lost = msgspec.structs.replace(CHAINED, id="", numbers=(), state="unknown")
    record = jobs.find_number(Recorded(squeue=[f"7_[0-2]|{FOLDER}\n8_1|{FOLDER}/1\n"]), lost)
    assert (record.id, record.numbers) == ("7", ("7", "8"))
