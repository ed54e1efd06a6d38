"""What the node image is built from."""

import pytest
from packaging.requirements import Requirement

from toolkit.cluster import image
from toolkit.errors import Missing


def test_nodes_get_what_the_metadata_asks_for_and_no_extra():
    needed = image.requirements()
    names = {Requirement(line).name for line in needed}
    assert {"click", "jinja2", "msgspec"} <= names
    assert not {"tensorflow", "pytest", "matplotlib"} & names


def test_a_toolkit_without_metadata_says_how_to_get_it(monkeypatch):
    def missing(name):
        raise image.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(image.metadata, "requires", missing)
    with pytest.raises(Missing, match="not installed") as caught:
        image.requirements()
    assert caught.value.fix == "pip install ."


def test_every_file_that_the_dockerfile_copies_is_in_the_context():
    files = image.context()
    copied = [
        line.split()[1:-1] for line in files["Dockerfile"].decode().splitlines() if line.startswith("COPY ")
    ]
    here = {name for names in copied for name in names if not name.startswith(("--", "/"))}
    assert here == files.keys() - {"Dockerfile"} | {"certificates.crt"}


def test_another_file_or_base_is_another_image():
    digests = {
        image.context_digest(f, b) for f, b in (({"a": b"1"}, "x"), ({"a": b"2"}, "x"), ({"a": b"1"}, "y"))
    }
    assert len(digests) == 3


def test_certificates_are_those_that_pip_is_told_of(tmp_path, monkeypatch):
    for variable in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(variable, raising=False)
    assert image.certificates() == b""
    (tmp_path / "ca").write_bytes(b"bundle")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca"))
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "absent"))
    assert image.certificates() == b"bundle"
