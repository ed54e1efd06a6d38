"""Test which kind of program a launch runs, and which launch modes fit."""

import msgspec

from tests.unit.engine.whole import HOST, IMAGE, absent, image
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import MODES, MPI_MODES, Request
from toolkit.program import ALL_PROGRAMS, program_of_name
from toolkit.program.choose import modes_of, program_for, program_of_joins, programs_of

BARE = absent(IMAGE, "mpi", "mpirun", "pmix", "horovod", "tensorflow", "mpi4py")
TORCH = msgspec.structs.replace(BARE, pytorch="2.13.0")
THREE = msgspec.structs.replace(TORCH, jax="0.10.2", tensorflow="2.21.0")
BESIDE_MPI = msgspec.structs.replace(absent(IMAGE, "horovod", "tensorflow", "mpi4py"), pytorch="2.13.0")
PYTHON = ("python3", "train.py")


def test_every_program_of_the_model_has_a_module_and_every_mode_a_program():
    assert {program.NAME for program in ALL_PROGRAMS} == {
        "mpi",
        "horovod",
        "torch",
        "jax",
        "tf-config",
        "serial",
    }
    assert {mode for program in ALL_PROGRAMS for mode in program.MODES} == set(MODES)


@every_row(
    ("facts", "request_", "first"),
    [
        (IMAGE, Request(), "mpi"),
        (TORCH, Request(), "torch"),
        (TORCH, Request(command=("hostname",)), "torch"),
        (BARE, Request(command=("hostname",)), "serial"),
        (BARE, Request(command=PYTHON), "mpi"),
        (BESIDE_MPI, Request(command=PYTHON), "torch"),
        (BESIDE_MPI, Request(command=("/opt/solver",)), "mpi"),
        (BESIDE_MPI, Request(command=PYTHON, joins=frozenset({"mpi"})), "mpi"),
        (IMAGE, Request(command=PYTHON, joins=frozenset({"lightning"})), "torch"),
        (IMAGE, Request(command=PYTHON, joins=frozenset({"torch", "horovod"})), "horovod"),
        (THREE, Request(command=PYTHON, joins=frozenset({"keras-distribution"})), "tf-config"),
        (IMAGE, Request(command=("torchrun", "train.py")), "torch"),
        (IMAGE, Request(command=("python", "-u", "-m", "torch.distributed.run", "a.py")), "torch"),
        (TORCH, Request(program="jax"), "jax"),
    ],
)
def test_the_likeliest_program_comes_first(facts: ImageFacts, request_: Request, first: str):
    assert programs_of(facts, request_)[0] == first


def test_a_script_that_joins_by_nothing_known_decides_nothing():
    assert program_of_joins(frozenset()) is None
    assert program_of_joins(frozenset({"smoke signals"})) is None


def test_mpi_modes_do_not_apply_to_an_image_without_mpi_that_has_pytorch():
    assert modes_of(TORCH, Request()) == ("torch",)
    assert modes_of(THREE, Request()) == ("torch", "jax", "tf-config")
    verdict = predict(HOST, TORCH, Request())
    assert verdict.chosen == "torch"
    assert [p.outcome for p in verdict.predictions] == ["ok"]
    assert not [f for f in verdict.findings if f.severity == "error"]


def test_a_mode_that_is_asked_for_applies_and_its_launcher_is_judged():
    request = Request(mode="srun-pmix", program="torch")
    assert modes_of(TORCH, request) == ("srun-pmix", "torch")
    assert program_for(TORCH, request, "srun-pmix") == "torch"
    assert predict(HOST, TORCH, request).chosen == "srun-pmix"
    none = msgspec.structs.replace(HOST, slurm=msgspec.structs.replace(HOST.slurm, mpi_types=("none",)))
    assert predict(none, TORCH, request).of("srun-pmix").outcome == "unavailable"


def test_a_program_that_is_named_has_its_own_modes_alone():
    assert modes_of(IMAGE, Request(program="mpi")) == MPI_MODES
    assert modes_of(IMAGE, Request(program="serial")) == ("srun-none",)
    assert predict(HOST, image(), Request(program="serial")).chosen == "srun-none"


@every_row("facts", [TORCH, THREE, BESIDE_MPI, IMAGE, BARE])
@every_row("mode", MODES)
def test_whatever_mode_is_asked_for_there_is_a_prediction_of_it(facts: ImageFacts, mode):
    verdict = predict(HOST, facts, Request(mode=mode))
    assert verdict.of(mode).mode == mode
    assert verdict.chosen in {None, mode}


@every_row(
    ("command", "starter"),
    [
        (("torchrun", "--nnodes=2", "a.py"), "torchrun"),
        (("/opt/venv/bin/torchrun", "a.py"), "torchrun"),
        (("python3", "-m", "torch.distributed.launch", "a.py"), "torchrun"),
        (("accelerate", "launch", "a.py"), "accelerate"),
        (("accelerate", "config"), ""),
        (("deepspeed", "a.py"), "deepspeed"),
        (("python", "-m"), ""),
        (("python", "a.py", "torchrun"), ""),
        ((), ""),
    ],
)
def test_what_starts_the_ranks_of_a_node_is_known_by_the_command(command, starter):
    assert program_of_name("torch").starter(command) == starter
