"""One image and one cluster for all tests of this folder."""

import os

from tests.services.fixtures import (  # noqa: F401 - pytest finds fixtures by their names here
    box,
    cluster,
    copied,
    engine,
    few,
    locked,
    login,
    mnist,
    on,
    training_sif,
)  # fmt: skip
from tests.services.workers import STATE


def pytest_configure():
    """Keep the clusters and job records of tests apart from yours."""
    os.environ["XDG_STATE_HOME"] = str(STATE)
