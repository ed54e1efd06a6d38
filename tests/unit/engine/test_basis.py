"""Test the basis of a prediction (measured, derived or beyond all measured launches), and its display."""

import msgspec

from tests.matrix.launches import inherited
from tests.matrix.record import load
from tests.unit.engine import whole
from tests.unit.engine.whole import LAUNCHER, MPI, MPICH, SLURM, case, host, image, runtime
from tests.unit.tables import every_row
from toolkit.engine.basis import basis, launch_coverage
from toolkit.engine.predict import case_of, predict_plan
from toolkit.knowledge.measured import measured_launches
from toolkit.model.prediction import Prediction

OPEN_MPI_3 = msgspec.structs.replace(LAUNCHER, version="3.1.4")
HMEM = "MPIR_CVAR_CH4_OFI_ENABLE_HMEM"
PLAIN = host(infiniband=(), pmix="5.0.7")
AS_RECORDED = {"on": PLAIN, "of": image(mpi=msgspec.structs.replace(MPI, version="4.1.4"), pmix="4.2.2")}


def test_a_recorded_launch_is_measured():
    assert basis(case(**AS_RECORDED)) == ("measured", ())


def test_another_release_between_measured_ones_is_derived():
    other = image(mpi=msgspec.structs.replace(MPI, version="4.1.2"), pmix="4.2.2")
    assert basis(case(on=PLAIN, of=other)) == ("derived", ())


@every_row("on,of,shape,name", [
    (runtime(setuid=True), image(), {}, "setuid"),
    (runtime(name="singularity-ce", version="4.1.0"), image(), {}, "SingularityCE 4.1"),
    (host(slurm=msgspec.structs.replace(SLURM, version="23.02.6")), image(), {}, "Slurm 23.2"),
    (host(pmix="3.2.3"), image(), {}, "PMIx 3.2"),
    (host(), image(), {}, "a fast network (mlx5_0)"),
    (host(infiniband=(), fabrics=("slingshot",)), image(), {}, "a fast network (slingshot)"),
    (host(), image(cuda="12.9"), {"asked": {"gpus": True}}, "CUDA 12.9 on driver 550.54.15"),
    (host(gpus=None, amd_gpus=("gfx942",)), image(), {"container": ("--rocm",)}, "AMD GPUs (gfx942)"),
    (host(gpus=None, amd_gpus=None), image(), {"container": ("--nv",)}, "GPUs"),
    (host(), image(), {"nodes": 1, "ranks_per_node": 64}, "64 ranks on a node"),
    (host(), image(mpi=msgspec.structs.replace(MPI, version="7.0.0")), {}, "Open MPI 7.0.0"),
    (host(mpis=(OPEN_MPI_3,)), image(), {"mode": "mpirun-host"}, "Open MPI 3.1.4 of the host"),
    (host(), image(mpi=msgspec.structs.replace(MPI, implementation="mvapich2")), {}, "MVAPICH2"),
    (host(), image(mpi=MPICH), {"mode": "srun-pmi2", "given": {HMEM: "1"}}, f"{HMEM}=1"),
])  # fmt: skip
def test_each_axis_leads_beyond_the_record(on, of, shape, name):
    rests, outside = basis(case(on=on, of=of, **shape))
    assert rests == "beyond"
    assert any(name in words for words in outside), outside


def test_an_mpi_of_the_host_that_is_mounted_is_named_once():
    launcher, inside = (msgspec.structs.replace(one, version="7.0.0") for one in (LAUNCHER, MPI))
    _, outside = basis(case(on=host(mpis=(launcher,), infiniband=()), of=image(mpi=inside), mode="bind"))
    assert outside == ("Open MPI 7.0.0 of the host",)


def test_a_prediction_shows_that_nothing_like_it_was_measured():
    made = case(on=runtime(setuid=True))
    said = predict_plan(made.host_facts, made.image_facts, made.request, made.plan)
    assert (said.outcome, said.shown, said.basis) == ("ok", "ok?", "beyond")
    assert "not measured with a container runtime that is installed setuid" in said.why


def test_a_failure_is_shown_as_it_is():
    said = Prediction(mode="bind", outcome="hang", because="it waits", basis="beyond", beyond=("Slurm 18.8",))
    assert (said.shown, said.why) == ("hang", "it waits")


def test_the_record_is_covered():
    """Check for every fiftieth recorded launch that ``measured.toml`` contains it."""
    truth = load()
    for cell in truth.cells[::50]:
        on = inherited(truth.hosts[cell.flavour], cell.environment, cell.host_changes)
        made = case_of(on, truth.images[cell.image].facts, cell.request, cell.plan)
        assert launch_coverage(made).launch in measured_launches().launches, cell.name


def test_nothing_recorded_is_beyond_the_record():
    truth = load()
    for cell in truth.cells[::50]:
        on = inherited(truth.hosts[cell.flavour], cell.environment, cell.host_changes)
        made = case_of(on, truth.images[cell.image].facts, cell.request, cell.plan)
        assert basis(made) == ("measured", ()), cell.name


def test_facts_without_slurm_and_runtime_have_a_basis():
    bare = whole.absent(whole.absent(host(mpis=()), "slurm"), "runtime")
    assert basis(case(on=bare, mode="mpirun-container", nodes=1)) == ("derived", ())
