"""Fixtures with real services, such as a cluster, each started once per test run."""

import os

import pytest

from tests.services import ready
from tests.services.jobs import as_root
from tests.services.leftover import remove_leftover
from tests.services.program import ROOT, toolkit
from tests.services.workers import CLUSTER, STATE, one_at_a_time
from tests.unit.trainers.digits import idx
from toolkit.cluster import virtual
from toolkit.data import cache_dir
from toolkit.errors import Missing
from toolkit.image.locks.fetch import fetch_files
from toolkit.image.locks.lock import files_of, load_lock
from toolkit.model.progress import Silent
from toolkit.run.docker.containers import Box, run_once
from toolkit.run.docker.engine import connect
from toolkit.run.remote.ssh import SshRunner

# This script makes the smallest image that can run a job: a shell, four programs and their libraries.
_BOX = r"""
set -e
cd "$(mktemp -d)"
mkdir -p box/bin box/etc box/tmp box/proc box/sys box/dev box/home box/work box/var/tmp
for program in /bin/sh /bin/cat /bin/sleep /bin/touch /usr/bin/env; do
    cp -L "$program" box/bin/
    ldd "$program" | grep -o '/[^ ]*' | while read -r library; do cp --parents -L "$library" box/; done
done
apptainer -s build -F /work/jobs-box.sif box
"""


def pytest_configure():
    """Keep the tests' clusters and jobs apart from the user's, and make each launch probe the cluster."""
    os.environ["XDG_STATE_HOME"] = str(STATE)
    os.environ["TOOLKIT_FACTS_SECONDS"] = "0"


@pytest.fixture(scope="session")
def engine():
    client = connect()
    yield client
    client.close()


@pytest.fixture(scope="session")
def cluster(engine):
    """Return a running cluster with two nodes; with TOOLKIT_KEEP_CLUSTER=1 it stays up for the next test
    run.
    """
    remove_leftover(CLUSTER)
    yield virtual.up(CLUSTER, 2)
    if not os.environ.get("TOOLKIT_KEEP_CLUSTER"):
        virtual.down(CLUSTER)


@pytest.fixture(scope="module")
def login(cluster):
    runner = SshRunner("login", cluster.ssh_config)
    yield runner
    runner.close()


@pytest.fixture(scope="session")
def locked(engine, tmp_path_factory):
    """Return a function that writes a new lock for a shipped recipe if its packages are no longer available.

    Debian mirrors remove a package when its next version appears. The new lock is in a temporary settings
    folder, which all commands of the tests use.
    """

    def lock(name):
        found = load_lock(name)
        try:
            fetch_files(files_of(found), Silent())
        except Missing:
            os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
            toolkit("image", "lock", name, "--upgrade", "--own", timeout=900)
            found = load_lock(name)
        return found

    return lock


@pytest.fixture(scope="session")
def training_sif(engine, locked):
    """Return the SIF file of the default recipe; image and SIF are built only if something changed."""
    locked(ready.RECIPE)
    return ready.training_sif()


@pytest.fixture(scope="session")
def on(cluster, training_sif):
    """Return options of ``toolkit launch`` for the cluster and the training image, which has Open MPI
    4.1.4.
    """
    return ["--cluster", cluster.name, "--image", str(training_sif)]


@pytest.fixture(scope="session")
def box(cluster, tmp_path_factory):
    """Return options of ``toolkit launch`` for the cluster and a minimal image, for jobs without MPI."""
    status, said = as_root(cluster, "sh", "-c", _BOX)
    assert status == 0, said
    image = tmp_path_factory.mktemp("image") / "box.sif"
    runner = SshRunner("login", cluster.ssh_config)
    try:
        image.write_bytes(runner.read("/work/jobs-box.sif"))
    finally:
        runner.close()
    return ["--cluster", cluster.name, "--image", str(image), "--no-preflight", "--force"]


@pytest.fixture
def copied(cluster, tmp_path):
    """Return the path of a copy of the cluster's SSH configuration, which a test may change."""
    for name in ("ssh_config", "known_hosts", "id_ecdsa"):
        content = (cluster.ssh_config.parent / name).read_text()
        (tmp_path / name).write_text(content.replace(str(cluster.ssh_config.parent), str(tmp_path)))
        (tmp_path / name).chmod(0o600)
    return tmp_path / "ssh_config"


@pytest.fixture(scope="session")
def mnist():
    ready.mnist()
    return cache_dir() / "data" / "mnist"


@pytest.fixture(scope="session")
def few(mnist, tmp_path_factory):
    """Return a folder with 640 training images of MNIST (20 steps of 32 images) and 200 test images."""
    folder = tmp_path_factory.mktemp("few")
    for part, count in (("train", 640), ("t10k", 200)):
        images, labels = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
        pixels = (mnist / images).read_bytes()[16 : 16 + count * 784]
        (folder / images).write_bytes(idx((count, 28, 28), pixels))
        (folder / labels).write_bytes(idx((count,), (mnist / labels).read_bytes()[8 : 8 + count]))
    return folder


@pytest.fixture(scope="session")
def inside(engine):
    """Return a function that runs a command in the training image, with the trainers of this checkout."""
    with one_at_a_time(ready.RECIPE):
        ready.training_image()

    def run(*words, binds=None, env=None, timeout=300.0):
        here = {str(ROOT / "toolkit"): "/opt/toolkit/lib/toolkit:ro"}
        settings = {
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            # Docker's seccomp profile forbids the system call process_vm_readv, which Open MPI would use.
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        }
        mounts = {str(host): place for host, place in (binds or {}).items()}
        box = Box(
            ready.IMAGE, binds=here | mounts, env=settings | (env or {}), memory=6 << 30, timeout=timeout
        )
        return run_once(engine, box, words)

    return run
