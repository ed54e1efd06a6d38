"""Test reading compressed bytes in any order, with limited memory."""

import gzip
import random

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.image.archives import PACK
from tests.unit.image.test_tar import Memory
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.files import marks
from toolkit.image.files.bounded import Budget
from toolkit.image.files.inflate import inflate
from toolkit.image.files.source import HashingSource, SourceRange

DATA = random.Random(7).randbytes(40_000) * 3 + bytes(500_000) + random.Random(8).randbytes(300_000)
PACKED = {
    "gzip": gzip.compress(DATA),
    "members": gzip.compress(DATA[:1000]) + gzip.compress(b"") + gzip.compress(DATA[1000:]) + bytes(512),
    "zstd": PACK["zstd"](DATA),
    "frames": PACK["zstd"](DATA[:1000]) + b"\x50\x2a\x4d\x18\x04\0\0\0skip" + PACK["zstd"](DATA[1000:]),
}


def opened(data: bytes, budget: Budget | None = None):
    found = inflate(Memory(data), "x", budget or Budget("x"))
    assert found is not None
    return found


@settings(max_examples=count(20, 60), deadline=None)
@given(
    st.sampled_from(sorted(PACKED)),
    st.lists(st.tuples(st.integers(0, len(DATA) + 10), st.integers(0, 70_000)), max_size=8),
)
def test_what_is_read_is_what_was_packed(kind, reads):
    source = opened(PACKED[kind])
    for offset, length in reads:
        assert source.read_at(offset, length) == DATA[offset : offset + length]


def test_going_back_in_gzip_begins_at_a_mark(monkeypatch):
    monkeypatch.setattr(marks, "_APART", 1 << 18)
    monkeypatch.setattr(marks, "_MOST", 4)
    data = random.Random(9).randbytes(4 << 20)
    stored = Memory(gzip.compress(data, 1))
    source = inflate(stored, "x", Budget("x"))
    assert source.read_at(len(data) - 5, 5) == data[-5:]
    assert len(source._marks) <= 5
    for offset in (3 << 20, 100, 1 << 20, (4 << 20) - 100):
        assert source.read_at(offset, 50) == data[offset : offset + 50]


def test_all_gzip_streams_of_an_image_share_one_number_of_marks(monkeypatch):
    monkeypatch.setattr(marks, "_APART", 1 << 18)
    monkeypatch.setattr(marks, "_MOST", 8)
    data, budget = random.Random(9).randbytes(1 << 20), Budget("x")
    sources = [inflate(Memory(gzip.compress(data, 1)), "x", budget) for _ in range(9)]
    for source in sources:
        assert source.read_at(len(data) - 5, 5) == data[-5:]
    assert sum(len(source._marks) - 1 for source in sources) <= 8
    for source in sources:
        assert source.read_at(1 << 18, 50) == data[1 << 18 : (1 << 18) + 50]


@every_row("kind", ["gzip", "members"])
def test_gzip_that_is_cut_short_is_damage(kind):
    with pytest.raises(CheckFailed, match="incomplete"):
        opened(PACKED[kind][: len(PACKED[kind]) // 2]).read_at(0, len(DATA))


@every_row("kind", sorted(PACKED))
def test_a_flipped_byte_is_damage(kind):
    data = bytearray(PACKED[kind])
    data[6:40] = b"\xff" * 34
    with pytest.raises(CheckFailed, match="decompression fails"):
        opened(bytes(data)).read_at(0, len(DATA))


@every_row("kind", ["gzip", "zstd"])
def test_a_bomb_is_given_up(kind):
    budget = Budget("x")
    budget._inflated = 1 << 20
    with pytest.raises(CheckFailed, match="decompresses to far more than its size"):
        opened(PACK[kind](bytes(8 << 20)), budget).read_at(6 << 20, 10)


def test_a_window_larger_than_memory_should_hold_is_refused():
    params = zstandard.ZstdCompressionParameters.from_level(3, window_log=28, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=params).compressobj(size=300 << 20)
    data = packer.compress(b"x") + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    with pytest.raises(CheckFailed, match="decompression fails"):
        opened(data).read_at(0, 10)


@every_row("head", [b"BZh9", b"\xfd7zXZ\0", b"\x04\x22\x4d\x18"])
def test_other_compressions_are_named(head):
    with pytest.raises(BadInput, match=r"compressed with (bzip2|xz|lz4)"):
        inflate(Memory(head + b"rest"), "x", Budget("x"))


def test_what_is_not_compressed_is_told():
    assert inflate(Memory(b"plain text"), "x", Budget("x")) is None


def test_a_digest_is_taken_of_what_is_read_anyway():
    import hashlib

    stored = Memory(PACKED["gzip"])
    digest = f"sha256:{hashlib.sha256(PACKED['gzip']).hexdigest()}"
    hashed = HashingSource(SourceRange(stored, 0, len(stored.data)), digest, "x")
    assert inflate(hashed, "x", Budget("x")).read_at(0, len(DATA)) == DATA
    hashed.check()
    other = HashingSource(Memory(PACKED["gzip"] + b"!"), digest, "x")
    with pytest.raises(CheckFailed, match="not match its digest in the image"):
        other.check()
