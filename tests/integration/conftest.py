"""Real services for all integration tests, each started once for a run."""

import contextlib
import hashlib
import os

import pytest

from tests.integration.program import ROOT, toolkit
from toolkit.cluster import virtual
from toolkit.errors import Missing
from toolkit.run.engine import connect

RECIPE = "tf2.15-cpu"

# Two checkouts can be tested at once, and neither meets what a killed run of the other left behind.
CLUSTER = "test-" + hashlib.sha256(str(ROOT).encode()).hexdigest()[:6]


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
    """A cluster of two nodes; TOOLKIT_KEEP_CLUSTER=1 leaves it up for the next try."""
    try:
        virtual.status(CLUSTER)
        virtual.find(CLUSTER)
    except Missing:
        # Left by a run that was killed, and its keys are gone with the folder that it ran in.
        with contextlib.suppress(Missing):
            virtual.down(CLUSTER)
    yield virtual.up(CLUSTER, 2)
    if not os.environ.get("TOOLKIT_KEEP_CLUSTER"):
        virtual.down(CLUSTER)


@pytest.fixture(scope="session")
def training_sif(engine):
    """The default recipe as a SIF file; both steps do nothing where nothing has changed."""
    sif = ROOT / "build" / "images" / f"{RECIPE}.sif"
    toolkit("image", "build", RECIPE, timeout=1800)
    toolkit("image", "sif", RECIPE, "-o", str(sif), timeout=900)
    return sif
