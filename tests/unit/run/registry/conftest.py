import pytest

from tests.unit.run.registry.hostile import server

__all__ = ["server"]


@pytest.fixture(autouse=True)
def no_certificates_of_the_system(monkeypatch):
    """Spare each session the file of 140 certificates, which takes OpenSSL 40 ms to read."""
    monkeypatch.setenv("SSL_CERT_FILE", "/none")
    monkeypatch.setenv("SSL_CERT_DIR", "/none")
