"""Real services for all integration tests, each started once for a run."""

import os

import pytest

from tests.integration.program import ROOT, toolkit
from toolkit.cluster import virtual
from toolkit.errors import Missing
from toolkit.run.engine import connect

RECIPE = "tf2.15-cpu"


def pytest_configure():
    """Keep the clusters and job records of tests apart from a person's own."""
    os.environ["XDG_STATE_HOME"] = str(ROOT / "build" / "tests")


@pytest.fixture(scope="session")
def engine():
    client = connect()
    yield client
    client.close()


@pytest.fixture(scope="session")
def cluster(engine):
    """A cluster of two nodes; one that was up before stays, so that tests can be tried again quickly."""
    try:
        virtual.status("test")
        kept = True
    except Missing:
        kept = False
    yield virtual.up("test", 2)
    if not kept:
        virtual.down("test")


@pytest.fixture(scope="session")
def training_sif(engine):
    """The default recipe as a SIF file; both steps do nothing where nothing has changed."""
    sif = ROOT / "build" / "images" / f"{RECIPE}.sif"
    toolkit("image", "build", RECIPE, timeout=1800)
    toolkit("image", "sif", RECIPE, "-o", str(sif), timeout=900)
    return sif
