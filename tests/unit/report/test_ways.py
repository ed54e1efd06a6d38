"""Test that the command of the chosen launch mode is a command that the user can type."""

from typing import get_args

from tests.unit.engine.examples import HOST, IMAGE, MPICH, image_with, with_
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.model.prediction import MODES, Mode, Outcome, Request
from toolkit.report.doctor.ways import allocation_words, ways
from toolkit.report.lines import leave_unstyled


def words(mode: Mode, image=IMAGE, host=HOST, **shape: int) -> str:
    request = Request(mode=mode, **shape)
    verdict = predict(host, image, request)
    plan = verdict.of(mode).plan
    assert plan is not None
    return " ".join(allocation_words(plan, host, request))


def test_the_ranks_and_the_runtime_of_the_host_are_named():
    assert (
        words("srun-pmix") == "srun -N 2 -n 2 --mpi=pmix apptainer exec IMAGE env PYTHONNOUSERSITE=1 COMMAND"
    )
    each = words("srun-pmix", ranks_per_node=4)
    assert each.startswith("srun -N 2 -n 8 --ntasks-per-node=4 --mpi=pmix apptainer exec ")
    singularity = with_(HOST, runtime=with_(HOST.runtime, path="/opt/bin/singularity"))
    assert " singularity exec " in words("srun-pmix", host=singularity)


def test_an_mpirun_is_told_how_many_ranks():
    assert words("mpirun-host").startswith("mpirun -n 2 env -u OMPI_MCA_mca_base_component_path apptainer ")
    inside = words("mpirun-container", image_with(MPICH), nodes=1, ranks_per_node=2)
    assert inside == "apptainer exec IMAGE /usr/bin/mpirun -n 2 -launcher fork env PYTHONNOUSERSITE=1 COMMAND"


def test_what_needs_a_file_of_the_jobs_folder_is_launched_by_toolkit():
    shape = "--image IMAGE --nodes 2 --ranks-per-node 2 -- COMMAND"
    launch = words("mpirun-container", ranks_per_node=2)
    assert launch == f"toolkit launch --mode mpirun-container {shape}"
    gpus = with_(HOST, gpus=("H100", "H100"), gpu_driver="560.35", absent={})
    cuda = with_(IMAGE, cuda="12.4")
    assert " --gpus-per-node 2 -- COMMAND" in words("mpirun-container", cuda, gpus)
    horovod = with_(IMAGE, horovod="0.28.1", horovod_built=("mpi", "gloo"))
    assert words("gloo", horovod, ranks_per_node=2) == f"toolkit launch --mode gloo {shape}"


@every_row("width", [80, 100])
def test_columns_are_as_wide_as_the_longest_mode_and_outcome(width):
    verdict = predict(HOST, IMAGE, Request())
    longest = max(get_args(Outcome), key=len)
    failing = with_(verdict.predictions[0], outcome=longest, because="x", by_chance=())
    verdict = with_(verdict, predictions=(failing, *verdict.predictions[1:]))
    lines = list(ways(verdict, HOST, Request(), leave_unstyled, width))
    assert all(len(line) <= width for line in lines)
    heads = [line for line in lines if line[4:].startswith(MODES)]
    assert {line[36] for line in heads} == {" "}
    assert all(line[37] != " " for line in heads)
    assert f" {longest} x" in lines[0]


def test_what_else_may_come_stands_behind_the_reason():
    verdict = predict(HOST, IMAGE, Request())
    drawn = with_(verdict.predictions[0], outcome="hang", because="x", by_chance=("crash", "init-failure"))
    lines = ways(with_(verdict, predictions=(drawn,)), HOST, Request(), leave_unstyled, 200)
    assert next(lines).endswith(" x; some launches end in crash or init-failure instead")
