"""Test both readers of a SIF: ``read_table`` lists its objects, ``read_sif`` finds its root file system."""

import io
import struct
from pathlib import Path

import pytest

from tests.unit.image.sifs import sif
from tests.unit.tables import every_row
from toolkit.errors import BadInput, Damaged
from toolkit.image.files.sif.siffile import read_sif
from toolkit.image.files.sif.sifobjects import read_table

PATH = Path("image.sif")
WHOLE = sif(b"hsqs" + bytes(96))
TABLE, OBJECT = 128, 128 + 585
PLACE, SIZE = 17, 25
"""Positions of two fields in a descriptor: the object's offset and the object's size."""


def patched(at: int, number: int, code: str = "<q") -> bytes:
    found = bytearray(WHOLE)
    struct.pack_into(code, found, at, number)
    return bytes(found)


def of_two(number: int) -> bytes:
    """Return a SIF with two descriptors of the same object; the second has the ID ``number``."""
    second = bytearray(WHOLE[TABLE:OBJECT])
    struct.pack_into("<I", second, 5, number)
    struct.pack_into("<q", second, PLACE, OBJECT + 585)
    first = bytearray(patched(88, 2))
    struct.pack_into("<q", first, TABLE + PLACE, OBJECT + 585)
    return bytes(first[:OBJECT]) + bytes(second) + WHOLE[OBJECT:]


@every_row(
    ("raw", "why"),
    [
        (b"", "not a SIF"),
        (b"x" * 4096, "not a SIF"),
        (patched(32, 0), "not a SIF"),
        (WHOLE[:100], "incomplete: its header ends at byte 128, but the file has 100"),
        (WHOLE[:500], "incomplete: its descriptor table ends at byte 713, but the file has 500"),
        (WHOLE[:-1], r"incomplete: object 1 \(system\) ends at byte 813, but the file has 812"),
        (patched(88, 0), "damaged: its header has impossible values"),
        (patched(88, 1025), "damaged: its header has impossible values"),
        (patched(96, 64), "damaged: its header has impossible values"),
        (patched(96, -1), "damaged: its header has impossible values"),
        (patched(96, 2**62), "incomplete: its descriptor table ends"),
        (patched(TABLE + PLACE, 64), r"damaged: object 1 \(system\) has an impossible offset or size"),
        (patched(TABLE + PLACE, -1), "damaged: object 1"),
        (patched(TABLE + PLACE, 2**63 - 1), r"incomplete: object 1 \(system\) ends"),
        (patched(TABLE + SIZE, -1), "damaged: object 1"),
        (of_two(1), "damaged: two objects have the same number"),
    ],
)
def test_what_one_reader_refuses_the_other_does_too(raw: bytes, why: str):
    for read in (read_table, read_sif):
        with pytest.raises((BadInput, Damaged), match=why) as told:
            read(io.BytesIO(raw), PATH)
        assert told.value.fix
        assert told.value.code == 2


def test_a_whole_one_is_read_by_both():
    for raw, count in ((WHOLE, 1), (of_two(2), 2)):
        assert len(read_table(io.BytesIO(raw), PATH).used) == count
        found = read_sif(io.BytesIO(raw), PATH)
        assert found.architecture == "x86_64"
        assert raw[found.root.offset :][: found.root.size] == WHOLE[OBJECT:]


def test_one_that_cannot_be_started_still_has_a_table():
    raw = sif(b"data", part=3)
    assert len(read_table(io.BytesIO(raw), PATH).used) == 1
    with pytest.raises(BadInput, match="no squashfs partition"):
        read_sif(io.BytesIO(raw), PATH)
