"""Time work of toolkit that needs no cluster, such as reading node lists and writing job scripts."""

import subprocess
import sys
from pathlib import Path

from tests.benchmarks.scale import texts
from tests.benchmarks.scale.timed import Taken, timed
from toolkit.launch.jobscript.script import job_script
from toolkit.launch.tracking.output import displayed_line, first_failure
from toolkit.launch.tracking.slurm import parse_show_job, parse_waiting
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan
from toolkit.probe.asking import NodeChoice
from toolkit.probe.bundle import Bundle, encode, read
from toolkit.probe.hostlist import expand, fold

ROOT = Path(__file__).parents[3]
_QUEUE, _LINES = 10_000, 100_000


def measured(nodes: int) -> list[Taken]:
    listed, ranks = texts.host_list(2 * nodes), 4 * nodes
    names = expand(listed)
    said = texts.answers(nodes)
    bundle = read(said, "here", NodeChoice("all", 10))
    output = texts.output(ranks, _LINES)
    lines = output.splitlines()
    few = len(_script(2))
    return [
        timed(
            f"list of {len(names):,} nodes: expand",
            lambda: expand(listed),
            lambda _: f"{len(listed):,} characters",
        ),
        timed(f"list of {len(names):,} nodes: fold", lambda: fold(names), lambda text: f"{text[:20]}…"),
        timed(
            f"answers of {nodes:,} nodes: read and group",
            lambda: read(said, "here", NodeChoice("all", 10)),
            lambda got: f"{len(said) / 1e6:.1f} MB; groups of {_sizes(got)}",
            rounds=3,
        ),
        timed("the same: facts file", lambda: encode(bundle), lambda made: f"{len(made) / 1e3:.0f} kB"),
        timed(
            f"script for {nodes:,} nodes",
            lambda: _script(nodes),
            lambda script: f"{len(script) - few:+} bytes against 2 nodes",
        ),
        timed(
            f"`toolkit launch --site juwels --nodes {nodes} --dry-run`",
            lambda: _dry_run(nodes),
            lambda script: f"{len(script.splitlines())} lines; the whole program",
        ),
        timed(
            f"follow: answer on a job of {nodes:,} nodes",
            lambda: parse_show_job(texts.job_line(nodes)),
            lambda status: status.state if status else "not read",
        ),
        timed(
            f"follow: place among {_QUEUE:,} jobs",
            lambda: parse_waiting(texts.queue(_QUEUE), str(_QUEUE)),
            lambda place: f"{place[0]:,} of {place[1]:,}" if place else "not found",
        ),
        timed(
            f"follow: {_LINES:,} lines of {ranks:,} ranks",
            lambda: [displayed_line(line) for line in lines],
            lambda _: "as shown",
        ),
        timed(
            "the same: the rank that failed first",
            lambda: first_failure(output),
            lambda found: f"rank {found.rank:,}" if found else "not found",
        ),
    ]


def _sizes(bundle: Bundle) -> str:
    return " and ".join(f"{len(group.nodes):,}" for group in bundle.groups)


def _script(nodes: int) -> str:
    spec = JobSpec(
        name="mnist",
        image="/work/i.sif",
        command=("python", "-m", "toolkit.trainers.mnist"),
        directory="/work/ada",
        nodes=nodes,
        ranks_per_node=4,
    )
    return job_script(spec, Plan(mode="srun-pmix", launcher=("srun", "--mpi=pmix")), "to be measured")


def _dry_run(nodes: int) -> str:
    words = ("launch", "mnist", "--site", "juwels", "--account", "train", "--nodes", str(nodes), "--dry-run")
    program = Path(sys.executable).with_name("toolkit")
    done = subprocess.run([program, *words], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"toolkit {' '.join(words)} ended in {done.returncode}\n{done.stderr}")
    return done.stdout
