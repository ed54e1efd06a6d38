"""What surrounds a conversion: options, full disks, and what a runtime's refusal means."""

import errno
import struct

import pytest

from toolkit.errors import CheckFailed
from toolkit.image import sif
from toolkit.run.singularity import HostApptainer, Outcome


class Refusing(HostApptainer):
    """A runtime that may not start containers, as on a host without user namespaces: its recorded words."""

    said = ""

    def labels(self, sif):
        return {}

    def execute(self, sif, words):
        return Outcome(255, self.said)


@pytest.fixture
def whole(tmp_path):
    """The smallest file that has a SIF's table of contents."""
    header = struct.pack(
        "<32s10s3s3s16s8q", b"#!", b"SIF_MAGIC", b"01", b"02", b"", 0, 0, 0, 1, 128, 585, 713, 4
    )
    part = struct.pack("<ii", 1, 2) + b"02"
    table = struct.pack("<i?III7q128s384s", 0x4004, True, 1, 0, 0, 713, 4, 4, 0, 0, 0, 0, b"", part)
    file = tmp_path / "a.sif"
    file.write_bytes(header + table + b"hsqs")
    return file


def test_an_old_runtime_is_not_given_options_that_it_does_not_know():
    assert sif.build_options(HostApptainer("/bin/singularity", "singularity version 3.8", False)) == ()
    new = sif.build_options(HostApptainer("/bin/apptainer", "apptainer version 1.4.5", True))
    assert "-comp zstd" in new[1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named(number, tmp_path):
    with pytest.raises(CheckFailed, match="the disk is full: /where"), sif.full_disks(tmp_path):
        raise OSError(number, "No space left on device", "/where")


def test_other_faults_of_the_disk_are_left_as_they_are(tmp_path):
    with pytest.raises(PermissionError), sif.full_disks(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied", "/where")


def test_a_host_that_may_start_nothing_does_not_make_an_image_bad(whole):
    maker = Refusing("/bin/apptainer", "apptainer version 1.4.5", True)
    maker.__class__.said = "ERROR  : Failed to create user namespace: user namespace disabled"
    assert sif.verify(whole, maker) == maker.said


def test_an_image_in_which_nothing_runs_is_refused(whole):
    maker = Refusing("/bin/apptainer", "apptainer version 1.4.5", True)
    maker.__class__.said = "FATAL:   exec /bin/sh failed: no such file or directory"
    with pytest.raises(CheckFailed, match="no command runs in it") as caught:
        sif.verify(whole, maker)
    assert caught.value.detail == (maker.said,)


def test_another_image_than_the_one_converted_is_refused(whole):
    maker = Refusing("/bin/apptainer", "apptainer version 1.4.5", True)
    with pytest.raises(CheckFailed, match="not the image that was converted"):
        sif.verify(whole, maker, created="2026-01-01")


def test_a_file_that_is_no_sif_is_never_reused(tmp_path):
    file = tmp_path / "a.sif"
    assert sif.reusable(file, "2026") == ""
    file.write_bytes(b"junk")
    assert sif.reusable(file, "2026") == ""
