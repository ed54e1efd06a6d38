"""Test the build context of the image of cluster nodes."""

import re

from toolkit.cluster import image
from toolkit.run.docker.surroundings import pip_settings

PIP = [
    f"PIP_{what}"
    for what in ["INDEX_URL", "EXTRA_INDEX_URL", "TRUSTED_HOST", "DEFAULT_TIMEOUT", "RETRIES", "FIND_LINKS"]
]


def test_nodes_get_what_toolkit_needs_to_run_with_hashes():
    files = image.context()
    needed = files["requirements.txt"].decode()
    names = set(re.findall(r"^([a-z0-9-]+)==", needed, re.MULTILINE))
    assert {"click", "jinja2", "msgspec"} <= names
    assert not {"tensorflow", "pytest", "matplotlib"} & names
    assert b"--require-hashes -r /tmp/requirements.txt" in files["Dockerfile"]


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
