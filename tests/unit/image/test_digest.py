"""The checksum beside a SIF."""

import hashlib

import pytest

from toolkit.errors import CheckFailed
from toolkit.image.digest import check_digest, digest_file, note, publish


@pytest.fixture
def sif(tmp_path):
    file = tmp_path / "a.sif"
    file.write_bytes(b"content")
    digest_file(file).write_text(f"{hashlib.sha256(b'content').hexdigest()}  a.sif\n")
    return file


def test_a_whole_file_has_the_checksum_that_is_noted(sif):
    assert check_digest(sif) == hashlib.sha256(b"content").hexdigest()


def test_one_changed_byte_is_told(sif):
    sif.write_bytes(b"cantent")
    with pytest.raises(CheckFailed, match="its content has changed since it was made") as caught:
        check_digest(sif)
    assert caught.value.fix


def test_a_file_without_a_checksum_is_not_judged(sif):
    digest_file(sif).unlink()
    assert check_digest(sif) == ""


@pytest.fixture
def link(sif, tmp_path):
    (tmp_path / "home").mkdir()
    name = tmp_path / "home" / "link.sif"
    name.symlink_to(sif)
    return name


def new(sif):
    part = sif.with_name("part")
    part.write_bytes(b"new")
    return part


SUM = hashlib.sha256(b"new").hexdigest()


def test_behind_a_link_the_file_itself_is_new(sif, link):
    publish(new(sif), link, SUM)
    assert link.is_symlink()
    assert sif.read_bytes() == b"new"
    assert check_digest(sif) == SUM
    assert [file.name for file in link.parent.iterdir()] == ["link.sif"]


def test_a_checksum_beside_the_link_is_written_anew_too(sif, link):
    digest_file(link).write_text(f"{'0' * 64}  link.sif\n")
    publish(new(sif), link, SUM)
    assert check_digest(link) == check_digest(sif) == SUM
    assert digest_file(link).read_text() == f"{SUM}  link.sif\n"
    assert digest_file(sif).read_text() == f"{SUM}  a.sif\n"


def test_a_checksum_that_is_a_link_itself_stays_one(sif, link):
    digest_file(link).symlink_to(digest_file(sif))
    publish(new(sif), link, SUM)
    note(link, SUM)
    assert digest_file(link).is_symlink()
    assert check_digest(link) == check_digest(sif) == SUM


def test_a_link_to_what_is_not_there_yet_and_one_to_itself(tmp_path):
    far, round_ = tmp_path / "far.sif", tmp_path / "round.sif"
    far.symlink_to(tmp_path / "made.sif")
    publish(new(far), far, SUM)
    assert check_digest(tmp_path / "made.sif") == SUM
    round_.symlink_to(round_)
    publish(new(far), round_, SUM)
    assert check_digest(round_) == SUM
