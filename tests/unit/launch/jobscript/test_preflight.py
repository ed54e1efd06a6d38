"""Test the preflight check of the world size with a program's own MPI."""

import os
import subprocess
import sys

import msgspec

from tests.unit.engine.rules.test_program import NAMED, SOLVER, TWO
from tests.unit.engine.whole import IMAGE, MPI
from tests.unit.launch.examples import spec
from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.launch.jobscript.preflight import FILE, has_check, is_of_program, with_possible_preflight, words
from toolkit.launch.jobscript.script import job_script
from toolkit.model.facts import ImageProgram
from toolkit.model.prediction import Plan

SRUN = Plan(mode="srun-pmix", launcher=("srun", "--mpi=pmix"))
SCRIPT = shipped_folder("slurm") / FILE
PYTHON = "/opt/venv/bin/python3"
SITE = "/opt/venv/lib/python3.11/site-packages"
FOREIGN = msgspec.structs.replace(IMAGE, stack=None, tensorflow=None)


def running(of=FOREIGN, path=SOLVER, **more):
    program = ImageProgram(command=(path,), path=path, chain=(path,), mpi=True)
    return msgspec.structs.replace(of, program=msgspec.structs.replace(program, **more))


def options(of, mode="srun-pmix"):
    named = words(spec(), None, of, Plan(mode=mode, launcher=("srun",)))
    assert named[:2] == ("sh", f"{spec().directory}/{FILE}")
    return dict(zip(named[2::2], named[3::2], strict=True))


def test_a_binary_is_checked_by_the_library_that_it_loads():
    assert options(running()) == {"--library": MPI.library, "--speaks": "pmix"}
    assert options(running(), "bind")["--library"] == MPI.soname


def test_a_python_is_checked_by_its_own_interpreter_and_mpi4py():
    own = msgspec.structs.replace(FOREIGN, programs={f"{SITE}/mpi4py/MPI.so": MPI.library})
    said = options(running(own, PYTHON, python=PYTHON))
    assert (said["--python"], said["--mpi4py"]) == (PYTHON, "yes")


def test_what_a_wrapper_sets_counts_and_a_linked_mpi_has_no_library():
    env = {"LD_LIBRARY_PATH": "/opt/mpich/lib"}
    own = msgspec.structs.replace(FOREIGN, environment=env)
    assert options(running(own, chain=("/opt/run.sh", SOLVER)))["--path"] == "/opt/mpich/lib"
    assert options(running(linked=True)) == {"--speaks": "pmix"}


@every_row(
    ("of", "trainer", "has"),
    [
        (running(), False, True),
        (FOREIGN, False, True),
        (msgspec.structs.replace(FOREIGN, mpi=None), False, False),
        (msgspec.structs.replace(FOREIGN, mpi=None, jax="0.10.2"), False, True),
        (running(mpi=False), False, False),
        (msgspec.structs.replace(TWO, stack=None, tensorflow=None), False, False),
        (msgspec.structs.replace(TWO, stack={}), True, True),
        (msgspec.structs.replace(NAMED, stack=None, tensorflow=None), False, False),
    ],
)
def test_a_preflight_is_left_out_if_the_mpi_of_the_program_is_unknown(of, trainer, has):
    assert has_check(of, trainer=trainer) is has


def test_the_job_script_makes_the_check_and_gloo_has_none(tmp_path):
    job = spec(directory=str(tmp_path))
    text = job_script(job, SRUN, "why", image=running())
    assert text.count(f"{tmp_path}/{FILE}") + text.count(f"> {FILE}") >= 2
    assert is_of_program(job, running())
    assert with_possible_preflight(job, Plan(mode="gloo", launcher=()), running()).preflight is False
    assert with_possible_preflight(job, Plan(mode="srun-pmix", launcher=()), running()).preflight


def check(*given, env=None, python=""):
    words = ["/bin/sh", str(SCRIPT), *(("--python", python) if python else ()), *given]
    kept = {"PATH": "/nowhere" if not python else os.environ["PATH"]}
    found = subprocess.run(words, capture_output=True, text=True, env={**kept, **(env or {})}, check=False)
    return found.returncode, found.stderr


PMI = {"PMI_FD": "5", "PMI_RANK": "0", "PMI_SIZE": "2"}
PMIX = {"PMIX_RANK": "0", "PMIX_NAMESPACE": "slurm.1.0"}


@every_row(
    ("speaks", "env", "status"),
    [
        ("pmi1", PMI, 0),
        ("pmi1", PMIX, 1),
        ("pmi1", {**PMI, "PMI_SIZE": "1"}, 1),
        ("pmi1", {}, 1),
        ("pmix", PMIX, 0),
        ("pmix", PMI, 1),
        ("pmi1,pmix", PMIX, 0),
        ("", {}, 0),
    ],
)
def test_without_a_python_the_variables_of_the_launcher_decide(speaks, env, status):
    given = ("--speaks", speaks, "--tasks", "2") if speaks else ("--tasks", "2")
    code, said = check(*given, env=env)
    assert code == status
    assert ("would be a world of one" in said) == (status == 1)


def test_no_rank_of_a_shared_container_ends_before_the_last_has_started(tmp_path):
    script = tmp_path / FILE
    script.write_bytes(SCRIPT.read_bytes())
    words = ["/bin/sh", str(script), "--speaks", "pmi1", "--together", "2", "--tasks", "2"]
    env = {"PATH": "/usr/bin:/bin", "PMI_FD": "5", "PMI_SIZE": "2"}
    first = subprocess.Popen(words, env={**env, "PMI_RANK": "0"})
    while not list(tmp_path.glob("*/0")):
        assert first.poll() is None
    last = subprocess.run(words, env={**env, "PMI_RANK": "1"}, timeout=60, check=False)
    assert (first.wait(60), last.returncode) == (0, 0)
    assert list(tmp_path.iterdir()) == [script]


def test_ranks_of_a_shared_container_are_counted_by_node():
    shared = msgspec.structs.replace(SRUN, container=("--sharens",))
    for job, plan, counted in (
        (spec(ranks_per_node=4), shared, True),
        (spec(ranks_per_node=1), shared, False),
        (spec(ranks_per_node=4), SRUN, False),
    ):
        assert (words(job, None, running(), plan)[-2:] == ("--together", "4")) is counted


@every_row(("size", "status"), [(2, 0), (1, 1), (4, 1)])
def test_mpi4py_of_the_interpreter_says_the_size(tmp_path, size, status):
    package = tmp_path / "mpi4py"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "MPI.py").write_text(
        "class COMM_WORLD:\n    Barrier = staticmethod(lambda: None)\n"
        f"    Get_size = staticmethod(lambda: {size})\n"
        "def Get_library_version():\n    return 'Example MPI 1.0, made up'\n"
    )
    env = {"PYTHONPATH": str(tmp_path)}
    code, said = check("--mpi4py", "yes", "--tasks", "2", python=sys.executable, env=env)
    assert code == status
    assert "Example MPI 1.0" in said
    assert (f"MPI reports a world of {size} where 2 tasks were started" in said) == (status == 1)


@every_row("env", [PMI, {}])
def test_a_library_that_python_cannot_load_leaves_it_to_the_variables(env):
    given = ("--library", "/nowhere/libmpi.so.12", "--speaks", "pmi1", "--tasks", "2")
    code, said = check(*given, python=sys.executable, env=env)
    assert code == (0 if env else 1)
    assert "/nowhere/libmpi.so.12" in said


def test_with_the_users_packages_the_check_imports_the_mpi4py_of_the_home_folder():
    script = running(FOREIGN, PYTHON, python=PYTHON, mpi=False)
    unknown = msgspec.structs.replace(FOREIGN, program=ImageProgram(command=("python", "a.py"), mpi=False))
    for of, python in ((script, ["--python", PYTHON]), (unknown, [])):
        assert not has_check(of)
        assert has_check(of, user_site=True)
        asked = spec(user_site=True)
        assert is_of_program(asked, of)
        assert with_possible_preflight(asked, SRUN, of).preflight
        assert words(asked, None, of, SRUN)[2:] == (*python, "--mpi4py", "yes")
    loads = running(FOREIGN, PYTHON, python=PYTHON)
    said = words(spec(user_site=True), None, loads, SRUN)
    assert said[said.index("--mpi4py") + 1] == "yes"
    assert "--mpi4py" not in words(spec(user_site=False), None, loads, SRUN)
