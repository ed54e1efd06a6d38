"""Test the checksum file that toolkit writes beside a SIF."""

import hashlib

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.files.digest import check_digest, digest_file, note, noted_digest, publish


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
    with pytest.raises(CheckFailed, match="its content has changed since its checksum was written") as caught:
        check_digest(sif)
    assert caught.value.fix


def test_a_file_without_a_checksum_is_not_judged(sif):
    digest_file(sif).unlink()
    assert check_digest(sif) == ""


REAL = hashlib.sha256(b"content").hexdigest()
OTHER = "0" * 64


@every_row("text", ["", "\n\n", "deadbeef", "deadbeef  a.sif\n", f"{OTHER}  b.sif\n", "\0" * 200])
def test_a_checksum_file_that_says_nothing_of_the_sif_is_no_changed_image(sif, text):
    digest_file(sif).write_text(text)
    with pytest.raises(BadInput) as caught:
        check_digest(sif)
    assert caught.value.message == f"{digest_file(sif)}: contains no SHA-256 of a.sif"
    assert "rm " in caught.value.fix


@every_row(
    "text",
    [
        REAL,
        f"{REAL.upper()} *a.sif",
        f"{REAL}  images/a.sif\n",
        f"SHA256 (a.sif) = {REAL}\n",
        f"{OTHER}  b.sif\n{REAL}  a.sif\n",
        f"{REAL}  its-name-before-both-were-renamed.sif\n",
    ],
)
def test_a_checksum_is_read_in_every_form_that_it_is_written_in(sif, text):
    digest_file(sif).write_text(text)
    assert check_digest(sif) == REAL


@every_row("text", [OTHER, f"{OTHER}  a.sif\n", f"SHA256 (a.sif) = {OTHER}"])
def test_in_every_form_another_sum_is_a_changed_image(sif, text):
    digest_file(sif).write_text(text)
    with pytest.raises(CheckFailed, match="its content has changed"):
        check_digest(sif)


def test_a_checksum_that_cannot_be_read_is_named(sif, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(sif), "open", refuse)
    with pytest.raises(BadInput, match=r"a\.sif\.sha256: Permission denied"):
        noted_digest(sif, REAL)


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
