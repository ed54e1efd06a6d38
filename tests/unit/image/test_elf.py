"""Test how toolkit reads the headers of programs and libraries, real and synthetic."""

import struct
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.image.sifs import component, elf, index
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.image.files.pages import pages_of
from toolkit.image.loader import mca
from toolkit.image.loader.elf import data, read_elf, symbol
from toolkit.image.loader.ldcache import read_cache


def test_the_python_that_runs_this_needs_a_libc_and_versions_of_it():
    found = read_elf(Path(sys.executable).resolve().read_bytes())
    assert found is not None
    assert found.architecture
    assert any(name.startswith("libc.so") for name in found.needed)
    assert any(version.startswith("GLIBC_2.") for version in found.versions)


def test_all_that_a_made_library_says_is_read():
    found = read_elf(
        elf(
            soname="libx.so.1",
            needed=("libc.so.6", "liby.so"),
            rpath="/a:/b",
            versions=("GLIBC_2.2.5", "GLIBC_2.34"),
            level=3,
        )
    )
    assert found is not None
    assert (found.soname, found.needed, found.rpath) == ("libx.so.1", ("libc.so.6", "liby.so"), ("/a", "/b"))
    assert found.versions == ("GLIBC_2.2.5", "GLIBC_2.34")
    assert (found.architecture, found.level) == ("x86_64", 3)


def test_a_library_without_a_note_asks_for_no_level():
    found = read_elf(elf(soname="libx.so.1"))
    assert found is not None
    assert (found.level, found.versions) == (None, ())


def test_a_text_is_found_by_the_name_of_its_symbol():
    library = elf(symbols={"MPII_Version_string": "4.2.3", "MPII_Version_device": "ch4:ofi ucx"})
    assert symbol(pages_of(library), "MPII_Version_device") == "ch4:ofi ucx"
    assert symbol(pages_of(library), "MPII_Version") is None
    assert symbol(pages_of(b"no library"), "MPII_Version_device") is None


def test_code_is_left_out_where_it_has_a_segment_of_its_own():
    library = bytearray(elf(soname="libx.so.1", text=b"TEXT"))
    assert b"TEXT" in data(pages_of(bytes(library)))
    # Move the text from the first segment, which is then only readable, to an executable third segment.
    struct.pack_into("<I", library, 64 + 4, 4)
    struct.pack_into("<Q", library, 64 + 32, len(library) - 4)
    struct.pack_into("<IIQQQQQQ", library, 64 + 112, 1, 5, len(library) - 4, 0, 0, 4, 4, 1)
    assert b"TEXT" not in data(pages_of(bytes(library)))
    assert b"libx.so.1" in data(pages_of(bytes(library)))


@settings(max_examples=count(75, 300), deadline=None)
@given(st.dictionaries(st.integers(0, 700), st.integers(0, 255), max_size=12), st.integers(0, 700))
def test_a_damaged_library_is_read_or_not_and_never_raises(flips, length):
    library = elf(soname="libx.so", needed=("liby.so",), versions=("GLIBC_2.4",), symbols={"a": "b"}, level=2)
    damaged = bytes(b ^ flips.get(n, 0) for n, b in enumerate(library))[: max(length, 4)]
    read_elf(damaged)
    symbol(pages_of(damaged), "a")
    data(pages_of(damaged))


def test_components_are_found_by_their_structures_with_their_versions():
    content = b"\x01\0\0junk" + b"".join(
        (
            component("opal", "4.1.8", "btl", "tcp"),
            component("ompi", "4.1.8", "pml", "base"),
            component("ompi", "4.1.8", "pml", "ucx"),
            component("pmix", "3.2.5", "gds", "ds21"),
        )
    )
    found = mca.components(content)
    assert mca.by_framework(found, "btl", "pml", "gds", "mtl") == {
        "btl": ("tcp",),
        "pml": ("ucx",),
        "gds": ("ds21",),
    }
    assert mca.release(found, "ompi", "opal") == "4.1.8"
    assert mca.release(found, "pmix") == "3.2.5"
    assert mca.release(found, "prte") is None


@every_row(
    "content",
    [
        b"opal\0 is a word",
        component("opal", "4.1.8", "btl", "tcp")[:-1],
        component("opal", "4.1.8", "btl", "Not a word"),
        component("opal", "4.1.99999", "btl", "tcp"),
        b"ompi" + bytes(200),
    ],
)
def test_what_only_looks_like_a_component_is_none(content):
    assert mca.components(content) == ()


def test_the_index_of_libraries_tells_where_each_is():
    listed = {"libmpi.so.40": "/opt/x/lib/libmpi.so.40", "libc.so.6": "/lib/libc.so.6"}
    assert read_cache(index(listed), "x86_64") == listed
    assert read_cache(b"ld.so-1.7.0\0" + bytes(36) + index(listed), "x86_64") == listed


def test_libraries_of_another_architecture_are_passed_over_in_the_index():
    assert read_cache(index({"libc.so.6": "/lib32/libc.so.6"}, flags=0x0003), "x86_64") == {}


def test_an_index_that_is_none_is_told_from_an_empty_one():
    assert read_cache(b"something else") is None
    assert read_cache(index({})) == {}


@settings(max_examples=count(50, 200), deadline=None)
@given(st.dictionaries(st.integers(0, 160), st.integers(0, 255), max_size=8), st.integers(0, 160))
def test_a_damaged_index_never_raises(flips, length):
    whole = index({"liba.so": "/lib/liba.so", "libb.so": "/lib/libb.so"})
    read_cache(bytes(b ^ flips.get(n, 0) for n, b in enumerate(whole))[:length], "x86_64")
