"""Test that toolkit reads parts of files correctly, and reads no more than it needs."""

import io

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.image.sifs import DATA, sandbox, squashfs
from tests.unit.tables import every_row
from toolkit.image.files.bounded import BoundedTree, Budget
from toolkit.image.files.folder import FolderTree
from toolkit.image.files.pages import Pages
from toolkit.image.files.sif.expand import expand
from toolkit.image.files.sif.squash import SquashTree
from toolkit.image.loader.loader import Loader

CONTENT = bytes(n * n % 251 for n in range(400_000))
PLACES = ((0, 10), (0, 400_000), (131_070, 4), (131_072, 131_072), (399_990, 100), (400_000, 1), (262_143, 2))


@every_row(("at", "size"), PLACES)
def test_a_page_is_read_for_what_is_looked_at(at, size):
    asked = []

    def read(offset, length):
        asked.append(offset)
        return CONTENT[offset : offset + length]

    pages = Pages(read)
    assert pages.take(at, size) == CONTENT[at : at + size]
    assert pages.take(at, size) == CONTENT[at : at + size]
    assert len(asked) == len(set(asked)) <= size // (1 << 17) + 2
    assert pages.take(-1, 5) == pages.take(5, 0) == b""


@every_row(("at", "size"), PLACES)
def test_a_folder_and_a_squashfs_give_the_same_part(tmp_path, at, size):
    folder = FolderTree(sandbox(tmp_path, {"/a": CONTENT}))
    image = io.BytesIO(squashfs({"/a": CONTENT[: 1 << 17]}))
    assert folder.piece("/a", at, size) == CONTENT[at : at + size]
    assert SquashTree(image, 0, "x").piece("/a", at, size) == CONTENT[: 1 << 17][at : at + size]


@every_row("kind", ["gzip", "xz", "lz4", "zstd"])
def test_parts_of_a_packed_file_are_those_of_the_whole(kind):
    with (DATA / f"tiny.{kind}").open("rb") as file:
        tree = SquashTree(file, 0, kind)
        whole = tree.content("/etc/os-release")
        assert whole
        assert tree.piece("/etc/os-release", 3, 5) == whole[3:8]
        assert tree.piece("/etc/os-release", 0, 1 << 20) == whole
        assert tree.piece("/etc", 0, 10) == tree.piece("/nothing", 0, 10) == b""


def test_a_tree_that_has_no_parts_is_read_whole_once(tmp_path):
    inner = FolderTree(sandbox(tmp_path, {"/a": CONTENT}))

    class Plain:
        reads = 0
        kind, names, target = inner.kind, inner.names, inner.target

        def content(self, path, limit=0):
            Plain.reads += 1
            return inner.content(path, limit)

    tree = BoundedTree(Plain(), Budget("x"))
    pages = Loader(tree, {}).pages("/a")
    assert (tree.sliced, pages.take(200_000, 9)) == (False, CONTENT[200_000:200_009])
    assert pages.take(10, 9) == CONTENT[10:19]
    assert Plain.reads == 1
    assert tree.piece("/a", 5, 3) == CONTENT[5:8]


def lz4(literals, distance, length):
    """Return an LZ4 block with literals, one match, and a last literal, which the format requires."""
    extra = length - 4
    head = bytes([min(len(literals), 15) << 4 | min(extra, 15)])
    more = b"" if extra < 15 else b"\xff" * ((extra - 15) // 255) + bytes([(extra - 15) % 255])
    return head + literals + distance.to_bytes(2, "little") + more + b"\x10!"


@given(st.binary(min_size=1, max_size=14), st.data())
def test_matches_of_lz4_repeat_what_they_write(literals, drawn):
    distance = drawn.draw(st.integers(1, len(literals)))
    length = drawn.draw(st.integers(4, 700))
    expected = bytearray(literals)
    for _ in range(length):
        expected.append(expected[-distance])
    assert expand("lz4", lz4(literals, distance, length), 4096) == bytes(expected) + b"!"
