"""Test that toolkit finds each difference between a SIF and its signed hashes, and refuses truncated SIFs."""

import io
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.image.signed import OBJECTS, write_sif
from toolkit.errors import BadInput, CheckFailed, Damaged, ToolkitError
from toolkit.image.files.sif.sifobjects import Object, Table, add, read_table
from toolkit.image.trust.integrity import differences, metadata

PATH = Path("image.sif")


@pytest.fixture(scope="module")
def raw(tmp_path_factory) -> bytes:
    return write_sif(tmp_path_factory.mktemp("sif") / "image.sif").read_bytes()


def opened(raw: bytes) -> tuple[io.BytesIO, Table]:
    file = io.BytesIO(raw)
    return file, read_table(file, PATH)


def found(raw: bytes, text: bytes, group: int = 1) -> tuple[str, ...]:
    return tuple(differences(text, *opened(raw), group))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200))
def test_any_bytes_in_place_of_the_list_are_a_difference(raw: bytes, text: bytes):
    assert found(raw, text)


@given(JSON)
def test_any_json_in_place_of_the_list_is_a_difference(raw: bytes, value: object):
    assert found(raw, msgspec.json.encode(value))


def test_json_that_is_nested_without_end_is_a_difference(raw: bytes):
    assert found(raw, b'{"version":' + b"[" * 200_000)


@given(st.data())
def test_a_list_with_one_thing_changed_is_a_difference(raw: bytes, data: st.DataObject):
    said = msgspec.json.decode(metadata(*opened(raw), 1))
    target = data.draw(
        st.sampled_from(["header", "relativeId", "descriptorDigest", "objectDigest", "drop", "twice"])
    )
    item = data.draw(st.sampled_from(said["objects"]))
    odd = data.draw(
        st.sampled_from(["", "sha256:", "md5:00", "sha256:" + "0" * 64, "shake_128:00", "sha256:zz:"])
    )
    match target:
        case "header":
            said["header"]["digest"] = odd
        case "relativeId":
            item["relativeId"] = data.draw(st.integers(-5, 2**70).filter(lambda n: n != item["relativeId"]))
        case "drop":
            said["objects"].remove(item)
        case "twice":
            said["objects"].append(item)
        case _:
            item[target] = odd
    assert found(raw, msgspec.json.encode(said))


def test_the_list_that_was_made_is_no_difference_also_in_other_hashes_and_capitals(raw: bytes):
    text = metadata(*opened(raw), 1)
    assert found(raw, text) == ()
    assert found(raw, text.replace(b"sha256:", b"SHA256:")) != ()
    assert found(raw, text, group=2) != ()


@given(st.integers(0, 32767), st.binary(min_size=1, max_size=16))
def test_a_damaged_head_is_refused_or_read_but_never_breaks(raw: bytes, at: int, patch: bytes):
    damaged = raw[:at] + patch + raw[at + len(patch) :]
    text = metadata(*opened(raw), 1)
    try:
        file, table = opened(damaged)
        wrong = tuple(differences(text, file, table, 1))
    except ToolkitError:
        return
    # A signature does not cover modification times, offsets of objects and unused bytes.
    if not wrong:
        file, table = opened(raw)
        assert [e.fixed(1) for e in opened(damaged)[1].in_group(1)] == [e.fixed(1) for e in table.in_group(1)]


@given(st.integers(0, 60000))
def test_a_file_that_is_cut_short_anywhere_is_refused(raw: bytes, length: int):
    if length < len(raw):
        with pytest.raises((BadInput, Damaged)):
            opened(raw[:length])


@given(st.lists(st.binary(max_size=100), min_size=1, max_size=5))
def test_what_is_added_is_read_again_and_nothing_else_changes(raw: bytes, contents: list[bytes]):
    file = io.BytesIO(raw)
    before = read_table(file, PATH)
    things = [Object(0x4007, content, f"number {n}") for n, content in enumerate(contents)]
    add(file, PATH, *things)
    after = read_table(file, PATH)
    assert after.used[: len(before.used)] == before.used
    assert after.header.fixed == before.header.fixed
    assert after.header.free == before.header.free - len(things)
    whole = file.getvalue()
    assert [whole[e.offset : e.offset + e.size] for e in after.used[len(OBJECTS) :]] == contents
    assert after.header.data + after.header.data_size == len(whole)


def test_a_table_without_room_is_told(raw: bytes):
    file = io.BytesIO(raw)
    with pytest.raises(CheckFailed, match="no free entry"):
        add(file, PATH, *[Object(0x4007, b"x")] * 6)
