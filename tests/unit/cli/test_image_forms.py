"""Test images in other formats than SIF: doctor reads them, and launch prints the command that converts
them.
"""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.cli.test_doctor import CLUSTER
from tests.unit.image.archives import docker_archive, oci_layout, tar, written
from tests.unit.image.test_formats import PROCESS, layers
from tests.unit.tables import every_row
from toolkit.cli.doctor.command import command as doctor
from toolkit.cli.image import command as image
from toolkit.cli.image import sif
from toolkit.errors import BadInput
from toolkit.job.request.locations import find_image

OBJ = {"verbose": False, "quiet": True}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    file = tmp_path / "my.tar"
    file.write_bytes(tar(docker_archive(layers(), Env=["PATH=/usr/bin"])))
    return file


def test_doctor_judges_an_archive_and_tells_how_it_becomes_a_sif(archive):
    for text in (str(archive), f"docker-archive:{archive}"):
        result = CliRunner().invoke(doctor, [text, "--facts", CLUSTER], obj=OBJ)
        assert result.exit_code == 0
        pasted = " ".join(result.stdout.replace("\\\n", "").split())
        assert f"apptainer build my.sif docker-archive:{archive} my.tar on " in pasted


def test_inspect_prints_the_facts_of_a_layout(tmp_path):
    layout = written(tmp_path / "layout", oci_layout(layers(), **PROCESS))
    asked = ["inspect", f"oci:{layout}:1", "--platform", "linux/amd64", "--json"]
    shown = json.loads(CliRunner().invoke(image, asked, obj=OBJ, catch_exceptions=False).stdout)
    assert (shown["format"], shown["path"]) == ("oci-layout", f"oci:{layout}:1")
    refused = CliRunner().invoke(image, [*asked[:2], "--platform", "linux/arm64"], obj=OBJ).exception
    assert isinstance(refused, BadInput)


def test_a_sif_of_an_engine_is_made_without_apptainer():
    with pytest.raises(BadInput) as caught:
        find_image("docker-daemon:a:1")
    assert caught.value.fix == "make a SIF: `toolkit image sif docker-daemon:a:1`"


@every_row("text", ["oci:folder", "docker-archive:x.tar"])
def test_launch_says_that_a_job_starts_from_a_sif(text):
    with pytest.raises(BadInput, match=f"--image {text}: not a file; toolkit launch needs a SIF") as caught:
        find_image(text)
    assert caught.value.fix == f"make a SIF: `apptainer build my.sif {text}`"


def test_launch_refuses_an_archive_before_it_asks_the_cluster(archive, tmp_path, monkeypatch):
    from toolkit.cli.main import main

    assert shutil.which("srun") is None
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["toolkit", "launch", "--image", str(archive), "--", "true"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2


@every_row(
    ("given", "name", "tag"),
    [
        ("tf2.15-cpu", "tf2.15-cpu", "toolkit/tf2.15-cpu:latest"),
        ("toolkit/tf2.15-cpu:latest", "tf2.15-cpu", "toolkit/tf2.15-cpu:latest"),
        ("docker-daemon:some/image:1.2", "image-1.2", "some/image:1.2"),
    ],
)
def test_a_sif_is_made_of_a_recipe_or_of_an_image_in_the_engine(given, name, tag):
    assert sif.image_name(given) == (name, tag)


@every_row("given", ["docker://some/image:1.2", "some/where.tar:x y", "no/such.toml"])
def test_a_sif_of_anything_else_is_refused(given):
    with pytest.raises(BadInput):
        sif.image_name(given)
