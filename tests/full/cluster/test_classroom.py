"""Test a class of twenty users with separate accounts, who launch on one virtual cluster at the same time."""

import contextlib
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.services.program import ROOT, toolkit
from tests.services.workers import CLUSTER
from toolkit.cluster import use, virtual
from toolkit.cluster.access import Access
from toolkit.errors import BadInput, Missing
from toolkit.model.cluster import Cluster

CLASS = f"{CLUSTER}-class"
LEARNERS = 20
SPIRALS = ROOT / "docs" / "examples" / "spirals.py"
EPOCHS = 4
SAMPLES = 6000
MOST_SECONDS = 240
"""Limit in seconds for the lesson, from the first launch to the end of the last job, on two idle cores."""

ON_LOGIN_NODE, ON_TWO_NODES, WITH_DATA, FAILS, CANCELS = "user16", "user17", "user18", "user19", "user20"


@dataclass(frozen=True)
class Laptop:
    home: Path
    account: str

    @property
    def config(self):
        return self.home / ".ssh" / f"toolkit-{CLASS}" / "config"

    @property
    def environment(self):
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "HOME": str(self.home)}

    def begin(self, *words, teacher=False):
        env = None if teacher else self.environment
        with (self.home / "said").open("wb") as said:
            return subprocess.Popen(toolkit.words(*words), cwd=self.home, env=env, stdout=said, stderr=said)

    def run(self, *words):
        return subprocess.run(
            toolkit.words(*words),
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def ssh(self, *words):
        """Name the key and the known hosts, because ssh does not look for these files in HOME."""
        folder = self.config.parent
        options = ["-F", "none", "-o", f"UserKnownHostsFile={folder / 'known_hosts'}", "-o", "BatchMode=yes"]
        options += ["-o", "IdentitiesOnly=yes", "-i", str(folder / "id_ecdsa")]
        return subprocess.run(["ssh", *options, *words], capture_output=True, text=True, timeout=60)

    @property
    def said(self):
        return (self.home / "said").read_text("utf-8", "replace")

    def records(self):
        return json.loads(self.run("jobs", "list", "--json").stdout)["jobs"]

    def metrics(self):
        (file,) = (self.home / ".local/state/toolkit/jobs").glob("*/metrics.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()]


def on(cluster, user, *words, stdin=None):
    out, err = bytearray(), bytearray()

    def take(of_out, of_err):
        out.extend(of_out)
        err.extend(of_err)

    status = use.execute(cluster, "login", user, words, take, stdin)
    return status, out.decode(), err.decode()


def free_port(address):
    with socket.socket() as asked:
        asked.bind((address, 0))
        return asked.getsockname()[1]


@pytest.fixture(scope="module")
def listen(engine):
    """Return an address of this machine that other machines can reach, with a free port."""
    subnet = engine.networks.get("bridge").attrs["IPAM"]["Config"][0]["Subnet"]
    address = str(next(ipaddress.ip_network(subnet).hosts()))
    return f"{address}:{free_port(address)}"


@pytest.fixture(scope="module")
def cluster(engine, listen):
    with contextlib.suppress(Missing):
        virtual.down(CLASS)
    toolkit("cluster", "up", "--name", CLASS, "--users", str(LEARNERS), "--listen", listen)
    yield virtual.find(CLASS)
    virtual.down(CLASS)


@pytest.fixture(scope="module")
def shared(cluster, training_sif, few):
    place = ["--cluster", cluster.name]
    toolkit("image", "push", str(training_sif), "/work/shared/images/tf2.21-cpu.sif", "--facts", *place)
    for file in few.iterdir():
        toolkit("image", "push", str(file), "/work/shared/data/mnist/", *place)
    return training_sif


@pytest.fixture(scope="module")
def laptops(cluster, tmp_path_factory):
    made = {}
    for account in cluster.accounts:
        laptop = made[account] = Laptop(tmp_path_factory.mktemp(account), account)
        shutil.copytree(cluster.folder_of(account), laptop.config.parent)
        settings = laptop.home / ".config" / "toolkit" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text('[launch]\nsite = "virtual"\nimage = "cluster:tf2.21-cpu"\ntime = "20"\n')
    return made


def asked(account, few):
    spirals = [str(SPIRALS), "--", "--epochs", str(EPOCHS)]
    return {
        ON_TWO_NODES: [spirals[0], "--nodes", "2", *spirals[1:]],
        WITH_DATA: ["mnist", "--data", str(few), "--", "--epochs", "2"],
        FAILS: ["--", "sh", "-c", "echo I am unwell; exit 3"],
        CANCELS: ["--", "sleep", "600"],
    }.get(account, spirals)


@dataclass(frozen=True)
class Lesson:
    seconds: float
    codes: dict[str, int]
    cluster: Cluster
    laptops: dict[str, Laptop]


@pytest.fixture(scope="module")
def lesson(cluster, shared, laptops, few):
    on(cluster, ON_LOGIN_NODE, "sh", "-c", "cat > ~/spirals.py", stdin=SPIRALS.read_bytes())
    there = f"toolkit launch ~/spirals.py --site virtual --image cluster:tf2.21-cpu -- --epochs {EPOCHS}"
    began = time.monotonic()
    running = {}
    try:
        for account, laptop in laptops.items():
            words = ["launch", "--host", "login", "--ssh-config", str(laptop.config), *asked(account, few)]
            if account == ON_LOGIN_NODE:
                words = ["cluster", "exec", "--name", CLASS, "--user", account, "--", "sh", "-lc", there]
            # Only the teacher's machine has the settings of the cluster itself.
            running[account] = laptop.begin(*words, teacher=account == ON_LOGIN_NODE)
        cancel(laptops[CANCELS], running[CANCELS])
        codes = {}
        for account, process in running.items():
            codes[account] = process.wait(max(MOST_SECONDS * 2 - (time.monotonic() - began), 1))
        return Lesson(time.monotonic() - began, codes, cluster, laptops)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def cancel(laptop, process):
    deadline = time.monotonic() + 120
    while not any(record["id"] for record in laptop.records()):
        assert process.poll() is None, laptop.said
        assert time.monotonic() < deadline
        time.sleep(1)
    done = laptop.run("jobs", "cancel")
    assert done.returncode == 0, done.stderr


# The lesson


def test_all_who_made_no_mistake_are_done_in_a_lessons_time(lesson):
    wrong = {account: code for account, code in lesson.codes.items() if code}
    said = {account: lesson.laptops[account].said[-2000:] for account in wrong}
    assert wrong == {FAILS: 1, CANCELS: 1}, said
    assert lesson.seconds < MOST_SECONDS


def test_each_has_a_job_of_the_own_and_sees_no_other(lesson):
    numbers, keys = set(), set()
    for account, laptop in lesson.laptops.items():
        if account == ON_LOGIN_NODE:
            _, out, _ = on(lesson.cluster, account, "toolkit", "jobs", "list", "--json")
            (record,) = json.loads(out)["jobs"]
        else:
            (record,) = laptop.records()
        assert record["spec"]["directory"].startswith(f"/work/{account}/toolkit/runs/")
        numbers.add(record["id"])
        keys.add(record["key"])
    assert len(numbers) == len(keys) == LEARNERS


def test_every_training_saw_each_sample_and_learned(lesson):
    for account, laptop in lesson.laptops.items():
        if account in {FAILS, CANCELS, ON_LOGIN_NODE}:
            continue
        header, *_, result = laptop.metrics()
        world = 2 if account == ON_TWO_NODES else 1
        each, epochs, least = (640, 2, 0.5) if account == WITH_DATA else (SAMPLES, EPOCHS, 0.9)
        assert (header["world_size"], header["samples"]) == (world, each), account
        assert result["images"] == epochs * each, account
        assert result["test_accuracy"] > least, account


def test_the_one_on_the_login_node_has_it_there(lesson):
    status, out, _ = on(
        lesson.cluster, ON_LOGIN_NODE, "sh", "-c", "cat /work/user16/toolkit/runs/*/metrics.jsonl"
    )
    assert status == 0
    assert json.loads(out.splitlines()[-1])["images"] == EPOCHS * SAMPLES
    assert "is complete" in lesson.laptops[ON_LOGIN_NODE].said


def test_a_mistake_and_a_change_of_mind_are_told_to_their_owner_alone(lesson):
    assert "failed, exit code 3" in lesson.laptops[FAILS].said
    assert "I am unwell" in lesson.laptops[FAILS].said
    assert "cancelled" in lesson.laptops[CANCELS].said
    for account, laptop in lesson.laptops.items():
        if account not in {FAILS, CANCELS}:
            assert "unwell" not in laptop.said
            assert "cancelled" not in laptop.said


def test_who_waits_is_told_why(lesson):
    waited = [a for a, laptop in lesson.laptops.items() if " waits, place " in laptop.said]
    assert len(waited) > LEARNERS // 4, [laptop.said for laptop in lesson.laptops.values()]


def test_one_copy_of_the_image_and_of_the_data_serves_all(lesson):
    _, out, _ = on(lesson.cluster, "root", "find", "/work", "/home", "-name", "*.sif")
    assert out.split() == ["/work/shared/images/tf2.21-cpu.sif"]
    assert not any("Copying tf2.21-cpu" in laptop.said for laptop in lesson.laptops.values())
    _, out, _ = on(lesson.cluster, "root", "find", "/work", "/home", "-name", "*-ubyte", "-printf", "%h\n")
    assert set(out.split()) == {"/work/shared/data/mnist"}


# Separate accounts


def test_nobody_reads_what_another_has_done(lesson):
    _, out, _ = on(lesson.cluster, "user02", "sh", "-c", "ls -d /work/user02/toolkit/runs/*/metrics.jsonl")
    for path in (
        out.strip(),
        "/work/user02",
        "/home/user02",
        "/home/user02/.ssh/id_ecdsa",
        "/etc/toolkit/accounts/user02/id_ecdsa",
    ):
        status, _, errors = on(lesson.cluster, "user01", "head", "-c1", path)
        assert (status != 0, "Permission denied" in errors) == (True, True), path


def test_a_job_is_its_owners_alone_though_others_may_look_into_the_folder_above(lesson, shared):
    toolkit("launch", "--cluster", CLASS, "--image", "cluster:tf2.21-cpu", "--site", "virtual", "--", "true")
    _, out, _ = on(lesson.cluster, "ada", "sh", "-c", "ls -d /work/ada/toolkit/runs/*")
    assert on(lesson.cluster, "user01", "ls", "/work/ada/toolkit/runs")[0] == 0
    for path in (out.strip(), f"{out.strip()}/output.log", f"{out.strip()}/job.sh"):
        status, _, errors = on(lesson.cluster, "user01", "cat", path)
        assert (status != 0, "Permission denied" in errors) == (True, True), path


def test_no_folder_takes_files_of_everybody_but_work_itself(lesson):
    _, out, _ = on(lesson.cluster, "root", "find", "/work", "/home", "-type", "d", "-perm", "-0002")
    assert out.split() == ["/work"]
    _, out, _ = on(lesson.cluster, "root", "stat", "-c", "%A %U", "/work", "/work/shared")
    assert out.split() == ["drwxrwxrwt", "root", "drwxr-xr-x", "ada"]


def test_nobody_ends_the_job_of_another(lesson):
    _, number, _ = on(
        lesson.cluster, "user03", "sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 60"
    )
    errors = on(lesson.cluster, "user01", "scancel", number.strip())[2]
    assert "denied" in errors.lower()
    assert number.strip() in on(lesson.cluster, "user03", "squeue", "--me", "-h", "-o", "%i")[1].split()
    assert on(lesson.cluster, "user03", "scancel", number.strip())[0] == 0


@pytest.mark.parametrize("verb", ["show", "logs", "cancel", "resume"])
def test_nobody_names_the_job_of_another(lesson, verb):
    (other,) = lesson.laptops["user02"].records()
    for name in (other["key"], other["id"]):
        done = lesson.laptops["user01"].run("jobs", verb, name)
        assert done.returncode == 2
        assert f"job '{name}': not found" in done.stderr


def test_a_key_opens_the_own_account_alone(cluster, laptops, listen):
    address, port = listen.split(":")
    laptop = laptops["user05"]
    assert laptop.ssh("-p", port, f"user05@{address}", "id", "-un").stdout == "user05\n"
    for user in ("user06", "ada", "root"):
        done = laptop.ssh("-p", port, f"{user}@{address}", "id")
        assert done.returncode == 255
        assert "Permission denied" in done.stderr


# The teacher


def test_a_learner_is_the_same_one_on_every_node(cluster):
    _, out, _ = on(
        cluster, "user07", "srun", "-N2", "--mpi=none", "sh", "-c", "id -u; id -un; touch ~/x && echo $HOME"
    )
    assert sorted(out.split()) == sorted(["2007", "user07", "/home/user07"] * 2)
    status, out, _ = on(cluster, "user07", "ssh", "-o", "BatchMode=yes", "node2", "hostname; id -un")
    assert (status, out.split()) == (0, ["node2", "user07"])


def test_the_commands_of_the_teacher_take_a_learner(cluster):
    place = ["--name", cluster.name]
    done = toolkit("cluster", "exec", *place, "--user", "user09", "--", "sh", "-c", "id -un; pwd; echo $WORK")
    assert done.stdout.split() == ["user09", "/home/user09", "/work/user09"]
    wrong = toolkit("cluster", "exec", *place, "--user", "user21", "--", "true", ok=False)
    assert wrong.returncode == 2
    assert "has ada, root, user01 to user20" in wrong.stderr
    told = json.loads(toolkit("cluster", "status", *place, "--json").stdout)
    assert told["users"] == [f"user{n:02}" for n in range(1, LEARNERS + 1)]
    assert "20 users, user01 to user20" in toolkit("cluster", "status", *place).stdout


def test_what_a_class_is_may_not_change_but_it_may_grow(cluster, laptops):
    with pytest.raises(BadInput, match="has 20 users, not 19"):
        virtual.up(CLASS, users=LEARNERS - 1)
    with pytest.raises(BadInput, match=r"listens on .*, not 127\.0\.0\.1:2222"):
        virtual.up(CLASS, listen="127.0.0.1:2222")
    before = (cluster.folder_of("user01") / "id_ecdsa").read_bytes()
    assert virtual.up(CLASS, users=LEARNERS + 1).users == LEARNERS + 1
    assert (cluster.folder_of("user01") / "id_ecdsa").read_bytes() == before
    assert on(virtual.find(CLASS), "user21", "srun", "-N2", "id", "-un")[1].split() == ["user21"] * 2


def test_a_login_node_that_is_made_again_knows_the_class_and_its_homes(engine, lesson, listen):
    engine.containers.get(f"toolkit-{CLASS}-login").remove(force=True)
    mended = virtual.up(CLASS)
    assert mended.users >= LEARNERS
    address, port = listen.split(":")
    done = lesson.laptops["user01"].ssh(
        "-p", port, f"user01@{address}", "ls /work/user01/toolkit/runs | wc -l"
    )
    assert done.stdout.strip() == "1"


def test_no_key_is_told(cluster):
    done = toolkit("--verbose", "cluster", "up", "--name", CLASS)
    secrets = Access(CLASS).secrets()
    keys = [pair.private.splitlines()[1] for pair in secrets.accounts]
    logs = [
        done.stdout,
        done.stderr,
        *on(cluster, "root", "sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ")[1:],
    ]
    assert not [key for key in keys for log in logs if key in log]
