"""Test the engine's predictions for launches of images that other people built."""

from tests.matrix.habits import TRUTH as FOLDER
from tests.matrix.record import Cell, load
from tests.unit.matrix.test_truth import predicted
from tests.unit.tables import check_all, every_row

TRUTH = load(FOLDER)
FLAVOURS = ("bare", "hydra", "newest", "older", "pmix")


UNDECIDED = {
    "fresh-trap-dlopen-plugin": "the program opens the library of its MPI at run time",
    "mpich-5.0.2-sid": "this MPICH sends uninitialised memory through PMI",
    "two-programs": "this MPICH hangs in MPI_Finalize in some launches",
    "next-conda-activate": "a script of Intel MPI sets PATH only under a condition",
    "next-python-reexec": "the program starts itself again with only some of its variables",
    "fresh-trap-preload-newer": "the image's mpirun starts ranks of another release of Open MPI",
}
"""Images for which some predictions are `unknown`, and why."""
WRONG = {
    "fresh-trap-slimmed-pmix mpirun-host": "Open MPI 4 without PMIx stops under an mpirun of release 4",
    "fresh-trap-login-shell mpirun-container": "on one cluster, Open MPI 4 stops instead of starting alone",
}
"""Launches of an image that the engine predicts wrongly on some clusters, but never as `ok`."""


def foretold(cell: Cell) -> None:
    said = predicted(cell, TRUTH)
    undecided = said.outcome == "unknown" and cell.image in UNDECIDED
    wrong = said.outcome != "ok" and f"{cell.image} {cell.launch}" in WRONG
    right = said.foretells(cell.outcome) or undecided or wrong
    assert right, f"{said}; it printed: {cell.line!r}; {cell.argv}"


@every_row("flavour", FLAVOURS)
def test_a_launch_is_predicted_as_it_happened(flavour: str):
    cells = [cell for cell in TRUTH.cells if cell.flavour == flavour]
    assert len({cell.image for cell in cells}) >= 11
    check_all(foretold, cells, lambda cell: cell.name)


def test_the_record_has_what_works_and_every_kind_of_failure():
    assert len(TRUTH.cells) >= 1827
    found = {cell.outcome for cell in TRUTH.cells}
    assert found >= {
        "ok",
        "init-failure",
        "loader-failure",
        "singletons",
        "hang",
        "comm-failure",
        "unavailable",
    }
