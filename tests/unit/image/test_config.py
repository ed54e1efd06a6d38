"""Test how toolkit reads an image's configuration and Apptainer's files about it."""

import json

import pytest

from tests.unit.image.archives import docker_archive, tar
from tests.unit.image.sifs import elf, sandbox
from tests.unit.image.test_inspect import BASE
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.image.files.config import ImageConfig, architecture, read_config, settings, started_command
from toolkit.image.files.folder import FolderTree
from toolkit.image.inspect import inspect

DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def test_a_configuration_is_read():
    process = {
        "Env": ["A=1=2", "B", "=x"],
        "Entrypoint": ["/a"],
        "Cmd": ["b"],
        "Labels": {"t": None, "u": "v"},
    }
    said = {"architecture": "arm64", "config": process, "rootfs": {"diff_ids": ["sha256:1"]}}
    config, inner = read_config(json.dumps(said).encode(), "x")
    assert config.env == {"A": "1=2", "B": ""}
    assert (config.entrypoint, config.command, config.architecture) == (("/a",), ("b",), "aarch64")
    assert (config.labels, inner) == ({"t": "", "u": "v"}, ("sha256:1",))


def test_a_configuration_that_says_little_is_read():
    config, inner = read_config(b'{"config": null, "rootfs": {"diff_ids": null}}', "x")
    assert (config.env, config.entrypoint, config.architecture, inner) == ({}, (), None, ())
    assert read_config(b'{"config": {"Entrypoint": "run me"}}', "x")[0].entrypoint == (
        "/bin/sh",
        "-c",
        "run me",
    )


@every_row("content", [b"", b"[]", b"\xff", b'{"config": 3}', b'{"config": {"Env": "A=1"}}'])
def test_a_configuration_of_another_shape_is_damage(content):
    with pytest.raises(CheckFailed, match="x: the configuration of the image cannot be read"):
        read_config(content, "x")


def test_architectures_have_the_names_of_the_kernel():
    assert [architecture(n) for n in ("amd64", "386", "arm64", "ppc64le")] == [
        "x86_64",
        "i386",
        "aarch64",
        "ppc64le",
    ]


def test_scripts_of_apptainer_stand_above_the_configuration():
    config = ImageConfig(env={"PATH": "/opt/bin:/bin", "A": "1", "B": "1"})
    scripts = {"PATH": f"/venv/bin:{DEFAULT}", "B": "2"}
    assert settings(config, scripts) == {"PATH": "/venv/bin:/opt/bin:/bin", "A": "1", "B": "2"}
    assert settings(config, {"PATH": "/only"})["PATH"] == "/only"
    assert settings(ImageConfig(), {"PATH": DEFAULT}) == {"PATH": DEFAULT}
    assert settings(None, {"PATH": DEFAULT}) == {"PATH": DEFAULT}


@every_row(
    ("script", "words"),
    [
        ('#!/bin/sh\nexec python train.py "$@"\n', ("/.singularity.d/runscript",)),
        ('OCI_ENTRYPOINT=\'"/bin/sh" "-c" "a b"\'\nOCI_CMD=\'"x"\'\n', ("/bin/sh", "-c", "a b", "x")),
        ("OCI_ENTRYPOINT=''\nOCI_CMD='\"/bin/bash\"'\n", ("/bin/bash",)),
        ("OCI_ENTRYPOINT='\"no end'\n", ("/.singularity.d/runscript",)),
    ],
)
def test_what_a_sif_starts_is_read_from_its_runscript(tmp_path, script, words):
    tree = FolderTree(sandbox(tmp_path, {"/.singularity.d/runscript": script}))
    assert started_command(tree, None)[0] == words


def test_what_starts_nothing_says_so(tmp_path):
    facts = inspect(sandbox(tmp_path / "image", BASE))
    assert facts.entrypoint is None
    assert facts.absent["entrypoint"] == "/.singularity.d/runscript: not in the image"
    (tmp_path / "x.tar").write_bytes(tar(docker_archive([tar({"usr/bin/env": elf()})])))
    facts = inspect(tmp_path / "x.tar")
    assert facts.entrypoint is None
    assert facts.absent["entrypoint"] == "the image's configuration: Entrypoint and Cmd"
    assert facts.cite("architecture") == "the image's configuration: x86_64"
