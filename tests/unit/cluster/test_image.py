"""What the node image is built from."""

import pytest
from packaging.requirements import Requirement

from toolkit.cluster import image
from toolkit.errors import Missing
from toolkit.run.surroundings import pip_settings

PIP = [
    f"PIP_{what}"
    for what in ["INDEX_URL", "EXTRA_INDEX_URL", "TRUSTED_HOST", "DEFAULT_TIMEOUT", "RETRIES", "FIND_LINKS"]
]


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


def test_each_setting_of_pip_that_a_build_is_given_is_declared_where_pip_runs():
    told = pip_settings(dict.fromkeys(PIP, "http://x"))
    stage = image.context()["Dockerfile"].decode().partition("AS tools")[2].partition("\nFROM ")[0]
    assert told.keys() == {line.split()[1] for line in stage.splitlines() if line.startswith("ARG PIP_")}
