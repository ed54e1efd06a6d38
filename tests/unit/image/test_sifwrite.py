"""Test that toolkit's SIF reader reads the header that toolkit's SIF writer makes."""

import hashlib

import pytest

from tests.unit.image.sifs import squashfs
from toolkit.errors import BadInput
from toolkit.image.files.sif.siffile import read_sif
from toolkit.image.files.sif.sifobjects import content, read_table
from toolkit.image.sifs.sifwrite import metadata_objects, partition_offset, write_head

OBJECTS = metadata_objects("bootstrap: docker-daemon\n", b'{"labels": 1}', b"{}")


def written(path, content=b"", objects=OBJECTS, epoch=1000):
    packed = squashfs({"/bin/sh": b"shell"}) + content
    path.write_bytes(bytes(partition_offset(objects)) + packed)
    write_head(path, objects, "arm64", epoch)
    return packed


def test_what_is_written_is_read_back(tmp_path):
    packed = written(tmp_path / "a.sif")
    with (tmp_path / "a.sif").open("rb") as file:
        found = read_sif(file, tmp_path / "a.sif")
        file.seek(found.root.offset)
        assert file.read(found.root.size) == packed
        assert found.architecture == "aarch64"
        for thing, descriptor in zip(OBJECTS, found.table.used, strict=False):
            assert content(file, descriptor, 99) == thing.content
            assert descriptor.name.rstrip(b"\0") == thing.name.encode()
    assert found.root.offset % 4096 == 0
    assert len(found.table.used) == 4


def test_it_starts_as_a_program_of_the_runtime_and_counts_its_slots(tmp_path):
    written(tmp_path / "a.sif")
    assert (
        (tmp_path / "a.sif")
        .read_bytes()
        .startswith(b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\x0001\x0004\0")
    )
    with (tmp_path / "a.sif").open("rb") as file:
        header = read_table(file, tmp_path / "a.sif").header
    assert (header.total, header.free, header.created, header.modified) == (48, 44, 1000, 1000)
    assert header.data + header.data_size == (tmp_path / "a.sif").stat().st_size


def test_equal_content_gives_equal_bytes_and_another_gives_another_identity(tmp_path):
    digests, identities = [], []
    for name, more in (("a", b""), ("b", b""), ("c", b"x")):
        written(tmp_path / name, more)
        digests.append(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
        identities.append((tmp_path / name).read_bytes()[48:64])
    assert digests[0] == digests[1] != digests[2]
    assert identities[0] == identities[1] != identities[2]


def test_an_architecture_that_a_sif_has_no_number_for_is_refused(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(bytes(1 << 17))
    with pytest.raises(BadInput, match="convert an image for loong64 to a SIF"):
        write_head(file, OBJECTS, "loong64", 0)
