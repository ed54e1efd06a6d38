"""Measure on a virtual cluster with one real node, whose Slurm also lists many nodes that do not exist.

These nodes are cloud nodes in power-saving state (slurm.conf(5), State=CLOUD). Slurm answers queries and
schedules jobs on them, but no job runs.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.scale.timed import Taken, timed
from toolkit.cluster import use, virtual
from toolkit.model.cluster import Cluster
from toolkit.report.progress import Progress

ROOT = Path(__file__).parents[3]
NAME = "scale"
SETTINGS = """
SuspendProgram=/usr/bin/true
ResumeProgram=/usr/bin/true
SuspendTime=3600
SuspendExcNodes=node1
ResumeTimeout=3600
NodeName=sim[0001-{nodes:04}] CPUs=48 Sockets=2 CoresPerSocket=24 RealMemory=190000 State=CLOUD
PartitionName=sim Nodes=sim[0001-{nodes:04}] MaxTime=1-00:00:00 State=UP
"""


class Program:
    """Runs ``toolkit`` on this machine with a separate configuration folder, for one virtual cluster."""

    def __init__(self, folder: str, cluster: Cluster) -> None:
        self.folder, self.cluster = folder, cluster

    def __call__(self, *words: str) -> str:
        with self.started(*words) as process:
            out, err = process.communicate(timeout=300)
        if process.returncode:
            raise RuntimeError(f"toolkit {' '.join(words)} ended in {process.returncode}\n{out}{err}")
        return out

    def started(self, *words: str) -> "subprocess.Popen[str]":
        program = str(Path(sys.executable).with_name("toolkit"))
        env = {**os.environ, "XDG_CONFIG_HOME": self.folder}
        where = ("--cluster", self.cluster.name)
        words = (*words[:1], *where, *words[1:]) if words[0] in {"init", "probe", "launch"} else words
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([program, *words], **pipes, text=True, cwd=ROOT, env=env)


@contextmanager
def cluster(nodes: int) -> Iterator[Cluster]:
    """Start a virtual cluster with ``nodes`` added nodes; remove the cluster after the ``with`` block."""
    made = virtual.up(NAME, 1, Progress(verbose=False, quiet=False))
    try:
        settings = SETTINGS.format(nodes=nodes).encode()
        # The existing partition keeps only the real node.
        line = "sed -i s/Nodes=ALL/Nodes=node1/ /etc/slurm/slurm.conf && cat >> /etc/slurm/slurm.conf"
        for host in made.hosts:
            use.execute(made, host, "root", ("sh", "-c", line), lambda *_: None, settings)
        on_login(made, "scontrol reconfigure", user="root")
        deadline = time.monotonic() + 60
        while on_login(made, "sinfo -h -p sim -o %D").strip() != str(nodes):
            if time.monotonic() > deadline:
                raise RuntimeError(on_login(made, "sinfo; scontrol ping"))
            time.sleep(0.5)
        yield made
    finally:
        virtual.down(NAME)


def on_login(made: Cluster, line: str, stdin: str = "", user: str = "ada") -> str:
    said = bytearray()
    use.execute(
        made, "login", user, ("bash", "-c", line), lambda out, err: said.extend(out + err), stdin.encode()
    )
    return said.decode()


def measured(nodes: int, image: Path) -> list[Taken]:
    taken: list[Taken] = []
    with cluster(nodes) as made, tempfile.TemporaryDirectory() as folder:
        toolkit = Program(folder, made)
        there = ("--cluster", made.name)
        taken.append(
            timed(
                "`toolkit init --yes`",
                lambda: toolkit("init", "--yes", "--force", "--name", "here"),
                lambda _: _parts(toolkit),
                rounds=3,
            )
        )
        taken.append(
            timed("`toolkit site check`", lambda: toolkit("site", "check", "here", *there), _last, rounds=3)
        )
        taken.append(
            timed(
                "`toolkit probe --nodes 0`",
                lambda: toolkit("probe", "--nodes", "0", "--json"),
                lambda text: f"{_nodes(text):,} nodes known",
                rounds=3,
            )
        )
        job = ("launch", "mnist", "--site", "here", "--partition", "sim", "--image", str(image))
        job = (*job, "--nodes", str(nodes), "--ranks-per-node", "4")
        toolkit(*job, "--dry-run")  # reads the image and caches its facts for later calls
        taken.append(
            timed(
                "`toolkit launch --dry-run`, Slurm asked",
                lambda: toolkit(*job, "--dry-run"),
                lambda s: f"{nodes:,} nodes, {4 * nodes:,} ranks",
            )
        )
        script = toolkit(*job, "--dry-run")
        taken.append(
            timed(
                "`sbatch --test-only` of that script",
                lambda: on_login(made, "sbatch --test-only", script),
                _estimated,
            )
        )
        taken += _submitted(toolkit, job)
    return taken


def _submitted(toolkit: Program, job: tuple[str, ...]) -> list[Taken]:
    submitted = timed(
        "`toolkit launch --no-follow`, data and image there",
        lambda: toolkit(*job, "--no-follow"),
        lambda _: "submitted",
        rounds=3,
    )
    shown = Taken(
        what="the same: from its call of sbatch until `jobs show` has printed it",
        seconds=tuple(_until_shown(toolkit, job) for _ in range(3)),
    )
    records = json.loads(toolkit("jobs", "list", "--json"))["jobs"][-6:]
    keys = [one["key"] for one in records]
    here = _on_the_login_node(toolkit.cluster, records[-1]["spec"]["image"])
    show = timed(
        "`toolkit jobs show`",
        lambda: toolkit("jobs", "show", keys[0], "--json"),
        lambda text: json.loads(text)["state"],
    )
    listed = timed("`toolkit jobs list`", lambda: toolkit("jobs", "list"), lambda _: "")
    for key in keys:
        toolkit("jobs", "cancel", key)
    return [submitted, shown, here, show, listed]


def _on_the_login_node(made: Cluster, image: str) -> Taken:
    program = (Path(__file__).parent / "inside" / "submit.py").read_text()
    said = on_login(made, f"python3 - {shlex.quote(image)}", program).strip().splitlines()
    try:
        seconds = json.loads(said[-1])
    except (IndexError, ValueError):
        raise RuntimeError("\n".join(said)) from None
    return Taken(what="the same on the login node, without SSH", seconds=tuple(seconds))


def _until_shown(toolkit: Program, job: tuple[str, ...]) -> float:
    """Return the seconds from the call of sbatch until ``toolkit jobs show`` has printed the job."""
    with toolkit.started(*job, "--no-follow") as process:
        assert process.stderr
        while "Submitting to Slurm" not in process.stderr.readline():
            if process.poll() is not None:
                raise RuntimeError(f"toolkit {' '.join(job)} ended in {process.returncode}")
        began = time.perf_counter()
        process.communicate(timeout=300)
    toolkit("jobs", "show", _keys(toolkit)[-1])
    return time.perf_counter() - began


def _keys(toolkit: Program) -> list[str]:
    return [one["key"] for one in json.loads(toolkit("jobs", "list", "--json"))["jobs"]]


def _parts(toolkit: Program) -> str:
    site = json.loads(toolkit("site", "show", "here", "--json"))
    return "partitions " + ", ".join(f"{part['name']} of {part['nodes']:,}" for part in site["partitions"])


def _last(text: str) -> str:
    return text.strip().splitlines()[-1]


def _nodes(text: str) -> int:
    return int(json.loads(text)["slurm"]["nodes"])


def _estimated(text: str) -> str:
    if "to start at" not in text:
        raise RuntimeError(text)
    return "taken: " + text[text.index("to start at") :].split(" on nodes")[0].replace(
        "to start at", "a start at"
    )
