"""Test that toolkit and Python list the same members of a tar, and that malicious tars take little memory."""

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.image.archives import tar
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.errors import CheckFailed
from toolkit.image.files.bounded import Budget
from toolkit.image.files.tar import entries, is_tar

FORMS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


class Memory:
    """A byte source in memory; ``largest`` is the number of bytes of the largest read."""

    slow = False

    def __init__(self, data: bytes) -> None:
        self.data, self.largest = data, 0

    def read_at(self, offset, count):
        self.largest = max(self.largest, count)
        return self.data[offset : offset + count]


def listed(data: bytes):
    return list(entries(Memory(data), "x.tar", Budget("x.tar")))


NAMES = st.lists(st.text("aé/_.", min_size=1, max_size=70), min_size=1, max_size=3).map("/b".join)


@settings(max_examples=count(40, 150), deadline=None)
@given(st.dictionaries(NAMES, st.binary(max_size=1500), max_size=6), st.sampled_from(FORMS[1:]))
def test_members_are_those_that_python_lists(files, form):
    data = tar(files, form)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        expected = [(m.name, m.size, m.offset_data) for m in archive]
    found = [(e.name, e.size, e.offset) for e in listed(data)]
    assert [(n.rstrip("/"), s, o) for n, s, o in found] == [(n.rstrip("/"), s, o) for n, s, o in expected]


@every_row("form", FORMS)
def test_links_folders_and_long_names_in_every_form(form):
    long = "d" * 90 + "/" + "f" * 60
    data = tar({"d/": b"", long: b"x", "link": "->d/e", "name": f"=>{'t' * 90}"}, form)
    folder, file, link, other = listed(data)
    assert (folder.kind, file.kind, link.kind, other.hard) == ("folder", "file", "link", True)
    assert (file.name, file.size, link.target, other.target) == (long, 1, "d/e", "t" * 90)


def test_numbers_too_large_for_octal_digits_are_read():
    head = bytearray(tar({"a": b""}, tarfile.GNU_FORMAT)[:512])
    head[124:136] = b"\x80" + (9 << 30).to_bytes(11, "big")
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}\0 ".encode()
    source = Memory(bytes(head))
    assert next(entries(source, "x", Budget("x"))).size == 9 << 30


def test_a_sparse_file_is_marked():
    entry = tarfile.TarInfo("hole")
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.name": "real"}
    assert [(e.name, e.sparse) for e in listed(tar({"hole": entry}))] == [("real", True)]
    old = bytearray(tar({"old": b"x" * 600, "after": b""}, tarfile.GNU_FORMAT))
    old[156:157] = b"S"
    old[482] = 1
    old[148:156] = b" " * 8
    old[148:156] = f"{sum(old[:512]):06o}\0 ".encode()
    old[512:512] = bytes(512)
    assert [(e.name, e.sparse, e.offset) for e in listed(bytes(old))] == [
        ("old", True, 1024),
        ("after", False, 2560),
    ]


def test_an_extended_header_of_any_size_is_not_read_into_memory():
    head = bytearray(tar({"a": b""}, tarfile.USTAR_FORMAT)[:512])
    head[156:157] = b"x"
    head[124:136] = b"77777777777\0"
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}\0 ".encode()
    source = Memory(bytes(head) * 4)
    with pytest.raises(CheckFailed, match="extended header of 8589934591 bytes"):
        list(entries(source, "x.tar", Budget("x.tar")))
    assert source.largest == 512


@every_row("records", [b"no record", b"99 path=a\n", b"3 a", b"9 path=ab", b"99999999 path=x\n"])
def test_records_that_make_no_sense_are_damage(records):
    entry = tarfile.TarInfo("p")
    entry.size = len(records)
    entry.type = tarfile.XHDTYPE
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(entry, io.BytesIO(records))
    with pytest.raises(CheckFailed, match="PAX header"):
        listed(packed.getvalue())


@every_row("length", [100, 512, 700, 1024, 2047])
def test_a_tar_that_is_cut_short_is_damage(length):
    with pytest.raises(CheckFailed, match="incomplete"):
        listed(tar({"a": b"x" * 1500})[:length])


def test_a_header_with_a_flipped_bit_is_damage():
    data = bytearray(tar({"a": b"x"}))
    data[3] ^= 1
    with pytest.raises(CheckFailed, match="checksum"):
        listed(bytes(data))
    assert not is_tar(bytes(data))


def test_members_without_end_are_given_up():
    data = tar({"a": b""})[:512] * 2000
    budget = Budget("x.tar")
    budget._entries = 1000
    with pytest.raises(CheckFailed, match="lists more files than toolkit's limit"):
        list(entries(Memory(data), "x.tar", budget))
