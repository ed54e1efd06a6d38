"""Test that an image has the same facts in all three formats: SIF, Docker engine and docker-save archive."""

import gzip
import json
import shutil

import msgspec
import pytest

from tests.services.program import toolkit
from tests.services.ready import RECIPE
from toolkit.image.inspect import inspect
from toolkit.run.docker.engine import stream_archive

TAG = f"toolkit/{RECIPE}:latest"


def same(facts) -> dict:
    """Return the facts that must be equal in all formats; Apptainer adds labels and scripts to a SIF."""
    told = msgspec.to_builtins(facts)
    of_the_form = ("path", "format", "digest", "compression", "labels", "driver_searched")
    for name in (*of_the_form, "evidence", "absent", "unknown"):
        told.pop(name)
    return told


def test_a_sif_and_the_image_that_it_was_made_of_give_the_same_facts(training_sif, engine, tmp_path):
    expected = inspect(training_sif)
    facts = inspect(f"docker-daemon:{TAG}")
    assert facts.digest == engine.images.get(TAG).id
    assert same(facts) == same(expected)
    archive = tmp_path / "image.tar"
    with archive.open("wb") as file:
        for chunk in stream_archive(engine, TAG):
            file.write(chunk)
    assert same(inspect(archive)) == same(expected)
    with archive.open("rb") as plain, gzip.open(tmp_path / "image.tar.gz", "wb", compresslevel=1) as packed:
        shutil.copyfileobj(plain, packed, 1 << 20)
    assert same(inspect(tmp_path / "image.tar.gz")) == same(expected)


@pytest.mark.usefixtures("training_sif")
def test_the_command_reads_the_engine_and_names_what_is_near(tmp_path, monkeypatch):
    shown = json.loads(toolkit("image", "inspect", TAG, "--json").stdout)
    assert shown["format"] == "docker-daemon"
    done = toolkit("image", "inspect", TAG[:-1], ok=False)
    assert done.returncode == 2
    assert TAG in done.stderr
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert toolkit("image", "inspect", TAG, ok=False).returncode == 3
