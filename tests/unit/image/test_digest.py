"""The checksum beside a SIF."""

import hashlib

import pytest

from toolkit.errors import CheckFailed
from toolkit.image.digest import check_digest, digest_file


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
