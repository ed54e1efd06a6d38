"""Test that decompression stops at the requested number of bytes, whatever size a block states."""

import lzma
import os
import struct
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
import zstandard

from tests.measured import measured
from tests.unit.image import bombs
from tests.unit.image.sifs import elf, sif
from tests.unit.tables import every_row
from toolkit.errors import Damaged
from toolkit.image.files.sif.expand import CODECS, expand
from toolkit.image.inspect import inspect

CONTENT = b"0123456789abcdef" * 256
PACKED = {
    "gzip": zlib.compress(CONTENT),
    "xz": lzma.compress(CONTENT),
    "zstd": zstandard.ZstdCompressor().compress(CONTENT),
    "lz4": b"\xff" + b"\xf1" + CONTENT[:256] + b"\x10\0" + b"\xff" * 14 + b"\xf6" + b"\x50" + CONTENT[-5:],
}


@every_row("codec", sorted(CODECS))
def test_a_block_expands_to_what_was_packed(codec):
    assert expand(codec, PACKED[codec], 4096) == CONTENT
    with pytest.raises(ValueError, match=r"more than 4095|exceeds the block"):
        expand(codec, PACKED[codec], 4095)


@every_row("codec", sorted(CODECS))
def test_a_block_that_is_cut_short_is_refused(codec):
    with pytest.raises(ValueError, match=r"incomplete|exceeds|truncated"):
        expand(codec, PACKED[codec][: len(PACKED[codec]) // 2], 4096)


@every_row("codec", sorted(bombs.FRAMES))
def test_a_lying_frame_takes_no_more_memory_than_is_asked_for(codec):
    frame = bombs.FRAMES[codec](64 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"more than|exceeds"):
            expand(codec, frame, 8192)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_dictionary_of_xz_larger_than_a_block_can_use_is_refused():
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 128 << 20}]
    with pytest.raises(ValueError, match=r"[Mm]emory"):
        expand("xz", lzma.compress(CONTENT, filters=filters), 4096)


@every_row("codec", sorted(bombs.FRAMES))
@every_row("place", ["data", "metadata"])
def test_a_squashfs_with_a_lying_block_is_damaged(tmp_path, codec, place):
    file = tmp_path / "bomb.sif"
    file.write_bytes(sif(bombs.squashfs({"usr/bin/env": elf()}, codec, 64 << 20, place)))
    with pytest.raises(Damaged, match="damaged"):
        inspect(file)


def peak(tmp_path: Path, file: Path) -> int:
    """Return the peak memory of ``toolkit image inspect`` in bytes."""
    words = [sys.executable, "-m", "toolkit", "image", "inspect", str(file)]
    took = measured(words, most=1500 << 20, env={**os.environ, "HOME": str(tmp_path)})
    assert took.code in {0, 2}
    return took.peak


@every_row(("codec", "size"), [("zstd", 700 << 20), ("lz4", 300 << 20), ("lz4", 30 << 20)])
def test_inspecting_a_bomb_takes_less_than_400_mb(tmp_path, codec, size):
    """The lz4 block that expands to 300 MiB is longer than squashfs allows."""
    file = tmp_path / "bomb.sif"
    file.write_bytes(sif(bombs.squashfs({"usr/bin/env": elf()}, codec, size, "data")))
    assert peak(tmp_path, file) < 400 << 20


def test_empty_blocks_of_a_frame_do_not_keep_it_busy():
    empty = struct.pack("<I", 0)[:3]
    head = zstandard.ZstdCompressor(write_content_size=False).compress(b"")[:6]
    assert expand("zstd", head + empty * 40_000 + b"\x01\0\0", 8192) == b""
