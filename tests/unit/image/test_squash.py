"""Test reading a squashfs without a mount: each compression, and damaged files."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.image.sifs import DATA
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.files import tree as files
from toolkit.image.files.sif.squash import SquashTree

BIG = b"0123456789abcdef" * 10240 + bytes(262144)
KINDS = ("gzip", "xz", "lz4", "zstd")


def opened(name: str) -> SquashTree:
    return SquashTree(io.BytesIO((DATA / f"tiny.{name}").read_bytes()), 0, f"tiny.{name}")


@every_row("kind", KINDS)
def test_files_are_read_whole(kind):
    tree = opened(kind)
    assert tree.content("/small") == b"hello\n"
    assert tree.content("/empty") == b""
    big = tree.content("/big")
    assert big.startswith(BIG)
    assert big.endswith(b"end")
    assert len(big) == len(BIG) + 3003


@every_row("kind", KINDS)
def test_a_limit_is_kept(kind):
    assert opened(kind).content("/big", 100) == BIG[:100]


def test_folders_and_links_are_told_apart():
    tree = opened("zstd")
    assert tree.kind("/usr/lib") == "folder"
    assert tree.kind("/lib") == "link"
    assert tree.target("/lib") == "usr/lib"
    assert tree.kind("/nothing") is None
    assert tree.kind("/small/below") is None
    assert set(tree.names("/")) == {"big", "empty", "etc", "lib", "loop1", "loop2", "opt", "small", "usr"}


def test_links_are_followed_inside_the_image_only():
    tree = opened("zstd")
    assert files.resolve(tree, "/lib/os-release") == "/etc/os-release"
    assert files.resolve(tree, "/opt/up") == "/etc/os-release"
    assert files.resolve(tree, "/loop1") is None


def test_a_compression_that_is_not_supported_is_named():
    with pytest.raises(BadInput, match="lzo"):
        opened("lzo")


@every_row("length", [0, 10, 95, 96, 200, 1000, 3000])
def test_a_cut_image_is_an_error_in_one_line(length):
    data = (DATA / "tiny.zstd").read_bytes()[:length]
    with pytest.raises(CheckFailed, match="damaged"):
        SquashTree(io.BytesIO(data), 0, "cut").names("/")


FLIPS = st.lists(
    st.tuples(st.integers(0, 399) | st.integers(0, 8191), st.integers(0, 255)), min_size=1, max_size=6
)


@settings(max_examples=count(100, 400), deadline=None)
@given(FLIPS, st.sampled_from(KINDS))
def test_damage_gives_an_answer_or_an_error_of_ours(flips, kind):
    data = bytearray((DATA / f"tiny.{kind}").read_bytes())
    for position, byte in flips:
        data[position % len(data)] = byte
    try:
        tree = SquashTree(io.BytesIO(bytes(data)), 0, "damaged")
        for path in ("/big", "/small", "/lib/os-release", "/usr"):
            real = files.resolve(tree, path)
            if real:
                assert len(tree.content(real)) <= files.MAX_READ
    except (CheckFailed, BadInput):
        pass
