"""Fixtures with one training image and one cluster for all smoke tests."""

from tests.services.fixtures import (  # noqa: F401 - pytest finds fixtures and hooks by their names here
    box,
    cluster,
    copied,
    engine,
    few,
    locked,
    login,
    mnist,
    on,
    pytest_configure,
    training_sif,
)  # fmt: skip
