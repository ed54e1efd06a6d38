"""Test an image that toolkit did not build: describe it from a registry, and add the trainers to it."""

import io
import json
import tarfile
import uuid

import pytest

from tests.services.program import toolkit
from tests.services.registry import Registry
from toolkit.model.progress import Silent
from toolkit.run.docker.base import ensure_base
from toolkit.run.docker.containers import Box, run_once
from toolkit.run.docker.engine import BuildOptions, build_image, tag_image


@pytest.fixture(scope="module")
def theirs(engine):
    name = f"toolkit-test-theirs:{uuid.uuid4().hex[:8]}"
    base = ensure_base(engine, "bookworm", "debian:bookworm-slim", Silent()).reference
    # This fake Python only prints its environment and arguments, which shows what toolkit runs.
    python = b'#!/bin/sh\necho "$PYTHONPATH: $*"\n'
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("python3")
        entry.size, entry.mode = len(python), 0o755
        tar.addfile(entry, io.BytesIO(python))
    text = f"FROM {base}\nADD it.tar /usr/local/bin/\nENV PYTHONPATH=/theirs\nUSER nobody\n"
    files = {"Dockerfile": text.encode(), "it.tar": packed.getvalue()}
    tag_image(engine, build_image(engine, files, name, Silent(), BuildOptions(network="none")), name)
    yield name
    engine.api.remove_image(name)


def test_an_image_of_a_registry_is_described_and_layered(engine, theirs, tmp_path):
    registry = Registry(tmp_path / "registry", tls=False)
    registry.start()
    tag = f"toolkit-test-layered:{uuid.uuid4().hex[:8]}"
    try:
        name = f"docker://{registry.host}/ml/theirs:1"
        toolkit("image", "push", f"docker-daemon:{theirs}", name)
        words = ("image", "adopt", name, "-o", str(tmp_path / "out"), "--layer", "--tag", tag, "--json")
        found = json.loads(toolkit(*words).stdout)
    finally:
        registry.stop()
    try:
        assert found["distribution"] == "debian 12 (bookworm)"
        assert {"no-mpi", "no-trainers"} <= {lack["id"] for lack in found["lacks"]}
        assert {"kind": "debian", "name": "bash"}.items() <= next(
            p for p in found["packages"] if p["name"] == "bash"
        ).items()
        assert json.loads((tmp_path / "out" / "adopted.json").read_text())["image"] == name
        assert "which toolkit did not build" in (tmp_path / "out" / "theirs-1.toml").read_text()
        config = engine.images.get(tag).attrs["Config"]
        assert config["User"] == "nobody"
        assert found["layered"]["base"] == engine.images.get(theirs).id
        ran = run_once(
            engine, Box(tag), ("sh", "-c", "python x; ls /opt/toolkit/lib/toolkit/trainers/mnist.py")
        )
        assert ran.lines == ("/opt/toolkit/lib:/theirs: x", "/opt/toolkit/lib/toolkit/trainers/mnist.py")
    finally:
        engine.api.remove_image(tag)
        # Remove only this name; the engine keeps the base image under its own name.
        engine.api.remove_image(name.removeprefix("docker://"), noprune=True)
