"""Real services for all integration tests, each started once for a run."""

import contextlib
import os
from pathlib import Path

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

from tests.integration.program import ROOT, toolkit
from tests.integration.workers import CLUSTER, STATE, one_at_a_time
from tests.unit.trainers.digits import idx
from toolkit.cluster import virtual
from toolkit.data import cache_dir
from toolkit.errors import Missing
from toolkit.image.fetch import fetched
from toolkit.image.lock import files_of, load_lock
from toolkit.model.progress import Silent
from toolkit.run.containers import Box, run_once
from toolkit.run.engine import connect
from toolkit.run.ssh import SshRunner

RECIPE = "tf2.15-cpu"
IMAGE = f"toolkit/{RECIPE}:latest"

# Files that build, tag and remove the same image: one worker runs them all.
IMAGES = ("test_image", "test_reproducible", "test_bundle", "test_registry", "test_sif", "test_signatures")
# What takes longest comes first, so that workers end together.
LONG = ("test_courses", "test_survive_slurm", *IMAGES, "test_strategies", "test_options", "test_classroom")


def pytest_configure():
    """Keep the clusters and job records of tests apart from a person's own."""
    os.environ["XDG_STATE_HOME"] = str(STATE)


def pytest_collection_modifyitems(items):
    order = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


class Files(LoadScopeScheduling):
    """Give a file to one worker, as its tests share a fixture or the state of the cluster."""

    def _split_scope(self, nodeid):
        name = Path(nodeid.partition("::")[0]).stem
        return "images" if name in IMAGES else name


def pytest_xdist_make_scheduler(config, log):
    return Files(config, log)


def pytest_terminal_summary(terminalreporter):
    """Say why a test was tried again: that it passed then is no reason to know nothing of it."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"tried again: {report.nodeid}")
        terminalreporter.line("\n".join(report.longreprtext.splitlines()[-40:]))


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


@pytest.fixture(scope="module")
def login(cluster):
    """A connection to the cluster's login node."""
    runner = SshRunner("login", cluster.ssh_config)
    yield runner
    runner.close()


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
    sif = ROOT / "build" / "images" / f"{RECIPE}.sif"
    with one_at_a_time(RECIPE):
        locked(RECIPE)
        toolkit("image", "build", RECIPE, timeout=3600)
        toolkit("image", "sif", RECIPE, "-o", str(sif), timeout=900)
    return sif


@pytest.fixture(scope="session")
def on(cluster, training_sif):
    """Options of ``toolkit launch`` that name the cluster and the image, which has Open MPI 4.1.4."""
    return ["--cluster", cluster.name, "--image", str(training_sif)]


@pytest.fixture(scope="session")
def mnist():
    with one_at_a_time("mnist"):
        toolkit("data", "get", "mnist")
    return cache_dir() / "data" / "mnist"


@pytest.fixture(scope="session")
def few(mnist, tmp_path_factory):
    """The first 640 images to train on, 20 steps of 32, and 200 to test with."""
    folder = tmp_path_factory.mktemp("few")
    for part, count in (("train", 640), ("t10k", 200)):
        images, labels = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
        pixels = (mnist / images).read_bytes()[16 : 16 + count * 784]
        (folder / images).write_bytes(idx((count, 28, 28), pixels))
        (folder / labels).write_bytes(idx((count,), (mnist / labels).read_bytes()[8 : 8 + count]))
    return folder


@pytest.fixture(scope="session")
def inside(engine):
    """Run words in the training image, with the trainers of this checkout in place of the image's."""
    with one_at_a_time(RECIPE):
        toolkit("image", "build", RECIPE, timeout=3600)

    def run(*words, binds=None, env=None, timeout=300.0):
        here = {str(ROOT / "toolkit"): "/opt/toolkit/lib/toolkit:ro"}
        settings = {
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            # Docker's seccomp profile forbids the system call that it uses.
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        }
        mounts = {str(host): place for host, place in (binds or {}).items()}
        box = Box(IMAGE, binds=here | mounts, env=settings | (env or {}), memory=6 << 30, timeout=timeout)
        return run_once(engine, box, words)

    return run
