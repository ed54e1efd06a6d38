"""What holds for every unit test."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def no_engine(tmp_path_factory):
    """Keep this machine's Docker engine, or the socket that one left behind, out of unit tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", f"unix://{tmp_path_factory.mktemp('engine')}/none.sock")
        yield
