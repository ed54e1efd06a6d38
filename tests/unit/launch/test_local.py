"""Test a job on this machine without Slurm: the chosen mode, the bash script, and the run until it ends."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.engine.whole import HOST, IMAGE, absent, image, unread
from tests.unit.launch.examples import CARRIED, CONTAINED, GLOO, RECORD, TORCH, local_script, spec
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.errors import BadInput, CheckFailed, Interrupted, Missing
from toolkit.launch.jobscript.localscript import choose_here, without_queue
from toolkit.launch.tracking import jobs, process, records
from toolkit.launch.tracking.local_run import run_again, run_local
from toolkit.model.facts import ImageFacts
from toolkit.model.hidden import Hidden
from toolkit.model.job import FINAL_STATES
from toolkit.model.jobfile import JobFile
from toolkit.model.prediction import Plan, Request
from toolkit.run.local import LocalRunner

GOLDEN = Path(__file__).parents[2] / "golden"
LAPTOP = absent(HOST, "slurm")
DIRECT = Plan(mode="srun-none", launcher=("srun", "--mpi=none"))
CASES = {
    "local-mpirun-container.sh": (spec(nodes=1, ranks_per_node=2), CONTAINED),
    "local-gloo.sh": (spec(nodes=1, ranks_per_node=2, preflight=False), GLOO),
    "local-torch.sh": (spec(nodes=1, ranks_per_node=2, command=("python", "train.py")), TORCH),
    "local-direct.sh": (
        spec(
            nodes=1,
            preflight=False,
            cpus_per_rank=4,
            workdir="/work/a b",
            env={"TF_NUM_INTRAOP_THREADS": "2"},
        ),
        DIRECT,
    ),
    "local-carried.sh": (spec(nodes=1, ranks_per_node=2, runtime="podman"), CARRIED),
    "local-program.sh": (spec(nodes=1, ranks_per_node=2, command=("/opt/app",)), CONTAINED),
}
MORE: dict[str, dict[str, Any]] = {
    "local-carried.sh": {"runtime": "podman"},
    "local-program.sh": {"image": ImageFacts(path="x", format="sif", mpi=IMAGE.mpi)},
}


def local_golden(name: str) -> str:
    return local_script(*CASES[name], "the launcher in the image starts them", **MORE.get(name, {}))


# A stand-in for the container runtime: it runs the command after the image on this machine.
RUNTIME = '#!/bin/bash\nwhile [ "$1" != "$IMAGE" ]; do shift; done; shift; exec "$@"\n'
# A stand-in for mpirun: it starts N processes.
MPIRUN = """#!/bin/bash
n=$2; shift 2
for ((rank = 0; rank < n; rank++)); do OMPI_COMM_WORLD_RANK=$rank "$@" & done
wait
"""

hostile = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=30)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("IMAGE", "/my.sif")
    monkeypatch.setenv("PATH", f"{tools(tmp_path)}:/usr/bin:/bin")
    return tmp_path / "job"


def tools(folder):
    (folder / "bin").mkdir()
    for name, text in (("singularity", RUNTIME), ("mpirun", MPIRUN)):
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    return folder / "bin"


def case(folder, *command, ranks=1, **more):
    return spec(
        directory=str(folder), image="/my.sif", command=command, nodes=1, ranks_per_node=ranks,
        binds=(), preflight=False, **more,
    )  # fmt: skip


def ran(folder, what, made, on_line=lambda _: None):
    record = msgspec.structs.replace(RECORD, spec=what, mode=made.mode, plan=made)
    return run_local(LocalRunner(), record, local_script(what, made, "why"), on_line)


def choice(host, inside, ranks, mode=None, *, force=False, **env):
    request = Request(nodes=1, ranks_per_node=ranks, mode=mode, env=env)
    return choose_here(host, inside, request, force=force)


def test_script_and_folder_are_nobody_elses(here):
    before = os.umask(0o022)
    try:
        ran(here / "run", case(here / "run", "true", env={"TOKEN": "secret"}), DIRECT)
    finally:
        os.umask(before)
    assert (here / "run" / "job.sh").stat().st_mode & 0o777 == 0o700
    assert (here / "run").stat().st_mode & 0o777 == 0o700


def test_a_secret_arrives_and_its_file_goes_with_the_job(here):
    told = 'printf "%s" "$MY_TOKEN" > arrived; stat -c %a secrets.sh > mode; cat /proc/*/cmdline > seen || :'
    what = case(here / "run", "sh", "-c", told, secrets=("MY_TOKEN",))
    record = msgspec.structs.replace(RECORD, spec=what, mode=DIRECT.mode, plan=DIRECT)
    secrets = {"MY_TOKEN": Hidden("c4n4ry $x 'y'")}
    record = run_local(LocalRunner(), record, local_script(what, DIRECT, "why"), lambda _: None, secrets)
    assert record.state == "completed"
    assert (here / "run" / "arrived").read_text() == "c4n4ry $x 'y'"
    assert (here / "run" / "mode").read_text() == "600\n"
    assert b"c4n4ry $x" not in (here / "run" / "seen").read_bytes()
    assert not (here / "run" / "secrets.sh").exists()


@every_row("name", CASES)
def test_script_is_the_golden_one(name):
    assert local_golden(name) == (GOLDEN / name).read_text()


@every_row("name", CASES)
def test_a_shell_takes_the_golden_script(name):
    subprocess.run(["bash", "-n", GOLDEN / name], check=True)


def test_golden_scripts_are_clean_shell():
    files = [GOLDEN / name for name in CASES]
    subprocess.run([shutil.which("shellcheck") or "shellcheck", *files], check=True)


@settings(max_examples=count(20, 40), deadline=None)
@given(words=st.lists(hostile, min_size=1, max_size=4), because=hostile, value=hostile)
@example(words=["$(touch broke)", "`touch broke`", "'\"", "a b"], because="\nrm -rf x", value="$HOME")
@example(words=["-n", "*", "~", "!!"], because="x\\", value="';touch broke;'")
@pytest.mark.parametrize("made", [CONTAINED, GLOO, DIRECT], ids=lambda plan: plan.mode)
def test_hostile_words_arrive_as_they_are(tmp_path_factory, made, words, because, value):
    folder = tmp_path_factory.mktemp("local")
    print_all = 'printf "%s\\0" "$V" "$@" > "words.$HOSTNAME"'
    what = case(folder, "bash", "-c", print_all, "bash", *words, env={"V": value})
    script = folder / "job.sh"
    made = msgspec.structs.replace(made, wrapper=(), env={})
    script.write_text(local_script(what, made, because))
    done = subprocess.run(
        ["bash", str(script)],
        env={"PATH": f"{tools(folder)}:/usr/bin:/bin", "IMAGE": "/my.sif", "HOSTNAME": "here"},
        capture_output=True,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("words.*")
    assert file.read_bytes().decode().split("\0")[:-1] == [value, *words]
    assert sorted(p.name for p in folder.iterdir()) == [
        "bin",
        "exit-code",
        "job.sh",
        "start-times",
        "variables.sh",
        file.name,
    ]


def test_the_launcher_in_the_image_is_chosen_without_any_slurm():
    taken = choice(LAPTOP, IMAGE, 2, A="1")
    assert (taken.plan.mode, taken.plan.inside, taken.forced) == ("mpirun-container", True, False)
    assert taken.plan.env["A"] == "1"


def test_slurm_that_does_not_answer_changes_nothing():
    assert choice(unread(HOST, "slurm"), IMAGE, 2).plan.mode == "mpirun-container"


def test_without_a_launcher_in_the_image_gloo_is_taken():
    bare = absent(IMAGE, "mpi", "mpirun")
    assert choice(LAPTOP, bare, 2).plan.mode == "gloo"


def test_one_rank_needs_neither():
    bare = absent(absent(absent(IMAGE, "mpi", "mpirun"), "horovod"), "tensorflow")
    assert choice(LAPTOP, bare, 1).plan.mode == "srun-none"
    with pytest.raises(CheckFailed, match="no launch mode"):
        choice(LAPTOP, bare, 2)


def test_a_mode_that_needs_slurm_is_refused_with_the_choices():
    with pytest.raises(BadInput, match=r"srun-pmix.*mpirun-container, torch, jax, tf-config, gloo"):
        choice(HOST, IMAGE, 2, "srun-pmix")


def test_an_image_for_other_processors_is_refused():
    with pytest.raises(CheckFailed):
        choice(LAPTOP, image(architecture="aarch64"), 1)


def test_without_a_runtime_it_says_what_there_is_instead():
    with pytest.raises(Missing) as raised:
        choice(absent(LAPTOP, "runtime"), IMAGE, 2)
    assert "--cluster virtual" in raised.value.fix


def test_more_than_one_node_is_refused():
    with pytest.raises(BadInput, match="--nodes 2"):
        choose_here(LAPTOP, IMAGE, Request(nodes=2))


def test_gpus_are_shown_to_the_ranks():
    assert choice(LAPTOP, IMAGE, 2).plan.container == ("--nv",)
    without = msgspec.structs.replace(LAPTOP, gpus=())
    assert choice(without, IMAGE, 2, force=True).plan.container == ()


@every_row("made", [CONTAINED, GLOO, DIRECT], ids=lambda plan: plan.mode)
def test_threads_and_working_directory_are_those_of_a_job_script(made):
    text = local_script(spec(nodes=1, cpus_per_rank=3, workdir="/work/ada"), made, "why")
    assert "--pwd /work/ada" in text
    assert "OMP_NUM_THREADS=3" in text
    assert "OMP_NUM_THREADS" not in local_script(spec(nodes=1), made, "why")


def test_threads_of_intels_own_are_kept_out_of_the_way():
    intel = image(libraries={"libiomp5.so": "5"})
    text = local_script(spec(nodes=1, cpus_per_rank=3), DIRECT, "why", intel)
    assert "KMP_BLOCKTIME=1" in text


def test_what_only_a_queue_can_do_is_refused_where_this_job_asks_for_it():
    job = JobFile(array="0-3", modules=("GCC",), time="1:00", account="a", nodes=1)
    origins = {"array": "--array", "modules": "--module", "time": "job.yaml:3", "account": "toolkit.toml:3",
               "nodes": "--nodes"}  # fmt: skip
    with pytest.raises(BadInput) as caught:
        without_queue(job, origins, "job.yaml")
    said = {part.strip() for part in caught.value.message.partition(": not possible with")[0].split(",")}
    assert said == {"--array", "--module", "time (job.yaml:3)"}
    assert caught.value.message.endswith("not possible with --local, which uses no Slurm queue")


def test_what_settings_say_of_every_job_is_left_out_and_told():
    job = JobFile(account="a", time="1:00", warning=120, requeue=False, array="0-3", output="output-%a.log",
                  workdir="/w", cpus_per_rank=2)  # fmt: skip
    origins = {"account": "toolkit.toml:3", "time": "default", "warning": "default of trainers",
               "requeue": "--requeue", "array": "TOOLKIT_ARRAY", "output": "default of arrays",
               "workdir": "--workdir", "cpus_per_rank": "job.yaml:4"}  # fmt: skip
    left, told = without_queue(job, origins)
    assert left == JobFile(workdir="/w", cpus_per_rank=2)
    assert told == ["account (toolkit.toml:3)", "array (TOOLKIT_ARRAY)"]


def test_every_rank_runs_and_the_record_tells_the_end(here):
    lines = []
    what = case(here, "sh", "-c", 'echo "rank $OMPI_COMM_WORLD_RANK in $TOOLKIT_JOB_DIR"', ranks=3)
    record = ran(here, what, CONTAINED, lines.append)
    assert (record.state, record.exit_code, record.id) == ("completed", 0, "")
    assert record.started
    assert record.ended
    assert sorted(lines[1:]) == [f"rank {n} in {here}" for n in range(3)]
    assert (here / "exit-code").read_text() == "0\n"
    kept = (records.folder(record.key) / records.OUTPUT).read_text()
    assert kept.splitlines() == lines == (here / "output.log").read_text().splitlines()
    assert records.find(record.key) == record


def test_the_output_goes_where_it_was_asked_for(here):
    record = ran(here, case(here, "echo", "said", output="logs/mine.txt"), DIRECT)
    assert "said" in (here / "logs" / "mine.txt").read_text().splitlines()
    assert "said" in (records.folder(record.key) / records.OUTPUT).read_text().splitlines()


def test_a_job_that_runs_is_told_as_running_from_elsewhere(here):
    seen = []

    def on_line(line):
        if line == "begun":
            seen.append(jobs.refresh(LocalRunner(), records.find(None))[0].state)
            (here / "go").touch()

    wait = "echo begun; until [ -e go ]; do sleep 0.05; done"
    ran(here, case(here, "sh", "-c", wait), DIRECT, on_line)
    assert seen == ["running"]
    assert records.find(None).state == "completed"


def test_the_exit_code_is_carried_through(here):
    record = ran(here, case(here, "sh", "-c", "exit 7"), DIRECT)
    assert (record.state, record.exit_code) == ("failed", 7)


def test_ranks_without_a_launcher_are_told_their_places_and_find_each_other(here):
    print_place = 'echo "rank $HOROVOD_RANK of $HOROVOD_SIZE"'
    lines = []
    record = ran(here, case(here, "sh", "-c", print_place, ranks=3), CARRIED, lines.append)
    assert record.state == "completed", lines
    assert sorted(lines[1:]) == [f"rank {n} of 3" for n in range(3)]


def test_a_rank_that_fails_ends_the_others(here):
    made = msgspec.structs.replace(GLOO, wrapper=())
    mark = f"sleep 42{os.getpid()}"
    end = f'if [ "$SLURM_PROCID" = 1 ]; then exit 9; fi; exec {mark}'
    begun = time.monotonic()
    record = ran(here, case(here, "sh", "-c", end, ranks=3), made)
    assert (record.state, record.exit_code) == ("failed", 9)
    assert time.monotonic() - begun < 20
    assert not running(mark)


@every_row("made", [CONTAINED, msgspec.structs.replace(GLOO, wrapper=())], ids=["mpi", "gloo"])
def test_ctrl_c_ends_all_ranks_and_says_so(here, made):
    def on_line(line):
        if line == "begun":
            raise KeyboardInterrupt

    mark = f"sleep 43{os.getpid()}"
    with pytest.raises(Interrupted, match="all ranks"):
        ran(here, case(here, "sh", "-c", f"echo begun; exec {mark}", ranks=2), made, on_line)
    assert not running(mark)
    record = records.find(None)
    assert record.state == "cancelled"
    assert record.state in FINAL_STATES


@pytest.fixture
def begun(here):
    """Start a job of two sleeping ranks; yield its thread, the command line of the ranks, and the results."""
    lines, mark = [], f"sleep 44{os.getpid()}"
    what = case(here, "sh", "-c", f"echo begun; exec {mark}", ranks=2)
    results = []
    thread = threading.Thread(
        target=lambda: results.append(ran(here, what, CONTAINED, lines.append)), daemon=True
    )
    thread.start()
    deadline = time.monotonic() + 30
    while lines.count("begun") < 2 or not running(mark):
        assert time.monotonic() < deadline, lines
        time.sleep(0.05)
    yield thread, mark, results
    while thread.is_alive() and time.monotonic() < deadline + 30:
        subprocess.run(["pkill", "-f", f"^{mark}"])
        thread.join(0.2)


def test_a_job_is_cancelled_from_elsewhere_and_all_who_look_say_so(here, begun):
    thread, mark, results = begun
    with pytest.raises(CheckFailed, match="only a job that has ended can be resumed"):
        run_again(LocalRunner(), records.find(None), print)
    record = jobs.cancel(LocalRunner(), records.find(None))
    assert record.state == "cancelled"
    assert not running(mark)
    thread.join(20)
    assert [one.state for one in results] == ["cancelled"]
    assert records.find(None).state == "cancelled"
    assert not (here / process.FILE).exists()
    with pytest.raises(CheckFailed, match="the job's process was not found"):
        process.group_of(record)


def test_a_process_that_ends_while_it_is_looked_for_is_told(monkeypatch):
    monkeypatch.setattr(process, "process_of", lambda record: 2**22 + 1)  # larger than any process number
    record = msgspec.structs.replace(RECORD, nodes=socket.gethostname())
    with pytest.raises(CheckFailed, match="has just ended"):
        process.group_of(record)


@every_row("place", [1, 2])
def test_a_process_that_has_the_number_of_an_ended_job_is_let_be(here, begun, place):
    _, mark, _ = begun
    words = (here / process.FILE).read_text().split()
    # The process number now belongs to another process, for example after a reboot.
    other = [*words[:place], "1", *words[place + 1 :]]
    (here / process.FILE).write_text(" ".join(other))
    record = records.find(None)
    assert process.process_of(record) is None
    with pytest.raises(CheckFailed, match="the job's process was not found"):
        jobs.cancel(LocalRunner(), record)
    assert running(mark)
    assert records.find(None).state == "running"
    (here / process.FILE).write_text(" ".join(words))
    assert jobs.cancel(LocalRunner(), record).state == "cancelled"


def test_one_that_does_not_end_is_told_as_running(begun, monkeypatch):
    monkeypatch.setattr(process, "end", lambda _: False)
    assert jobs.cancel(LocalRunner(), records.find(None)).state == "running"
    assert records.find(None).state == "running"


def test_a_group_that_does_not_listen_is_ended(monkeypatch):
    monkeypatch.setattr(process, "_GRACE", 0.5)
    deaf = ["bash", "-c", "trap : TERM; echo up; while :; do sleep 0.1; done"]
    with subprocess.Popen(deaf, start_new_session=True, stdout=subprocess.PIPE) as group:
        assert group.stdout.readline() == b"up\n"
        reaper = threading.Thread(target=group.wait)
        reaper.start()
        assert process.end(group.pid)
        reaper.join()
    assert group.returncode == -signal.SIGKILL


def test_a_script_that_shares_a_group_with_its_starter_is_not_ended(here):
    record = ran(here, case(here, "sh", "-c", f"echo up; exec sleep 30{os.getpid()}"), DIRECT, stop_at_once)
    by_hand = subprocess.Popen(["bash", here / "job.sh"], stdout=subprocess.PIPE, text=True)
    try:
        assert any(line == "up\n" for line in by_hand.stdout)
        with pytest.raises(CheckFailed, match="in the process group of the program that started the script"):
            jobs.cancel(LocalRunner(), msgspec.structs.replace(record, state="running"))
        with pytest.raises(CheckFailed, match="only a job that has ended can be resumed"):
            run_again(LocalRunner(), record, print)
    finally:
        stop_at_once("up")
        by_hand.communicate(timeout=20)


def test_a_job_whose_machine_lost_power_has_failed(here):
    record = ran(here, case(here, "true"), DIRECT)
    records.save(record := msgspec.structs.replace(record, state="running", exit_code=None))
    (here / "exit-code").unlink()
    (here / process.FILE).write_text("1 1 a-boot-before\n")
    assert jobs.refresh(LocalRunner(), record)[0].state == "failed"


def test_a_job_goes_on_in_its_folder_under_its_record(here):
    what = case(here, "sh", "-c", '[ -e part ] && echo "went on" && exit; touch part; exit 75')
    first = ran(here, what, DIRECT)
    assert (first.state, first.exit_code) == ("failed", 75)
    (here / "stop-asked").touch()
    lines = []
    again = run_again(LocalRunner(), first, lines.append)
    assert (again.key, again.state, again.exit_code, again.restarts) == (first.key, "completed", 0, 1)
    assert lines[-1] == "went on"
    assert not (here / "stop-asked").exists()
    assert records.find(None) == again
    kept = (records.folder(again.key) / records.OUTPUT).read_text()
    assert kept.count("rank on") == 2  # once from each of the two runs


def test_what_cannot_go_on_here_is_told(here):
    record = ran(here, case(here, "false"), DIRECT)
    with pytest.raises(CheckFailed, match="ran without Slurm on elsewhere"):
        run_again(LocalRunner(), msgspec.structs.replace(record, nodes="elsewhere"), print)
    (here / "job.sh").unlink()
    with pytest.raises(Missing, match=r"job\.sh no longer exists"):
        run_again(LocalRunner(), record, print)


def test_what_an_allocation_set_does_not_reach_the_ranks(here, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("PMIX_RANK", "5")
    lines = []
    ran(
        here, case(here, "sh", "-c", 'echo "${SLURM_JOB_ID-none} ${PMIX_RANK-none}"'), CONTAINED, lines.append
    )
    assert lines[1:] == ["none none"]


def test_every_value_in_the_template_is_quoted_or_checked():
    """Each ``{{ }}`` needs the filter ``sh``, or an entry in ``checked`` with the reason."""
    checked = {
        "version", "mode", "preflight_of",  # text of toolkit
        "because",  # a comment of one line
        "ranks", "processes",  # numbers
        "start", "command", "preflight",  # each word is quoted
        "runtime", "secrets_file",  # constants, also in comments
        '", once for each rank" if launcher else ""',
    }  # fmt: skip
    text = (Path(__file__).parents[3] / "slurm" / "local.sh.j2").read_text()
    used = [part.split("}}")[0].strip() for part in text.split("{{")[1:]]
    assert used
    assert [name for name in used if name not in checked and not name.endswith("| sh")] == []


def stop_at_once(line):
    deadline = time.monotonic() + 20
    while line == "up" and subprocess.run(["pkill", "-f", f"^sleep 30{os.getpid()}"]).returncode:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def running(command):
    return subprocess.run(["pgrep", "-f", f"^{command}"], capture_output=True).returncode == 0
