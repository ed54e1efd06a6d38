"""Settings and fixtures for every unit test."""

import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.unit.thorough import count

# The number of examples for tests that do not set one. The time of an example depends on the machine, so
# there is no time limit.
settings.register_profile(
    "unit", max_examples=count(25, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unit")


@pytest.fixture(scope="session", autouse=True)
def no_engine(tmp_path_factory):
    """Keep this machine's Docker engine, or the socket that one left behind, out of unit tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", f"unix://{tmp_path_factory.mktemp('engine')}/none.sock")
        yield


@pytest.fixture(scope="session", autouse=True)
def no_remembered_hosts():
    """Have each test ask its own host, because hosts of several tests have one name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLKIT_FACTS_SECONDS", "0")
        yield


@pytest.fixture(scope="session", autouse=True)
def no_images_of_the_checkout():
    """Keep the images that this checkout built out of unit tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolkit.job.request.locations.checkout", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_certificates_of_the_system():
    """Do not load the file of 140 certificates in each client, because OpenSSL needs 40 ms to read it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", "/none")
        patch.setenv("SSL_CERT_DIR", "/none")
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts():
    """Let an interrupt raise KeyboardInterrupt. Jobs that a shell starts in the background ignore
    interrupts."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
