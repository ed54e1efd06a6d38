"""What a job's script does when it is asked to stop: real bash, real signals, stand-ins for Slurm."""

import os
import signal
import subprocess
import time

import pytest

from tests.unit.launch.examples import SRUN, spec
from toolkit.launch.script import job_script

# A trainer: looks for the file, writes a checkpoint, ends with 75 (or as srun tells of those that it killed).
SRUN_STAND_IN = """\
#!/bin/bash
echo started >> started
for _ in $(seq 200); do
    if [ -e stop-asked ]; then sleep 0.02; mkdir -p checkpoints; : > checkpoints/one; exit "${ENDS:-75}"; fi
    sleep 0.02
done
exit 9
"""
OTHERS = {
    "singularity": "#!/bin/bash\n",
    "squeue": '#!/bin/bash\necho "${STATE:-RUNNING}"\n',
    "sbatch": '#!/bin/bash\nprintf "%s\\n" "$*" > submitted\necho 78\n',
    # Slurm ends the script of a job that goes back into the queue.
    "scontrol": """\
#!/bin/bash
printf "%s\\n" "$*" > requeued
[ -n "${FORBIDS:-}" ] && exit 1
kill -TERM "$PPID"
""",
}


@pytest.fixture
def start(tmp_path):
    """Return what starts a script in ``tmp_path``, waits until ranks run, and sends it a signal."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"srun": SRUN_STAND_IN, **OTHERS}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def started(number=signal.SIGUSR1, times=1, changes=None, **environment):
        case = spec(directory=str(tmp_path), preflight=False, trainer="mnist", warning=60, **(changes or {}))
        (tmp_path / "job.sh").write_text(job_script(case, SRUN, "why"))
        process = subprocess.Popen(
            ["bash", "job.sh"],
            cwd=tmp_path,
            env={
                "PATH": f"{programs}:/usr/bin:/bin",
                "SLURM_JOB_ID": "77",
                "SLURM_NTASKS": "2",
                "SLURM_JOB_NODELIST": "n",
                **environment,
            },
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        deadline = time.monotonic() + 10
        while not list(tmp_path.rglob("started")) and time.monotonic() < deadline:
            time.sleep(0.01)
        for _ in range(times):
            os.kill(process.pid, number)
            time.sleep(0.005)
        _, said = process.communicate(timeout=30)
        return process.returncode, said

    return started


def left(folder):
    return (folder / "exit-code").read_text().strip() if (folder / "exit-code").exists() else None


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
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
    assert "job 78 goes on" in said


def test_a_chain_submits_the_next_job_until_it_has_as_many_as_it_may(start, tmp_path):
    for count in ("1\n", "2\n"):
        status, said = start(changes={"chain": 2})
        assert status == 75
        assert "job 78 goes on" in said
        assert (tmp_path / "restarts").read_text() == count
        (tmp_path / "submitted").unlink()
        (tmp_path / "started").unlink()
    _, said = start(changes={"chain": 2})
    assert "it went on 2 times, which is as often as it may" in said
    assert not (tmp_path / "submitted").exists()


def test_a_job_of_an_array_submits_its_own_number_again(start, tmp_path):
    (tmp_path / "3").mkdir()
    start(changes={"chain": 1, "array": "0-7"}, SLURM_ARRAY_TASK_ID="3")
    assert not (tmp_path / "exit-code").exists()
    # The stand-in for the ranks runs in the folder of number 3, where nobody waits for it.
    assert (
        tmp_path / "3" / "submitted"
    ).read_text() == "--parsable --dependency=afterany:77 --array=3 job.sh\n"
    assert (tmp_path / "3" / "job.sh").read_text() == (tmp_path / "job.sh").read_text()


@pytest.mark.parametrize("state", ["COMPLETING", "CANCELLED", ""])
def test_a_job_that_slurm_has_ended_does_not_come_back(start, tmp_path, state):
    start(signal.SIGTERM, changes={"requeue": True, "chain": 3}, STATE=state or " ")
    assert not (tmp_path / "requeued").exists()
    assert not (tmp_path / "submitted").exists()


def test_what_fails_by_itself_is_not_started_again(start, tmp_path):
    status, _ = start(changes={"requeue": True}, ENDS="3")
    assert (status, left(tmp_path)) == (3, "3")
    assert not (tmp_path / "requeued").exists()


def test_a_command_of_ones_own_has_the_short_script():
    made = job_script(spec(), SRUN, "why")
    assert "stop-asked\n" in made  # what an earlier run left is removed
    assert "trap ask_to_stop" not in made
    assert "trap ask_to_stop" in job_script(spec(warning=30), SRUN, "why")
