"""Test hostile images that could make ``image inspect`` run very long or crash."""

import json
import struct
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.image.sifs import DATA, elf, sandbox
from tests.unit.image.test_inspect import STACK
from tests.unit.thorough import count
from toolkit.errors import CheckFailed, ToolkitError
from toolkit.image.files.bounded import BoundedTree, Budget
from toolkit.image.files.folder import FolderTree
from toolkit.image.inspect import inspect
from toolkit.model.facts import ImageFacts

SECONDS = 8.0
"""Time limit for each case in seconds. Without toolkit's own limits, some cases would take hours."""


def look(path) -> ImageFacts | None:
    """Return the image's facts, or None if toolkit refuses the image; fail after ``SECONDS``."""
    begun = time.monotonic()
    try:
        facts = inspect(path)
        json.loads(msgspec.json.encode(facts))
    except ToolkitError as error:
        assert "\n" not in error.message
        return None
    finally:
        assert time.monotonic() - begun < SECONDS
    return facts


def test_links_that_lead_to_their_own_folder_are_entered_once(tmp_path):
    files = {"/etc/os-release": "ID=debian\n", **{f"/opt/l{n}": "->." for n in range(400)}}
    facts = look(sandbox(tmp_path, files))
    assert facts is not None
    assert facts.distribution == "debian"


class Endless:
    """A file tree in which each folder contains itself 400 times, as in a malicious squashfs."""

    def kind(self, path):
        return "folder"

    def names(self, path):
        return tuple(f"{n}-linux-gnu" for n in range(400))

    def target(self, path):
        return ""

    def content(self, path, limit=0):
        return b""


def test_folders_that_hold_themselves_are_given_up(tmp_path, monkeypatch):
    root = sandbox(tmp_path, {"/etc/os-release": "ID=debian\n"})
    monkeypatch.setattr("toolkit.image.inspect.FolderTree", lambda _: Endless())
    with pytest.raises(CheckFailed, match="toolkit stopped reading: the image needs too many path lookups"):
        inspect(root)


def test_more_bytes_than_any_image_needs_are_given_up(tmp_path):
    tree = BoundedTree(FolderTree(sandbox(tmp_path, {"/a": b"x" * 100})), Budget("a.sif", size=150))
    assert len(tree.content("/a")) == 100
    with pytest.raises(CheckFailed, match=r"a\.sif: toolkit stopped reading: the files that toolkit needs"):
        tree.content("/a")


def test_a_list_of_packages_without_end_is_read_once(tmp_path):
    assert look(sandbox(tmp_path, {"/usr/bin/env": elf(), "/var/lib/dpkg/status": "Package: a\n" * 30_000}))


def test_a_library_that_claims_billions_of_entries_is_read_within_bounds(tmp_path):
    lying = bytearray(elf(soname="libmpi.so.40", text=b"ompi_mpi_comm_world\0"))
    struct.pack_into("<HHH", lying, 56, 0xFFFF, 0, 0)
    struct.pack_into("<Q", lying, 64 + 56 + 32, 1 << 60)
    assert look(sandbox(tmp_path, {"/usr/lib/libmpi.so.40": bytes(lying)}))


def test_numbers_longer_than_python_reads_are_no_versions(tmp_path):
    long = "1" * 5000
    files = {
        "/usr/lib/libmpi.so.40": elf(text=b"Open MPI v" + long.encode() + b".1.1\0"),
        "/var/lib/dpkg/status": f"Package: libucx0\nStatus: install ok installed\nVersion: {long}\n",
        "/usr/lib/libucp.so.0": elf(),
        "/opt/toolkit/stack.json": json.dumps(dict.fromkeys(STACK, long)),
    }
    assert look(sandbox(tmp_path, files))


PATHS = (
    "/etc/os-release",
    "/etc/ld.so.conf",
    "/var/lib/dpkg/status",
    "/opt/toolkit/stack.json",
    "/.singularity.d/labels.json",
    "/.singularity.d/env/90-environment.sh",
    "/usr/lib/libmpi.so.40",
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/bin/python3",
    "/opt/a",
    "/opt/venv/lib/python3.11/site-packages/horovod/tensorflow/mpi_lib.so",
)
SCRAPS = (
    "include ",
    "/etc/ld.so.conf\n",
    "*/*",
    "[",
    "export PATH=",
    "export LD_LIBRARY_PATH=",
    "$PATH",
    "${PATH:-",
    "\\1",
    "\0",
    "\n",
    "\n\n",
    "Package: a\n",
    "Status: install ok installed\n",
    '{"mpi": 1',
    "}",
    "../",
    "\u202e",
    "a" * 300,
    "Open MPI v",
    "4.1.4",
)
TEXTS = st.lists(st.sampled_from(SCRAPS), max_size=12).map("".join)
LINKS = st.sampled_from(("->.", "->..", "->/", "->loop", "->/opt/a", "->../../../etc", "->" + "../" * 1300))
ELVES = st.builds(
    lambda text, flips: bytes(
        b ^ flips.get(i, 0) for i, b in enumerate(elf(soname="libmpi.so.40", needed=("libx.so",), text=text))
    ),
    TEXTS.map(str.encode),
    st.dictionaries(st.integers(16, 250), st.integers(1, 255), max_size=4),
)


@settings(max_examples=count(30, 120), deadline=None)
@given(st.dictionaries(st.sampled_from(PATHS), TEXTS | LINKS | ELVES | st.binary(max_size=99), max_size=8))
def test_a_sandbox_of_any_content_gives_facts_or_an_error_of_ours(tmp_path_factory, files):
    look(sandbox(tmp_path_factory.mktemp("image"), {"/usr/bin/env": elf(), **files}))


FLIPS = st.lists(
    st.tuples(st.integers(0, 399) | st.integers(0, 8191), st.integers(0, 255)), min_size=1, max_size=6
)


@settings(max_examples=count(40, 150), deadline=None)
@given(FLIPS, st.sampled_from(("gzip", "xz", "lz4", "zstd")))
def test_a_damaged_squashfs_gives_facts_or_an_error_of_ours(tmp_path_factory, flips, kind):
    data = bytearray((DATA / f"tiny.{kind}").read_bytes())
    for position, byte in flips:
        data[position % len(data)] = byte
    file = tmp_path_factory.mktemp("image") / "damaged.squashfs"
    file.write_bytes(bytes(data))
    look(file)
