"""Real services for all integration tests, each started once for a run."""

import contextlib
import hashlib
import os

import pytest

from tests.integration.program import ROOT, toolkit
from toolkit.cluster import virtual
from toolkit.errors import Missing
from toolkit.image.build import files_of
from toolkit.image.fetch import fetched
from toolkit.image.lock import load_lock
from toolkit.model.progress import Silent
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
def locked(engine, tmp_path_factory):
    """Return the lock of a shipped recipe: the committed one while its files are to be had.

    Mirrors of Debian keep a package only until the next one comes. Years later the recipe is locked anew,
    into a folder of settings that goes with the tests, where this and every command of theirs finds it.
    """

    def lock(name):
        found = load_lock(name)
        try:
            fetched(files_of(found), Silent())
        except Missing:
            os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
            toolkit("image", "lock", name, "--upgrade", "--own", timeout=900)
            found = load_lock(name)
        return found

    return lock


@pytest.fixture(scope="session")
def training_sif(engine, locked):
    """The default recipe as a SIF file; both steps do nothing where nothing has changed."""
    locked(RECIPE)
    sif = ROOT / "build" / "images" / f"{RECIPE}.sif"
    toolkit("image", "build", RECIPE, timeout=3600)
    toolkit("image", "sif", RECIPE, "-o", str(sif), timeout=900)
    return sif
