"""Test how a job script reacts to signals, with real bash, real signals, and stand-ins for Slurm."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.launch.examples import CONTAINED, MPIRUN, SRUN, job_script, spec
from tests.unit.tables import every_row
from toolkit.errors import BadInput

# A stand-in for srun with a trainer. Files in the job's folder control it:
# "stop-asked": the trainer writes a checkpoint and exits with 75 or ENDS.
# "dies": the ranks die once with their node. The file contains "noticed" if Slurm has noticed the failure,
#     or "gone" if Slurm has not.
# "over": the trainer ends.
SRUN_STAND_IN = """\
#!/bin/bash
case "$*" in *" true") [ ! -e gone ] && [ ! -e noticed ]; exit ;; esac
printf '%s\\n' "$*" >> started
if [ -e dies ]; then mv dies "$(cat dies)"; exit 9; fi
for _ in $(seq 200); do
    if [ -e stop-asked ]; then sleep 0.02; mkdir -p checkpoints; : > checkpoints/one; exit "${ENDS:-75}"; fi
    if [ -e over ]; then exit 9; fi
    sleep 0.02
done
exit 9
"""
OTHERS = {
    "singularity": "#!/bin/bash\n",
    # Slurm notices a failed node only after the first query of the job's nodes.
    "squeue": """\
#!/bin/bash
# For an array, 77 is the number of the whole array, so squeue also lists another task.
case "${SLURM_ARRAY_TASK_ID:+$*}" in *"--jobs=77 "*) echo "2 n[8-9]" ;; esac
case "$*" in
    *%N*)
        if [ -e noticed ]; then echo "1 n1"; else echo "2 n[1-2]"; fi
        [ ! -e gone ] || mv gone noticed ;;
    *) echo "${STATE:-RUNNING}" ;;
esac
""",
    "sleep": "#!/bin/bash\nexec /bin/sleep 0.05\n",
    "sbatch": '#!/bin/bash\nprintf "%s\\n" "$*" > submitted\necho 78\n',
    # Slurm sends SIGTERM to the script of a job that it requeues.
    "scontrol": """\
#!/bin/bash
printf "%s\\n" "$*" > requeued
[ -n "${FORBIDS:-}" ] && exit 1
kill -TERM "$PPID"
""",
}


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a script in ``tmp_path``, waits until ranks run, and sends a signal."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"srun": SRUN_STAND_IN, **OTHERS}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def started(number=signal.SIGUSR1, times=1, changes=None, **environment):
        asked = {"preflight": False, "trainer": "mnist", "warning": 60, **(changes or {})}
        case = spec(directory=str(tmp_path), **asked)
        (tmp_path / "job.sh").write_text(job_script(case, SRUN, "why"))
        # A shell cannot catch a signal that its parent ignores, such as SIGHUP under nohup.
        process = subprocess.Popen(
            ["env", "--default-signal", "bash", "job.sh"],
            cwd=tmp_path,
            env={
                "PATH": f"{programs}:/usr/bin:/bin",
                "SLURM_JOB_ID": "77",
                "SLURM_NTASKS": "2",
                "SLURM_JOB_NODELIST": "n[1-2]",
                "SLURM_JOB_NUM_NODES": "2",
                **environment,
            },
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        deadline = time.monotonic() + 10
        while not list(tmp_path.rglob("started")) and time.monotonic() < deadline:
            time.sleep(0.01)
        state = Path(f"/proc/{process.pid}/stat")
        while ") S " not in state.read_text() and time.monotonic() < deadline:
            time.sleep(0.001)  # bash has not yet recorded srun as its job
        for _ in range(times):
            os.kill(process.pid, number)
            time.sleep(0.005)
        process.wait(timeout=30)
        (tmp_path / "over").touch()  # Slurm kills the processes that a script leaves
        _, said = process.communicate(timeout=30)
        (tmp_path / "over").unlink()
        return process.returncode, said

    return started


ARRAY = {"SLURM_ARRAY_JOB_ID": "77", "SLURM_ARRAY_TASK_ID": "3"}


def left(folder):
    return (folder / "exit-code").read_text().strip() if (folder / "exit-code").exists() else None


@every_row("number", [signal.SIGUSR1, signal.SIGTERM])
def test_asked_to_stop_it_waits_for_the_checkpoint_and_says_how_to_go_on(start, tmp_path, number):
    status, said = start(number)
    assert (status, left(tmp_path)) == (75, "75")
    assert (tmp_path / "checkpoints" / "one").exists()
    assert not (tmp_path / "stop-asked").exists()
    assert f"sbatch {tmp_path}/job.sh" in said


def test_several_signals_are_one_wish(start, tmp_path):
    status, _ = start(times=4)
    assert (status, left(tmp_path)) == (75, "75")


def test_ranks_that_srun_ended_a_moment_later_had_their_checkpoint_too(start, tmp_path):
    status, said = start(ENDS="143")
    assert status == 75
    assert "stopped with a checkpoint" in said


def test_it_goes_back_into_the_queue_and_has_not_ended(start, tmp_path):
    status, _ = start(changes={"requeue": True})
    assert status == -signal.SIGTERM
    assert (tmp_path / "requeued").read_text() == "requeue 77\n"
    assert left(tmp_path) is None
    assert (tmp_path / "restarts").read_text() == "1\n"
    assert not (tmp_path / "submitted").exists()


def test_where_that_is_forbidden_it_submits_itself(start, tmp_path):
    status, said = start(changes={"requeue": True}, FORBIDS="yes")
    assert (status, left(tmp_path)) == (75, "75")
    assert (tmp_path / "submitted").read_text() == "--parsable --dependency=afterany:77 job.sh\n"
    assert "job 78 resumes from the last checkpoint" in said


def test_a_chain_submits_the_next_job_until_it_has_as_many_as_it_may(start, tmp_path):
    for count in ("1\n", "2\n"):
        status, said = start(changes={"chain": 2})
        assert status == 75
        assert "job 78 resumes from the last checkpoint" in said
        assert (tmp_path / "restarts").read_text() == count
        (tmp_path / "submitted").unlink()
        (tmp_path / "started").unlink()
    _, said = start(changes={"chain": 2})
    assert "the job resumed 2 times, which is the limit" in said
    assert not (tmp_path / "submitted").exists()


def test_the_next_job_of_a_chain_does_not_wait_again_for_its_time_to_begin(start, tmp_path):
    start(changes={"chain": 1, "begin": "now+2hours"})
    assert " --begin=now " in (tmp_path / "submitted").read_text()


def test_a_job_of_an_array_submits_its_own_number_again(start, tmp_path):
    (tmp_path / "3").mkdir()
    start(changes={"chain": 1, "array": "0-7"}, **ARRAY)
    assert not (tmp_path / "exit-code").exists()
    # The next job of task 3 starts in the task's folder and changes to the array's folder, so that both jobs
    # write to the same output file.
    words = f"--parsable --dependency=afterany:77_3 --array=3 --chdir={tmp_path} job.sh\n"
    assert (tmp_path / "3" / "submitted").read_text() == words
    assert (tmp_path / "3" / "job.sh").read_text() == (tmp_path / "job.sh").read_text()


def test_a_job_of_an_array_goes_back_into_the_queue_alone(start, tmp_path):
    start(changes={"requeue": True, "array": "0-7"}, **ARRAY)
    assert (tmp_path / "3" / "requeued").read_text() == "requeue 77_3\n"
    assert left(tmp_path / "3") is None


def test_an_elastic_job_of_an_array_looks_at_its_own_nodes(start, tmp_path):
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "dies").write_text("noticed")
    start(changes={"elastic": True, "array": "0-7"}, **ARRAY)
    assert "--nodelist=n1" in (tmp_path / "3" / "started").read_text().splitlines()[1]


@every_row("state", ["COMPLETING", "CANCELLED", ""])
def test_a_job_that_slurm_has_ended_does_not_come_back(start, tmp_path, state):
    start(signal.SIGTERM, changes={"requeue": True, "chain": 3}, STATE=state or " ")
    assert not (tmp_path / "requeued").exists()
    assert not (tmp_path / "submitted").exists()


def test_what_fails_by_itself_is_not_started_again(start, tmp_path):
    status, _ = start(changes={"requeue": True}, ENDS="3")
    assert (status, left(tmp_path)) == (3, "3")
    assert not (tmp_path / "requeued").exists()


@every_row("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_script_that_a_signal_ends_at_once_has_not_completed(start, tmp_path, number):
    status, _ = start(number, changes={"trainer": "", "warning": 0})
    assert (status, left(tmp_path)) == (-number, "143")


def test_a_preflight_that_a_signal_ends_has_not_completed(start, tmp_path):
    status, _ = start(signal.SIGTERM, changes={"preflight": True})
    assert (status, left(tmp_path)) == (-signal.SIGTERM, "143")


def test_a_command_of_ones_own_has_the_short_script():
    made = job_script(spec(), SRUN, "why")
    assert "stop-asked\n" in made  # the script removes the file of an earlier run
    assert "trap ask_to_stop" not in made
    assert "trap ask_to_stop" in job_script(spec(warning=30), SRUN, "why")


# Nodes that fail


@every_row(
    ("changes", "says"),
    [
        ({}, "to resume, submit the script again"),
        ({"chain": 2}, "job 78 resumes from the last checkpoint"),
        ({"requeue": True}, ""),
    ],
)
def test_where_a_node_is_gone_that_is_said_and_the_job_goes_on_as_it_may(start, tmp_path, changes, says):
    (tmp_path / "dies").write_text("gone")
    status, said = start(times=0, changes=changes)
    if changes.get("requeue"):
        assert (status, (tmp_path / "requeued").read_text()) == (-signal.SIGTERM, "requeue 77\n")
        assert (tmp_path / "went-back").exists()
    else:
        assert (status, left(tmp_path)) == (9, "9")
        assert f"a node of n[1-2] does not answer; {says}" in said
    assert (tmp_path / "submitted").exists() == bool(changes.get("chain"))


def test_a_job_that_slurm_has_ended_asks_no_node(start, tmp_path):
    (tmp_path / "dies").write_text("gone")
    status, said = start(times=0, changes={"requeue": True}, STATE="COMPLETING")
    assert (status, said) == (9, "")


@every_row("how", ["gone", "noticed"])
def test_an_elastic_job_goes_on_with_the_nodes_that_are_left(start, tmp_path, how):
    (tmp_path / "dies").write_text(how)
    status, said = start(changes={"elastic": True, "ranks_per_node": 3})
    assert (status, left(tmp_path)) == (75, "75")
    assert "n1 of n[1-2] remains; 3 ranks start on these nodes and resume from the last checkpoint" in said
    assert ("waiting until Slurm removes the node" in said) == (how == "gone")
    first, second = (tmp_path / "started").read_text().splitlines()
    assert "--nodes=2 --ntasks=6 --ntasks-per-node=3 --nodelist=n[1-2]" in first
    assert "--nodes=1 --ntasks=3 --ntasks-per-node=3 --nodelist=n1" in second


def test_an_elastic_job_needs_its_least_nodes(start, tmp_path):
    (tmp_path / "dies").write_text("noticed")
    status, said = start(times=0, changes={"elastic": True, "min_nodes": 2, "chain": 1})
    assert status == 9
    assert "n1 of n[1-2] remains, but the job needs 2 nodes; job 78 resumes from the last checkpoint" in said
    assert len((tmp_path / "started").read_text().splitlines()) == 1


def test_an_elastic_job_that_fails_by_itself_has_failed(start, tmp_path):
    status, said = start(changes={"elastic": True, "requeue": True}, ENDS="3")
    assert status == 3
    assert "left" not in said
    assert len((tmp_path / "started").read_text().splitlines()) == 1


def test_an_elastic_job_asks_slurm_for_a_range_of_nodes_and_to_live_on():
    script = job_script(spec(nodes=8, ranks_per_node=4, elastic=True, min_nodes=3), SRUN, "why")
    assert "#SBATCH --nodes=3-8\n" in script
    assert "#SBATCH --no-kill\n" in script
    assert "#SBATCH --ntasks-per-node=4\n" in script
    assert "#SBATCH --ntasks=" not in script
    assert "#SBATCH --nodes=8\n" in job_script(spec(nodes=8, elastic=True, min_nodes=8), SRUN, "why")


@every_row("plan", [MPIRUN, CONTAINED])
def test_who_starts_by_mpirun_cannot_be_elastic(plan):
    with pytest.raises(BadInput, match=f"mode {plan.mode} starts its ranks with mpirun"):
        job_script(spec(elastic=True), plan, "why")


@every_row(
    ("changes", "said"),
    [
        ({"min_nodes": 1}, "needs --elastic"),
        ({"elastic": True, "min_nodes": 3}, "must be at most --nodes 2"),
    ],
)
def test_nodes_that_make_no_sense_are_refused(changes, said):
    with pytest.raises(BadInput, match=said):
        job_script(spec(**changes), SRUN, "why")
