"""Test the virtual cluster: its programs and services, and how it is started, repaired and removed."""

import contextlib
import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import time
import uuid

import pytest

from tests.services.program import toolkit
from toolkit import __version__
from toolkit.cluster import health, use, virtual
from toolkit.cluster.access import Access
from toolkit.cluster.plan import Layout, label
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.model.progress import Silent
from toolkit.run.command import Command
from toolkit.run.docker.engine import connect, machine
from toolkit.run.docker.nodes import Nodes
from toolkit.run.remote.ssh import SshRunner

# This program calls Open MPI's C functions from Python, to use MPI without a compiler.
WORLD = """
import ctypes
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
world = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world"))
number = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_int"))
plus = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_op_sum"))
size, rank, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_size(world, ctypes.byref(size))
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mine = ctypes.c_int(rank.value + 1)
mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, number, plus, world)
print("size", size.value, "sum", total.value)
mpi.MPI_Finalize()
"""

# This script makes the smallest image that Apptainer runs: a shell, two programs and their libraries.
BOX = r"""
set -e
cd "$(mktemp -d)"
mkdir -p box/bin box/etc box/tmp box/proc box/sys box/dev box/home box/work box/var/tmp
for program in /bin/sh /bin/cat /usr/bin/id; do
    cp -L "$program" box/bin/
    ldd "$program" | grep -o '/[^ ]*' | while read -r library; do cp --parents -L "$library" box/; done
done
echo inside > box/etc/where
apptainer -s build -F /work/box.sif box
"""


@pytest.fixture
def spare(engine):
    name = f"spare-{uuid.uuid4().hex[:6]}"
    yield name
    with contextlib.suppress(Missing):
        virtual.down(name)


@pytest.fixture(scope="module")
def box(cluster):
    status, _, errors = executed(cluster, ["sh", "-c", BOX], user="root")
    assert status == 0, errors
    return "/work/box.sif"


def executed(cluster, words, node="login", user="ada"):
    out, err = bytearray(), bytearray()
    status = use.execute(cluster, node, user, words, lambda o, e: (out.extend(o), err.extend(e)))
    return status, out.decode(), err.decode()


def run(runner, *words, stdin=None):
    done = runner.run(Command(words, stdin=stdin, timeout=60))
    assert done.ok, done.errors
    return done.text


def left_of(engine, name):
    mine = {"label": label(name)}
    return [
        *engine.containers.list(all=True, filters=mine, ignore_removed=True),
        *engine.networks.list(filters=mine),
        *engine.volumes.list(filters=mine),
    ]


def container(engine, cluster, host):
    return engine.containers.get(f"toolkit-{cluster.name}-{host}")


def until(holds, seconds=20):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# Programs and services of the cluster


def test_a_job_of_an_ordinary_user_runs_on_every_node(login):
    said = run(login, "srun", "-N2", "sh", "-c", "echo $(hostname) $(id -un)")
    assert sorted(said.split("\n")) == ["", "node1 ada", "node2 ada"]


def test_root_may_submit_too(cluster):
    status, said, _ = executed(cluster, ["srun", "-N2", "id", "-un"], user="root")
    assert (status, said.split()) == (0, ["root", "root"])


def test_slurm_speaks_pmix_and_pmi2(login):
    said = login.run(Command.of("srun", "--mpi=list", timeout=30))
    assert {"pmix", "pmi2", "none"} <= set((said.text + said.errors).split())
    assert "pmix_v5" in said.text + said.errors
    assert "MpiDefault = pmix" in re.sub(" +", " ", run(login, "scontrol", "show", "config"))


@pytest.mark.parametrize("start", [["srun", "-N2", "--mpi=pmix"], ["mpirun", "--host", "node1,node2"]])
def test_ranks_on_two_nodes_find_each_other(login, start):
    run(login, "sh", "-c", "cat > /work/ada/world.py", stdin=WORLD.encode())
    said = run(login, *start, "python3", "/work/ada/world.py")
    assert said.splitlines() == ["size 2 sum 3"] * 2


def test_without_pmix_each_rank_is_alone(login):
    run(login, "sh", "-c", "cat > /work/ada/world.py", stdin=WORLD.encode())
    said = run(login, "srun", "-N2", "--mpi=none", "python3", "/work/ada/world.py")
    assert said.splitlines() == ["size 1 sum 1"] * 2


def test_an_ordinary_user_runs_a_sif_file_on_every_node(login, box):
    said = run(
        login, "srun", "-N2", "singularity", "exec", box, "sh", "-c", "echo $(cat /etc/where) $(id -u)"
    )
    assert said.splitlines() == ["inside 1000"] * 2


def test_home_and_work_are_the_same_on_every_node(cluster, login):
    mark = uuid.uuid4().hex
    for folder in ("/work/ada", "/home/ada"):
        run(login, "sh", "-c", f"echo {mark} > {folder}/mark")
        status, said, _ = executed(cluster, ["cat", f"{folder}/mark"], node="node2")
        assert (status, said.strip()) == (0, mark)
    assert run(login, "sh", "-lc", 'echo "$WORK"').strip() == "/work/ada"


def test_a_batch_job_starts_at_once(login):
    began = time.monotonic()
    run(login, "sbatch", "--wait", "-N2", "-o", "/work/ada/%j.out", "--wrap", "srun hostname")
    assert time.monotonic() - began < 30


def test_nodes_reach_each_other_without_a_password(login):
    assert run(login, "ssh", "node1", "ssh", "node2", "hostname").strip() == "node2"


def test_this_toolkit_is_on_the_login_node(login):
    assert run(login, "toolkit", "--version").split()[-1] == __version__
    assert "cluster" in run(login, "toolkit", "--help")


def test_slurm_offers_no_more_memory_than_a_node_has(engine, cluster, login):
    limit = container(engine, cluster, "node1").attrs["HostConfig"]["Memory"]
    offered = int(run(login, "sinfo", "-h", "-n", "node1", "-o", "%m")) << 20
    assert limit // 2 < offered < limit
    assert run(login, "srun", "-N1", f"--mem={offered >> 20}", "echo", "it fits").strip() == "it fits"


def test_shared_memory_is_large(login):
    assert int(run(login, "df", "--output=size", "-m", "/dev/shm").split()[-1]) > 200


def test_slurm_survives_a_reconfiguration(cluster, login):
    assert executed(cluster, ["scontrol", "reconfigure"], user="root")[0] == 0
    assert len(run(login, "srun", "-N2", "hostname").split()) == 2


# Secrets


def test_the_image_holds_no_key(engine, cluster):
    image = container(engine, cluster, "login").image.id
    look = "ls /etc/munge/ /etc/ssh/ /etc/toolkit 2> /dev/null; true"
    listed = engine.containers.run(
        image, ["-c", look], entrypoint="sh", remove=True, network_mode="none", mem_limit="256m"
    )
    assert "key" not in listed.decode()


def test_keys_are_their_owners_alone(cluster):
    folder = Access(cluster.name).folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {
        f.name: f.stat().st_mode & 0o777 for f in folder.iterdir() if f.name in ("id_ecdsa", "secrets.json")
    } == {
        "id_ecdsa": 0o600,
        "secrets.json": 0o600,
    }


def test_the_login_node_is_published_on_this_machine_alone(engine, cluster):
    ports = container(engine, cluster, "login").attrs["NetworkSettings"]["Ports"]
    assert {p["HostIp"] for p in ports["22/tcp"]} == {"127.0.0.1"}


# Starting a cluster again and again


def test_up_again_changes_nothing_and_is_quick(engine, cluster):
    before = [container(engine, cluster, host).id for host in cluster.hosts]
    began = time.monotonic()
    assert virtual.up(cluster.name) == cluster
    assert time.monotonic() - began < 30
    assert [container(engine, cluster, host).id for host in cluster.hosts] == before


def test_another_number_of_nodes_is_refused(cluster):
    with pytest.raises(BadInput, match="has 2 compute nodes, not 3") as caught:
        virtual.up(cluster.name, 3)
    assert "toolkit cluster down --name test" in caught.value.fix


def test_another_flavour_is_refused(cluster):
    with pytest.raises(BadInput, match="is of the flavour pmix, not bare") as caught:
        virtual.up(cluster.name, flavour="bare")
    assert "toolkit cluster down --name test" in caught.value.fix


def test_up_mends_a_cluster_without_losing_its_files(engine, cluster):
    executed(cluster, ["sh", "-c", "echo kept > /work/ada/kept"])
    container(engine, cluster, "node1").remove(force=True)
    container(engine, cluster, "node2").stop(timeout=1)
    with pytest.raises(Missing, match=r"incomplete \(node1 is missing, node2 is exited\)"):
        virtual.find(cluster.name)
    assert virtual.status(cluster.name).state == "partial"
    mended = virtual.up(cluster.name)
    assert executed(mended, ["srun", "-N2", "cat", "/work/ada/kept"])[:2] == (0, "kept\nkept\n")


def test_a_login_node_that_was_stopped_is_reached_again(engine, cluster):
    container(engine, cluster, "login").stop(timeout=5)
    mended = virtual.up(cluster.name)
    runner = SshRunner("login", mended.ssh_config)
    try:
        assert sorted(run(runner, "srun", "-N2", "hostname").split()) == ["node1", "node2"]
    finally:
        runner.close()


def test_a_paused_node_goes_on(engine, cluster):
    container(engine, cluster, "node2").pause()
    assert virtual.up(cluster.name) == virtual.find(cluster.name)


def test_nodes_get_the_code_of_this_toolkit_again(cluster):
    executed(cluster, ["ln", "-sfn", "/nowhere", "/opt/toolkit/lib"], user="root")
    assert executed(cluster, ["toolkit", "--version"])[0] != 0
    virtual.up(cluster.name)
    assert executed(cluster, ["toolkit", "--version"])[0] == 0


def test_a_node_that_takes_no_jobs_is_named_with_what_the_services_said(engine, cluster):
    layout = Layout(cluster.name, cluster.nodes, *machine(engine))
    executed(cluster, ["scontrol", "update", "node=node1", "state=drain", "reason=test"], user="root")
    try:
        assert virtual.status(cluster.name).state == "partial"
        with pytest.raises(CheckFailed, match="node1 is drained") as caught:
            health.wait(Nodes(engine), layout, Silent(), patience=1)
        assert any(line.startswith("login: slurmctld") for line in caught.value.detail)
        assert any(line.startswith("node1: ") for line in caught.value.detail)
    finally:
        executed(cluster, ["scontrol", "update", "node=node1", "state=resume"], user="root")


def test_a_node_that_comes_back_may_be_taken_by_a_job_that_waits_for_it(engine, cluster):
    container(engine, cluster, "node2").remove(force=True)
    # Slurm would detect the missing node only later, so set the node down.
    executed(cluster, ["scontrol", "update", "NodeName=node2", "State=down", "Reason=test"], user="root")
    batch = ["sbatch", "--parsable", "-N2", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 600"]
    status, said, _ = executed(cluster, batch)
    assert status == 0
    try:
        virtual.up(cluster.name)
        until(lambda: executed(cluster, ["squeue", "-h", "-o", "%i %T"])[1] == f"{said.strip()} RUNNING\n")
    finally:
        executed(cluster, ["scancel", said.strip()])
    until(lambda: set(executed(cluster, ["sinfo", "-h", "-N", "-o", "%T"])[1].split()) == {"idle"})


def test_nodes_that_end_every_job_are_told(cluster):
    executed(cluster, ["mv", "/usr/bin/hostname", "/usr/bin/hostname.away"], node="node2", user="root")
    try:
        with pytest.raises(CheckFailed, match=r"does not work: srun -N2 .* hostname failed") as caught:
            virtual.up(cluster.name)
        assert any("hostname" in line for line in caught.value.detail)
    finally:
        executed(cluster, ["mv", "/usr/bin/hostname.away", "/usr/bin/hostname"], node="node2", user="root")


def test_a_service_that_ends_takes_its_node_along(engine, cluster):
    executed(cluster, ["pkill", "-f", "^slurmd -D"], node="node2", user="root")
    until(lambda: container(engine, cluster, "node2").status == "exited")
    layout = Layout(cluster.name, cluster.nodes, *machine(engine))
    with pytest.raises(CheckFailed, match="the container of node2 stopped") as caught:
        health.wait(Nodes(engine), layout, Silent())
    assert any("a service exited" in line for line in caught.value.detail)
    virtual.up(cluster.name)


def test_two_clusters_live_side_by_side_and_down_leaves_nothing(engine, cluster, spare):
    other = virtual.up(spare, 1)
    assert executed(other, ["srun", "hostname"])[1].strip() == "node1"
    assert executed(cluster, ["sinfo", "-h", "-o", "%D"])[1].strip() == "2"
    assert Access(spare).secrets() != Access(cluster.name).secrets()
    virtual.down(spare)
    assert left_of(engine, spare) == []
    assert not Access(spare).folder.exists()
    assert virtual.find(cluster.name) == cluster


def test_a_cluster_of_another_state_folder_is_not_touched(engine, cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for call in (virtual.up, virtual.find):
        with pytest.raises(Missing, match="another user created the cluster"):
            call(cluster.name)
    assert container(engine, cluster, "login").status == "running"


def test_the_status_of_a_cluster_of_another_state_folder_names_no_keys(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # Slurm may need a few seconds after the tests above, which end services of the cluster.
    until(lambda: virtual.status(cluster.name).state == "up")
    assert (
        json.loads(toolkit("cluster", "status", "--name", cluster.name, "--json").stdout)["ssh_config"] == ""
    )
    told = toolkit("cluster", "status", "--name", cluster.name).stdout
    assert "another user made this cluster" in told
    assert "ssh -F" not in told


def test_damaged_keys_are_told_and_down_removes_them_with_the_cluster(engine, spare):
    virtual.up(spare, 1)
    (Access(spare).folder / "secrets.json").write_text("{")
    for verb in (["up"], ["exec", "--", "true"], ["shell"]):
        done = toolkit("cluster", verb[0], "--name", spare, *verb[1:], ok=False)
        assert done.returncode == 2
        assert (
            f"{Access(spare).folder}/secrets.json: the keys of the cluster {spare} are damaged" in done.stderr
        )
        assert f"toolkit cluster down --name {spare}" in done.stderr
    toolkit("cluster", "down", "--name", spare)
    assert left_of(engine, spare) == []


def test_a_state_folder_that_takes_no_files_is_a_wrong_call(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/x")
    done = toolkit("cluster", "up", "--name", "nowhere", ok=False)
    assert done.returncode == 2
    assert "error: XDG_STATE_HOME: /proc/x/toolkit/clusters cannot be written: " in done.stderr


def test_a_home_without_ssh_files_will_do(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    toolkit("cluster", "up", "--name", cluster.name)
    assert json.loads(toolkit("probe", "--cluster", cluster.name, "--json").stdout)["slurm"]
    assert not (tmp_path / ".ssh").exists()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_up_leaves_nothing(engine, spare, end):
    process = subprocess.Popen(
        toolkit.words("cluster", "up", "--name", spare), stderr=subprocess.PIPE, text=True
    )
    until(lambda: left_of(engine, spare))
    process.send_signal(end)
    assert process.communicate(timeout=60)[1].endswith("error: interrupted\n")
    assert process.returncode == 130
    assert left_of(engine, spare) == []
    assert not Access(spare).folder.exists()


def test_a_killed_up_can_be_repeated(engine, spare):
    process = subprocess.Popen(toolkit.words("cluster", "up", "--name", spare), stderr=subprocess.DEVNULL)
    try:
        # The SDK would inspect each container, and fail if another process removes one, so use the engine's
        # own list.
        until(lambda: engine.api.containers(all=True, filters={"label": label(spare)}), seconds=90)
    finally:
        process.kill()
        process.wait()
    assert virtual.up(spare).hosts == ("login", "node1", "node2")


# The commands


def test_status_is_for_people_and_programs(cluster):
    told = json.loads(toolkit("cluster", "status", "--name", cluster.name, "--json").stdout)
    assert (told["schema"], told["state"]) == ("toolkit.cluster/1", "up")
    assert [(n["name"], n["container"], n["slurm"]) for n in told["nodes"]] == [
        ("login", "running", None),
        ("node1", "running", "idle"),
        ("node2", "running", "idle"),
    ]
    assert "node2    running    idle" in toolkit("cluster", "status", "--name", cluster.name).stdout


def test_up_tells_programs_what_status_tells(cluster):
    until(lambda: set(executed(cluster, ["sinfo", "-h", "-N", "-o", "%T"])[1].split()) == {"idle"})
    told = toolkit("cluster", "up", "--name", cluster.name, "--json").stdout
    assert told == toolkit("cluster", "status", "--name", cluster.name, "--json").stdout


@pytest.mark.parametrize("user", ["ada", "root"])
def test_exec_gives_input_if_it_is_asked_to(cluster, user):
    given = os.urandom(3_000_000)
    on = toolkit.words("cluster", "exec", "--name", cluster.name, "--user", user)
    script = "ls -l /tmp/.toolkit-*.in >&2; sha256sum"
    done = subprocess.run([*on, "-i", "--", "sh", "-c", script], input=given, capture_output=True, timeout=60)
    assert done.stdout.decode() == f"{hashlib.sha256(given).hexdigest()}  -\n"
    assert "No such file" in done.stderr.decode()


def test_exec_reads_nothing_unasked_though_input_stays_open(cluster):
    on = toolkit.words("cluster", "exec", "--name", cluster.name)
    with subprocess.Popen([*on, "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.wait(30) == 0
        assert process.stdout.read() == b""


def test_exec_keeps_streams_words_and_status(cluster):
    words = ["sh", "-c", 'printf "%s|" "$@"; echo oops >&2; exit 7', "sh", "a b", "$(id)", "'"]
    done = toolkit("cluster", "exec", "--name", cluster.name, "--", *words, ok=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "a b|$(id)|'|", "oops\n")


def test_exec_takes_a_node_and_a_user(cluster):
    on = ["cluster", "exec", "--name", cluster.name, "--node", "node2", "--user", "root"]
    assert toolkit(*on, "--", "sh", "-c", "hostname; id -un; pwd").stdout.split() == [
        "node2",
        "root",
        "/root",
    ]
    wrong = toolkit("cluster", "exec", "--name", cluster.name, "--node", "node9", "--", "true", ok=False)
    assert wrong.returncode == 2
    assert "login, node1, node2" in wrong.stderr


def test_an_interrupted_exec_ends_the_command_on_the_node(cluster):
    words = toolkit.words("cluster", "exec", "--name", cluster.name, "--", "sleep", "4321")
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    until(lambda: executed(cluster, ["pgrep", "-f", "^sleep 4321"])[0] == 0)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert executed(cluster, ["pgrep", "-f", "^sleep 4321"])[0] == 1


def test_a_command_that_is_silent_for_long_is_waited_for(cluster):
    name = f"toolkit-{cluster.name}-login"
    with contextlib.closing(connect(timeout=1)) as client:
        assert Nodes(client).run(name, Command.of("sleep", "3")).ok
        assert Nodes(client).run(name, Command.of("sleep", "30", timeout=1)).timed_out


@pytest.mark.parametrize(("user", "node"), [("ada", "node1"), ("root", "login")])
def test_shell_is_a_terminal_on_the_node(cluster, user, node):
    words = toolkit.words("cluster", "shell", "--name", cluster.name, "--node", node, "--user", user)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    os.write(ours, b"echo at-$(hostname)-$(id -un); tty > /dev/null && exit 5\n")
    said = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 4096):
            said += chunk
    os.close(ours)
    assert process.wait(30) == 5
    assert f"at-{node}-{user}" in said.decode()


@pytest.mark.parametrize("verb", [["status"], ["shell"], ["exec", "--", "true"]])
def test_a_cluster_that_is_not_there_is_told_with_those_that_are(cluster, verb):
    done = toolkit("cluster", verb[0], "--name", "nowhere", *verb[1:], ok=False)
    assert done.returncode == 3
    assert re.search(r"cluster nowhere: not running; running clusters: .*\btest\b", done.stderr)
    assert "hint: start the cluster: `toolkit cluster up --name nowhere`" in done.stderr


def test_down_of_an_unknown_name_says_which_there_are(cluster):
    done = toolkit("cluster", "down", "--name", "nowhere", ok=False)
    assert done.returncode == 3
    assert re.search(r"hint: check `--name`; existing clusters: .*\btest\b", done.stderr)


def test_without_an_engine_it_says_so(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    done = toolkit("cluster", "up", ok=False)
    assert done.returncode == 3
    assert "no Docker engine answers" in done.stderr
