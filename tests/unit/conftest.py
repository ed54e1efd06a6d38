"""What holds for every unit test."""

import signal

import pytest


@pytest.fixture(scope="session", autouse=True)
def no_engine(tmp_path_factory):
    """Keep this machine's Docker engine, or the socket that one left behind, out of unit tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", f"unix://{tmp_path_factory.mktemp('engine')}/none.sock")
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts():
    """Let an interrupt raise KeyboardInterrupt. A shell starts background jobs with it ignored."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
