"""Provide the fixtures of all services, and assign test files to parallel workers."""

from pathlib import Path

from xdist.scheduler.loadscope import LoadScopeScheduling

from tests.services.fixtures import (  # noqa: F401 - pytest finds fixtures and hooks by their names here
    box,
    cluster,
    copied,
    engine,
    few,
    inside,
    locked,
    login,
    mnist,
    on,
    pytest_configure,
    training_sif,
)  # fmt: skip

# These test files build, tag and remove the same image, so one worker runs all of them.
IMAGES = ("test_image", "test_reproducible", "test_bundle", "test_registry", "test_sif", "test_signatures")
# The longest tests run first, so that all workers finish at about the same time.
LONG = ("test_courses", "test_survive_slurm", *IMAGES, "test_strategies", "test_options", "test_classroom")


def pytest_collection_modifyitems(items):
    order = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


class Files(LoadScopeScheduling):
    """Assigns each test file to one worker, because its tests share fixtures and a cluster."""

    def _split_scope(self, nodeid):
        name = Path(nodeid.partition("::")[0]).stem
        return "images" if name in IMAGES else name


def pytest_xdist_make_scheduler(config, log):
    return Files(config, log)
