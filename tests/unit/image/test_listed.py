"""Test the bill of materials that toolkit makes for an image without one."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.image.sifs import elf, sandbox
from tests.unit.schemas import bom_faults
from toolkit.cli.image import command

STATUS = "Package: dash\nStatus: install ok installed\nVersion: 0.5.12-2+b1\n\n"
OPEN_MPI = b"Open MPI v4.1.4, package: Debian OpenMPI\0 4.1.4 \0PMIX_RANK\0"


def sbom(image: Path) -> bytes:
    done = CliRunner().invoke(command, ["sbom", str(image)], obj={"verbose": False, "quiet": True})
    assert done.exit_code == 0, done.exception
    return done.stdout_bytes


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return sandbox(
        tmp_path / "image",
        {
            "/etc/os-release": 'ID=debian\nVERSION_ID="12"\n',
            "/var/lib/dpkg/status": STATUS,
            "/usr/local/lib/python3.11/dist-packages/absl_py-2.0.dist-info/METADATA": "Name: absl-py\n",
            "/usr/local/lib/python3.11/dist-packages/odd.dist-info/METADATA": "",
            "/usr/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OPEN_MPI),
            "/var/lib/rpm/rpmdb.sqlite": b"",
        },
    )


def test_lists_and_what_they_do_not_know_are_in_it_with_their_evidence(image: Path):
    found = {item["purl"]: item for item in json.loads(sbom(image))["components"] if "purl" in item}
    assert "pkg:deb/debian/dash@0.5.12-2%2Bb1?distro=debian-12" in found
    assert "pkg:pypi/absl-py@2.0" in found
    evidence = found["pkg:generic/openmpi@4.1.4"]["properties"]
    assert evidence == [{"name": "toolkit:evidence", "value": "/usr/lib/libmpi.so.40"}]
    assert not any("odd" in purl for purl in found)


def test_it_is_valid_and_the_same_each_time(image: Path):
    assert bom_faults(sbom(image)) is None
    assert sbom(image) == sbom(image)


def test_what_was_not_read_is_said(image: Path):
    told = json.loads(sbom(image))["metadata"]["component"]["properties"]
    assert told == [{"name": "toolkit:not-read", "value": "packages of RPM"}]


def test_the_one_that_an_image_brings_is_printed_as_it_is(image: Path):
    sandbox(image, {"/opt/toolkit/sbom.cdx.json": '{"own": 1}\n'})
    assert sbom(image) == b'{"own": 1}\n'


def test_the_entry_of_toolkit_names_its_licence(image: Path):
    (tool,) = json.loads(sbom(image))["metadata"]["tools"]["components"]
    assert tool["licenses"] == [{"license": {"id": "Apache-2.0"}}]
