"""Test ``toolkit doctor`` on the virtual cluster, and compare its predictions with real launches."""

import contextlib
import shutil
import time
from pathlib import Path

import pytest

from toolkit.data import shipped_folder
from toolkit.engine.predict import predict
from toolkit.image.inspect import inspect
from toolkit.launch.jobscript.plan import launch_words
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan, Request
from toolkit.probe.evidence import parse
from toolkit.probe.probe import probe
from toolkit.render import quote_words
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner
from toolkit.run.remote.ssh import SshRunner

SCRIPT = shipped_folder("containers") / "probe.sh"
RANK = """\
from mpi4py import MPI
world = MPI.COMM_WORLD
assert world.allreduce(1) == world.size
print("world", world.size, flush=True)
"""
PYTHON = "/opt/toolkit/venv/bin/python3"


@pytest.fixture(scope="module")
def image(login, training_sif):
    there = "/work/ada/doctor/train.sif"
    login.send(training_sif, there)
    login.write("/work/ada/doctor/rank.py", RANK.encode())
    return there


SHELLS = [("dash",), ("bash",), *([("busybox", "sh")] if shutil.which("busybox") else [])]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_script_runs_in_every_shell_that_is_here(shell):
    done = LocalRunner().run(Command.of(*shell, "-s", stdin=SCRIPT.read_bytes(), timeout=30))
    assert done.errors == ""
    assert parse(done.text, shell[0])["architecture"].ok


def test_a_machine_without_timeout_is_asked_too(tmp_path):
    for name in (
        "sh",
        "sed",
        "awk",
        "uname",
        "cat",
        "id",
        "env",
        "sleep",
        "grep",
        "head",
        "sort",
        "readlink",
    ):
        found = shutil.which(name)
        assert found
        (tmp_path / name).symlink_to(found)
    script = SCRIPT.read_text().replace("PATH=", f"PATH={tmp_path} # ", 1)
    done = LocalRunner().run(Command.of("sh", "-s", stdin=script.encode(), timeout=60))
    sections = parse(done.text, "here")
    assert sections["architecture"].ok
    assert sections["slurm"].missing


STUBBORN = """ask kernel 1 'trap "" TERM; sleep 31.25 & sleep 31.25; echo woken'"""


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_question_that_hangs_and_ignores_term_is_ended_with_its_children(shell):
    script = SCRIPT.read_text().replace("ask kernel 2 'uname -r'", STUBBORN)
    begun = time.monotonic()
    done = LocalRunner().run(Command.of(*shell, "-s", stdin=script.encode(), timeout=30))
    assert parse(done.text, "here")["kernel"].trouble == "no answer in time"
    assert time.monotonic() - begun < 15
    assert "sleep\x0031.25" not in running()


def running() -> str:
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # the job may exit during the query
            lines.append(process.read_text(errors="replace"))
    return "\n".join(lines)


def test_all_questions_share_one_budget_and_what_is_asked_after_it_is_not_known():
    script = SCRIPT.read_text().replace("begun + 40", "begun + 2").replace("'uname -r'", "'sleep 30'")
    done = LocalRunner().run(Command.of("sh", "-s", stdin=script.encode(), timeout=30))
    sections = parse(done.text, "here")
    assert sections["environment"].trouble == "no answer in time"


def test_no_answer_names_the_home_or_its_owner(tmp_path):
    home = tmp_path / "ada.l[x]"
    (home / "bin").mkdir(parents=True)
    mpirun = home / "bin" / "mpirun"
    mpirun.write_text(f"#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4' {home} {home}/x")
    mpirun.chmod(0o755)
    environment = {"HOME": str(home), "PATH": f"{home}/bin:/usr/bin:/bin", "OPAL_PREFIX": f"{home}/ompi"}
    command = Command(("sh", "-s"), stdin=SCRIPT.read_bytes(), env=environment, timeout=60)
    done = LocalRunner().run(command)
    assert str(home) not in done.text
    assert "|path ~/bin/mpirun" in done.text
    assert "|OPAL_PREFIX=~/ompi" in done.text


@pytest.mark.parametrize(
    ("mode", "nodes", "ranks_per_node"),
    [
        ("srun-pmix", 1, 2),
        ("srun-pmix", 2, 1),
        ("srun-pmix", 2, 2),
        ("srun-pmi2", 2, 1),
        ("mpirun-host", 1, 2),
        ("mpirun-host", 2, 1),
        ("mpirun-host", 2, 2),
        # On several nodes, this mode also needs the job script, which test_mpirun_nodes.py tests.
        ("mpirun-container", 1, 2),
    ],
)
def test_what_is_predicted_happens(login, training_sif, image, mode, nodes, ranks_per_node):
    request = Request(nodes=nodes, ranks_per_node=ranks_per_node)
    prediction = predict(probe(login), inspect(training_sif), request).of(mode)
    assert prediction.plan is not None
    assert run(login, image, prediction.plan, request) == prediction.outcome


def run(login: SshRunner, image: str, plan: Plan, request: Request) -> str:
    """Run the ranks in a batch job, and return an outcome that the engine can predict, such as ``hang``."""
    folder = str(Path(image).parent)
    spec = JobSpec(
        name="x",
        image=image,
        command=(),
        directory=folder,
        nodes=request.nodes,
        ranks_per_node=request.ranks_per_node,
    )
    groups = launch_words(spec, plan, (PYTHON, f"{folder}/rank.py"), "apptainer")
    words = [word for group in groups for word in group]
    script = f"#!/bin/sh\ncd {folder}\ntimeout 60 {quote_words(words)} </dev/null\n"
    login.write(f"{folder}/job.sh", script.encode())
    shape = f"-N{spec.nodes} -n{spec.ranks} --ntasks-per-node={spec.ranks_per_node}"
    submit = f"cd {folder}; sbatch -Q -W {shape} -o job.out job.sh; s=$?; cat job.out; exit $s"
    done = login.run(Command.of("sh", "-c", submit, timeout=120))
    sizes = [line.split()[-1] for line in done.text.splitlines() if "world " in line]
    if sizes == [str(spec.ranks)] * spec.ranks and done.ok:
        return "ok"
    if set(sizes) == {"1"} and done.ok:
        return "singletons"
    return "hang" if done.status == 124 else "init-failure"
