"""Test that two builds of an image from nothing give the same files, byte for byte."""

import hashlib
import tarfile

from toolkit.image.builds.build import build
from toolkit.image.locks import recipe
from toolkit.model.progress import Silent
from toolkit.run.docker.copy_out import ChunkReader

SMALL = "mpi-only"

GIVEN = {"dev", "proc", "sys", ".dockerenv", "etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/mtab"}
"""Paths that the Docker engine adds to every container."""


def tree(engine, image):
    made = engine.api.create_container(image, ["true"], entrypoint=[], labels={"toolkit": "run"})["Id"]
    found = {}
    try:
        stream = ChunkReader(iter(engine.api.export(made, chunk_size=1 << 20)))
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for entry in tar:
                content = tar.extractfile(entry) if entry.isreg() else None
                digest = hashlib.file_digest(content, "sha256").hexdigest() if content else entry.linkname
                found[entry.name.rstrip("/")] = (entry.type, entry.mode, entry.uid, entry.gid, digest)
    finally:
        engine.api.remove_container(made, force=True)
    return {name: what for name, what in found.items() if not GIVEN & {name, name.partition("/")[0]}}


def test_two_builds_from_nothing_give_the_same_files(engine, locked):
    named, lock = recipe.load(SMALL), locked(SMALL)
    build(engine, named, lock, Silent())
    first = tree(engine, named.tag)
    again = build(engine, named, lock, Silent(), fresh=True)
    second = tree(engine, named.tag)
    assert not again.reused
    assert len(second) > 2000
    assert {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)} == set()
