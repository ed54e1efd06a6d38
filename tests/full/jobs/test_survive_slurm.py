"""Test that trainings on two nodes reach the accuracy of an undisturbed training despite faults."""

import json
import re
import subprocess
import threading
import time

import pytest

from tests import mounting
from tests.services.jobs import as_root, cut, last_record
from tests.services.program import ROOT, toolkit
from tests.unit.trainers.digits import idx
from toolkit.cluster import use, virtual
from toolkit.cluster.plan import container

TRAIN, TEST = 6_400, 1_000
EPOCHS = 8
"""Epochs in the metrics. With two ranks, an epoch is two passes over the data; ``--epochs`` counts passes."""

NOISE = 0.015
"""Largest allowed difference in accuracy; two undisturbed runs with different seeds differ by less."""


@pytest.fixture(scope="module")
def data(mnist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("part")
    for part, count in (("train", TRAIN), ("t10k", TEST)):
        images, labels = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
        pixels = (mnist / images).read_bytes()[16 : 16 + count * 784]
        (folder / images).write_bytes(idx((count, 28, 28), pixels))
        (folder / labels).write_bytes(idx((count,), (mnist / labels).read_bytes()[8 : 8 + count]))
    return folder


class Run:
    def __init__(self, cluster, *words):
        self.cluster, self.said = cluster, []
        before = len(json.loads(toolkit("jobs", "list", "--json").stdout)["jobs"])
        self._process = subprocess.Popen(
            toolkit.words(*words), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._before, self.record = before, None

    def _read(self):
        self.said.extend(line.rstrip("\n") for line in self._process.stderr)

    def submitted(self):
        def there():
            found = json.loads(toolkit("jobs", "list", "--json").stdout)["jobs"]
            self.record = found[-1] if len(found) > self._before and found[-1]["id"] else None
            return self.record

        until(there, 120, self.said)
        return self

    def after(self, epochs):
        until(lambda: len(self.lines("epoch")) >= epochs, 150, self.said)
        return self

    def end(self, seconds=240):
        try:
            status = self._process.wait(seconds)
        finally:
            self._process.kill()
            self._reader.join(10)
            self._process.stderr.close()
        return status, "\n".join(self.said)

    def stop(self):
        if self._process.returncode is None:
            as_root(self.cluster, "scancel", "--user=ada")
            self._process.kill()
            self._process.wait(10)
            self._reader.join(10)
            self._process.stderr.close()

    def lines(self, kind):
        text = self.file("metrics.jsonl")
        read = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
        return [line for line in read if line["record"] == kind]

    def file(self, name):
        return on_node(self.cluster, "login", f"cat {self.record['spec']['directory']}/{name} 2> /dev/null")


def on_node(cluster, node, line):
    said = bytearray()
    use.execute(cluster, node, "root", ("sh", "-c", line), lambda out, err: said.extend(out + err))
    return said.decode()


def until(ready, seconds, said=()):
    deadline = time.monotonic() + seconds
    while not (found := ready()):
        assert time.monotonic() < deadline, "\n".join(["nothing came of it in time", *said])
        time.sleep(0.5)
    return found


@pytest.fixture(scope="module")
def launch(cluster, training_sif, data, begun):
    def go(*options, epochs=EPOCHS, image=training_sif, nodes=2):
        where = ("--cluster", cluster.name, "--image", str(image), "--data", str(data), "--no-preflight")
        size = ("--nodes", str(nodes), "--time", "10", "--warning", "0")
        run = Run(cluster, "launch", "mnist", *where, *size, *options, "--", "--epochs", str(epochs * 2))
        begun.append(run)
        return run

    return go


@pytest.fixture(scope="module")
def begun():
    """Return the list in which all launched runs are collected."""
    return []


@pytest.fixture(autouse=True)
def _nothing_goes_on(begun):
    yield
    while begun:
        begun.pop().stop()


@pytest.fixture(scope="module")
def undisturbed(launch):
    run = launch().submitted()
    assert run.end()[0] == 0, run.said
    return run.lines("result")[0]["test_accuracy"]


@pytest.fixture
def whole(undisturbed):
    def check(run, epochs=EPOCHS, resumed=1):
        done = run.lines("epoch")
        assert [line["epoch"] for line in done] == list(range(1, epochs + 1))
        assert {line["images"] for line in done} == {2 * TRAIN}
        (result,) = run.lines("result")
        assert result["images"] == epochs * 2 * TRAIN
        assert abs(result["test_accuracy"] - undisturbed) < NOISE
        assert len(run.lines("resumed")) == resumed
        assert "Traceback" not in run.file("output.log")

    return check


@pytest.fixture
def mended(cluster):
    """Start the cluster's nodes again after a test that stops a node."""
    yield
    virtual.up(cluster.name)


def resume(run):
    toolkit("jobs", "resume", run.record["key"])
    toolkit("jobs", "wait", run.record["key"], timeout=240)


def goes_on_from(run, before):
    assert run.lines("resumed")[0]["epoch"] >= before


def docker(*words):
    subprocess.run(["docker", *words], check=True, capture_output=True, timeout=60)


def test_connections_that_are_cut_and_a_controller_that_is_restarted_take_nothing(
    cluster, training_sif, launch, whole
):
    # toolkit identifies images by name and digest, so a copy under another name is uploaded again.
    image = training_sif.with_name("cut.sif")
    image.unlink(missing_ok=True)
    image.hardlink_to(training_sif)
    try:
        run = launch(image=image)
        until(lambda: any("Copying" in line for line in run.said), 60, run.said)
        time.sleep(0.5)
        cut(cluster)
        run.submitted().after(1)
        cut(cluster)
        controller = on_node(cluster, "login", "pgrep -f '^slurmctld'")
        on_node(cluster, "login", "kill -USR1 1")
        status, said = run.end()
    finally:
        image.unlink()
    assert status == 0, said
    assert re.search(r"connection .*lost.*trying again", said)
    assert f"job {run.record['id']} may still run, and toolkit reconnects" in said
    assert on_node(cluster, "login", "pgrep -f '^slurmctld'") != controller
    whole(run, resumed=0)


def test_a_rank_that_is_killed_ends_the_job_and_the_next_goes_on(cluster, launch, whole):
    run = launch().submitted().after(2)
    # With the brackets, the pattern does not match the shell that runs pkill.
    on_node(cluster, "node2", "pkill -KILL -n -f '[p]ython -m toolkit.trainers.mnist'")
    before = len(run.lines("epoch"))
    status, said = run.end()
    assert status == 1
    # With Open MPI 5, Slurm kills all ranks together. Its first message is about the killed rank or the step.
    told = ("rank 1 on node2 failed first", "its messages do not show which rank failed first")
    assert any(line in said for line in told), said
    assert "A signal killed a rank (signal)" in said
    assert f"toolkit jobs resume {run.record['key']}" in said
    resume(run)
    goes_on_from(run, before)
    whole(run)


def test_a_disk_that_is_full_is_named_and_once_there_is_room_it_goes_on(cluster, launch, whole):
    run = launch("--begin", "now+1hour").submitted()
    folder = f"{run.record['spec']['directory']}/checkpoints"
    # A checkpoint has 5 MB, and toolkit writes a new checkpoint before it removes an old checkpoint.
    on_node(cluster, "login", f"install -d -o ada {folder}")
    node = container(cluster.name, "node1")
    size = ("-t", "tmpfs", "-o", "size=12m,uid=1000", "none")
    assert not mounting.on_node(node, "mount", *size, folder)
    try:
        as_root(cluster, "scontrol", "update", f"JobId={run.record['id']}", "StartTime=now")
        status, said = run.end()
        assert status == 1
        assert re.search(r"checkpoints/\S+: the checkpoint cannot be written: No space left on", said), said
        assert f"toolkit jobs resume {run.record['key']}" in said
        assert not mounting.on_node(node, "mount", "-o", "remount,size=100m", folder)
        resume(run)
    finally:
        mounting.on_node(node, "umount", folder)
    whole(run)


def test_a_time_limit_that_is_reached_is_followed_by_the_next_job(launch, whole):
    """Slurm warns the job 10 s before its time limit of 60 s, or up to 30 s earlier: it checks every 30 s.

    The training must run longer than 50 s on any machine: 4 * EPOCHS took 50 s, so it has 7 * EPOCHS.
    """
    epochs = 7 * EPOCHS
    run = launch(
        "--mode", "gloo", "--time", "1", "--warning", "10", "--chain", "30", epochs=epochs
    ).submitted()
    # Several jobs may be necessary: a slow machine completes only a few epochs before a time limit.
    status, said = run.end(600)
    assert status == 0, said
    assert "wrote a checkpoint and stopped before its time limit; job" in said
    times = len(run.lines("resumed"))
    assert times >= 1
    assert run.file("output.log").count("mnist: stopped on request") == times
    whole(run, epochs, resumed=times)


def test_a_node_that_is_paused_sends_the_job_back_until_there_are_nodes(cluster, launch, whole, mended):
    run = launch("--requeue").submitted().after(2)
    docker("pause", container(cluster.name, "node2"))
    before = len(run.lines("epoch"))
    until(lambda: "waits for a restart" in "\n".join(run.said), 180, run.said)
    virtual.up(cluster.name)
    status, said = run.end()
    assert status == 0, said
    goes_on_from(run, before)
    assert "job: Slurm ended the previous run (node failure or preemption)" in run.file("output.log")
    whole(run)


def test_an_elastic_job_goes_on_without_a_node_and_takes_it_in_again(cluster, launch, whole, mended):
    run = launch("--elastic", "--min-nodes", "1", "--requeue", epochs=2 * EPOCHS).submitted().after(2)
    docker("rm", "-f", container(cluster.name, "node2"))
    before = len(run.lines("epoch"))
    until(lambda: run.lines("resumed"), 180, run.said)
    goes_on_from(run, before)
    assert "job: node1 of node[1-2] remains; 1 ranks start on these nodes" in run.file("output.log")
    # The signal has the same effect as a time limit: a checkpoint, and a next run on all available nodes.
    as_root(cluster, "scancel", "--signal=USR1", "--batch", run.record["id"])
    virtual.up(cluster.name)
    status, said = run.end()
    assert status == 0, said
    assert [line["world_size"] for line in run.lines("resumed")] == [1, 2]
    assert last_record()["restarts"] == 1
    whole(run, 2 * EPOCHS, resumed=2)
