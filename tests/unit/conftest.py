"""Settings and automatic fixtures of all unit tests."""

import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.unit.thorough import count

# Property tests have no time limit (`deadline`), because times depend on the machine.
settings.register_profile(
    "unit", max_examples=count(25, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unit")


@pytest.fixture(scope="session", autouse=True)
def no_engine(tmp_path_factory):
    """Point DOCKER_HOST at a missing socket, so that unit tests do not use this machine's Docker engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", f"unix://{tmp_path_factory.mktemp('engine')}/none.sock")
        yield


@pytest.fixture(scope="session", autouse=True)
def no_remembered_hosts():
    """Disable the cache of host facts, because hosts of several tests have the same name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLKIT_FACTS_SECONDS", "0")
        yield


@pytest.fixture(scope="session", autouse=True)
def no_images_of_the_checkout():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolkit.job.request.locations.checkout", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_certificates_of_the_system():
    """Do not load the system's 140 certificates, because OpenSSL needs 40 ms for them in each client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", "/none")
        patch.setenv("SSL_CERT_DIR", "/none")
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts():
    """Make SIGINT raise KeyboardInterrupt, because processes that a shell starts in the background ignore
    SIGINT.
    """
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
