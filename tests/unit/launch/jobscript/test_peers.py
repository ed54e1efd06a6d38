"""Test the preflight check of a program without MPI: how the check starts, and its messages."""

import subprocess
import sys

from tests.unit.launch.examples import spec
from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.launch.jobscript.peers import FILE, has_check, words
from toolkit.launch.jobscript.preflight import title_of, with_possible_preflight
from toolkit.launch.jobscript.script import job_script
from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Plan

WRAPPED = ("sh", "toolkit-ranks.sh")
TORCH = Plan(mode="torch", launcher=("srun", "--mpi=none"), program="torch", wrapper=WRAPPED)
TORCHRUN = Plan(mode="torch", launcher=("srun",), program="torch", wrapper=WRAPPED, starter="torchrun")
IMAGE = ImageFacts(path="t.sif", format="sif", pytorch="2.13.0", absent={"mpi": "none"})


@every_row(
    ("command", "plan", "start"),
    [
        (("python", "-u", "train.py"), TORCH, ("python",)),
        (("/opt/venv/bin/python3.11", "train.py"), TORCH, ("/opt/venv/bin/python3.11",)),
        (("./train",), TORCH, ("python3",)),
        (("torchrun", "train.py", "--nnodes=7"), TORCHRUN, ("torchrun",)),
        (
            ("torchrun", "--nnodes=1", "--tee", "3", "--rdzv-id", "a", "--module", "train"),
            TORCHRUN,
            ("torchrun", "--nnodes=1", "--tee", "3", "--rdzv-id", "a"),
        ),
        (("torchrun", "--standalone", "t.py"), TORCHRUN, ("torchrun", "--standalone")),
        (
            ("python", "-m", "torch.distributed.run", "--nnodes", "1", "t.py"),
            TORCHRUN,
            ("python", "-m", "torch.distributed.run", "--nnodes", "1"),
        ),
        (("sh", "run.sh"), TORCHRUN, ("torchrun",)),
    ],
)
def test_the_check_starts_as_the_program_does(command, plan, start):
    job = spec(command=command, gpus_per_node=None)
    assert words(job, plan) == (*start, f"{job.directory}/{FILE}", "torch")


def test_the_gpus_that_are_asked_for_are_checked():
    assert words(spec(command=("python", "t.py"), gpus_per_node=4), TORCH)[-2:] == ("--gpus", "4")


@every_row(
    ("plan", "has"),
    [
        (TORCH, True),
        (TORCHRUN, True),
        (Plan(mode="torch", launcher=("srun",), program="torch"), False),
        (
            Plan(mode="torch", launcher=("srun",), program="torch", wrapper=WRAPPED, starter="deepspeed"),
            False,
        ),
        (Plan(mode="srun-none", launcher=("srun",), program="serial"), False),
        (Plan(mode="srun-pmix", launcher=("srun",)), False),
    ],
)
def test_ranks_that_are_told_their_peers_are_checked(plan, has):
    assert has_check(plan) is has
    assert with_possible_preflight(spec(preflight=True), plan, IMAGE).preflight is has


def test_the_job_script_makes_the_check_and_starts_it_with_every_rank():
    text = job_script(spec(command=("python", "train.py"), preflight=True), TORCH, "why", image=IMAGE)
    assert text.count(FILE) >= 2
    assert "it initializes PyTorch as the program does" in text
    assert title_of(TORCH) == "PyTorch"
    start = text[text.index("timeout --foreground") :]
    assert start.index("toolkit-ranks.sh") < start.index(f"{FILE} torch --tasks")


FAKE = """
import os
__version__ = "9"
class _Nothing:
    def __getattr__(self, name):
        return _Nothing()
    def __call__(self, *a, **k):
        return _Nothing()
    def item(self):
        return int(os.environ["TOTAL"])
def ones(n):
    return _Nothing()
"""
DIST = """
import os
def init_process_group(*a, **k):
    if os.environ.get("FAILS"):
        raise RuntimeError("no route to MASTER_ADDR")
def all_reduce(x): pass
def destroy_process_group(): pass
def get_rank(): return 0
def get_world_size(): return int(os.environ["SIZE"])
"""


def check(folder, tasks, **env):
    """Run the check with a fake PyTorch: ``SIZE`` sets its world size, ``TOTAL`` the sum over its ranks."""
    (folder / "torch" / "distributed").mkdir(parents=True, exist_ok=True)
    (folder / "torch" / "__init__.py").write_text(FAKE)
    (folder / "torch" / "distributed" / "__init__.py").write_text(DIST)
    return run("torch", tasks, {"PYTHONPATH": str(folder), **env})


def run(program, tasks, env):
    file = shipped_folder("slurm") / FILE
    given = [sys.executable, str(file), program, "--tasks", tasks]
    done = subprocess.run(given, capture_output=True, text=True, env=env, check=False)
    return done.returncode, done.stderr


@every_row(
    ("size", "total", "status", "said"),
    [
        ("4", "4", 0, "preflight: 4 ranks, PyTorch 9"),
        ("1", "1", 1, "a world of 1 where 4 ranks were started: every rank is alone"),
        ("2", "2", 1, "a world of 2 where 4 ranks were started: some ranks are missing"),
        ("4", "3", 1, "a world of 4 where 4 ranks were started"),
    ],
)
def test_a_world_of_another_size_ends_the_job(size, total, status, said, tmp_path):
    code, text = check(tmp_path, "4", SIZE=size, TOTAL=total)
    assert code == status
    assert said in text


def test_ranks_that_do_not_meet_end_the_job(tmp_path):
    code, text = check(tmp_path, "4", FAILS="yes")
    assert code == 1
    assert "preflight: RuntimeError: no route to MASTER_ADDR" in text


def test_without_the_framework_nothing_is_checked(tmp_path):
    code, text = run("jax", "4", {"PYTHONPATH": str(tmp_path), "PYTHONNOUSERSITE": "1"})
    assert code == 0
    assert "is not checked: No module named 'jax'" in text
