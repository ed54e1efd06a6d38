"""Test how toolkit parses the name of an image."""

from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.image.files.reference import refer, sif_command
from toolkit.model.facts import ImageFacts


@every_row(
    ("text", "transport", "path", "tag"),
    [
        ("a.sif", None, "a.sif", ""),
        ("a:b", None, "a:b", ""),
        ("oci:folder", "oci", "folder", ""),
        ("oci:folder:tag", "oci", "folder", "tag"),
        ("oci:a:b:tag", "oci", "a:b", "tag"),
        ("oci-archive:a.sif:docker.io/x/y:1", "oci-archive", "a.sif", "docker.io/x/y:1"),
        ("docker-archive://a.sif", "docker-archive", "a.sif", ""),
        ("docker-daemon:x/y:1", "docker-daemon", ".", "x/y:1"),
        ("docker-daemon://x", "docker-daemon", ".", "x"),
        ("x/y:1", "docker-daemon", ".", "x/y:1"),
        ("host.example:5000/x/y:1.2", "docker-daemon", ".", "host.example:5000/x/y:1.2"),
        (f"x@sha256:{'0' * 64}", "docker-daemon", ".", f"x@sha256:{'0' * 64}"),
    ],
)
def test_paths_transports_and_names_are_told_apart(tmp_path, monkeypatch, text, transport, path, tag):
    monkeypatch.chdir(tmp_path)
    for name in ("a.sif", "a:b", "folder"):
        Path(name).touch()
    found = refer(text)
    assert (found.transport, str(found.path), found.tag) == (transport, path, tag)


@every_row(
    ("text", "why"),
    [
        ("nothing.sif", "nothing.sif: No such file"),
        ("/no/where:1", "No such file"),
        ("x", "No such file"),
        ("", "No such file"),
        ("n" * 5000, "No such file"),
        ("oci:", "the name or path after `oci:` is missing"),
        ("oci:nowhere:1", "no such file or folder"),
        ("docker://x:1", "this image is not on this machine"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path, monkeypatch, text, why):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=why):
        refer(text)


@every_row(
    ("text", "fetch"),
    [
        ("docker://h/x:1", "`toolkit image pull docker://h/x:1 -o FILE`"),
        ("oras://h/x:1", "`toolkit image pull oras://h/x:1 -o FILE`"),
        ("https://foo/bar.sif", "`curl -LO https://foo/bar.sif`"),
        ("http://foo/a?b=c&d", "`curl -LO 'http://foo/a?b=c&d'`"),
        ("library://u/c/x:1", "`apptainer pull FILE library://u/c/x:1`"),
    ],
)
def test_what_is_elsewhere_is_told_with_the_command_that_brings_it(text, fetch):
    with pytest.raises(BadInput, match="this image is not on this machine") as caught:
        refer(text)
    assert caught.value.fix == f"download the image first: {fetch}"


@every_row(
    ("path", "form", "command"),
    [
        ("d/x.tar.gz", "docker-archive", "apptainer build x.sif docker-archive:d/x.tar.gz"),
        ("oci-archive:x.tar:1", "oci-archive", "apptainer build 1.sif oci-archive:x.tar:1"),
        ("layout/", "oci-layout", "apptainer build layout.sif oci:layout/"),
        ("docker-daemon:a/b:latest", "docker-daemon", "toolkit image sif docker-daemon:a/b:latest"),
        ("/tmp/box", "sandbox", "apptainer build box.sif /tmp/box"),
    ],
)
def test_the_command_that_makes_a_sif(path, form, command):
    assert sif_command(ImageFacts(path=path, format=form)) == command
