"""Test the conversion of a Docker image to a SIF: full disks, errors of a runtime, and reuse of a SIF."""

import errno
from types import SimpleNamespace

import msgspec
import pytest

from tests.unit.image.sifs import sif as packed
from tests.unit.image.sifs import squashfs
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.files import hash_file
from toolkit.image.files.digest import check_digest, digest_file
from toolkit.image.sifs import sif, singularityd, trial
from toolkit.image.sifs.ociconfig import OciConfig
from toolkit.image.sifs.packing import DEFAULT, packing
from toolkit.image.sifs.sifwrite import metadata_objects, partition_offset, write_head
from toolkit.model.progress import Silent
from toolkit.model.stack import STACK_PATH
from toolkit.run.singularity import HostApptainer, Outcome


class Refusing(HostApptainer):
    """A fake runtime that prints the recorded errors of a host without user namespaces."""

    said = ""

    def labels(self, sif):
        return {}

    def execute(self, sif, words):
        return Outcome(255, self.said)


START = {"/bin/sh": b"shell", "/.singularity.d/actions/exec": b"#!/bin/sh"}


@pytest.fixture
def whole(tmp_path):
    file = tmp_path / "a.sif"
    file.write_bytes(packed(squashfs(START)))
    return file


@every_row("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named(number, tmp_path):
    with pytest.raises(CheckFailed, match="the disk is full: /where"), sif.full_disks(tmp_path):
        raise OSError(number, "No space left on device", "/where")


def test_other_faults_of_the_disk_are_left_as_they_are(tmp_path):
    with pytest.raises(PermissionError), sif.full_disks(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied", "/where")


SAID = "ERROR  : Failed to create user namespace: user namespace disabled"


def test_a_host_that_may_start_nothing_does_not_make_an_image_bad(whole, monkeypatch):
    maker = Refusing("/bin/apptainer", "apptainer version 1.4.5")
    maker.__class__.said = SAID
    monkeypatch.setattr(sif, "start_obstacle", lambda: "this machine does not allow user namespaces")
    assert sif.verify(whole, maker, {}) == "this machine does not allow user namespaces"


@every_row(
    "said",
    [
        "FATAL:   exec /bin/sh failed: no such file or directory",
        "FATAL:   while mounting image: mount /proc/self/fd/3: squashfuse: operation not permitted",
        SAID,
    ],
)
def test_where_containers_start_an_image_in_which_nothing_runs_is_refused(whole, said, monkeypatch):
    maker = Refusing("/bin/apptainer", "apptainer version 1.4.5")
    maker.__class__.said = said
    monkeypatch.setattr(sif, "start_obstacle", lambda: "")
    with pytest.raises(CheckFailed, match="but a test command in the SIF failed") as caught:
        sif.verify(whole, maker, {})
    assert caught.value.detail == (said,)


def test_a_machine_without_fuse_is_said_to_be_so(monkeypatch, tmp_path):
    monkeypatch.setattr(trial, "_FUSE", str(tmp_path / "fuse"))
    assert "fuse is missing or not accessible" in trial.start_obstacle()


def test_a_machine_without_user_namespaces_is_said_to_be_so(monkeypatch, tmp_path):
    fuse, unshare = tmp_path / "fuse", tmp_path / "unshare"
    fuse.touch()
    monkeypatch.setattr(trial, "_FUSE", str(fuse))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert trial.start_obstacle() == ""
    unshare.write_text("#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2\nexit 1\n")
    unshare.chmod(0o755)
    assert trial.start_obstacle().endswith(
        "does not allow user namespaces: unshare failed: Operation not permitted"
    )


@every_row("missing", [*START, STACK_PATH])
def test_a_sif_without_what_every_start_needs_is_refused(tmp_path, missing):
    file = tmp_path / "a.sif"
    inside = {**START, STACK_PATH: b"{}"}
    file.write_bytes(packed(squashfs(inside)))
    trial.read_through(file, (STACK_PATH,))
    file.write_bytes(packed(squashfs({k: v for k, v in inside.items() if k != missing})))
    with pytest.raises(CheckFailed, match=f"{missing} in the SIF is missing"):
        trial.read_through(file, (STACK_PATH,))


def test_a_sif_whose_file_system_is_broken_is_refused_whatever_the_runtime_says(whole):
    content = bytearray(whole.read_bytes())
    content[-20:] = b"\xff" * 20
    whole.write_bytes(content)
    with pytest.raises(CheckFailed, match="damaged"):
        sif.verify(whole, Refusing("/bin/apptainer", "apptainer version 1.4.5"), {})


def test_another_image_than_the_one_converted_is_refused(whole):
    maker = Refusing("/bin/apptainer", "apptainer version 1.4.5")
    whole.write_bytes(packed(squashfs({**START, STACK_PATH: b"{}"})))
    with pytest.raises(CheckFailed, match="differ from the labels of the Docker image"):
        sif.verify(whole, maker, {"toolkit.source": "1"})


OURS = OciConfig(Env=("A=b",), Labels={"toolkit.source": "1"})


def made(path, config, packing=DEFAULT):
    """Write a SIF and its checksum file, as a conversion from a Docker image does; return the checksum."""
    labels = singularityd.labels(config, "x:y", "amd64", 0, packing.name)
    metadata = singularityd.metadata(config, labels, "text")
    objects = metadata_objects("text", metadata, msgspec.json.encode(config))
    path.write_bytes(bytes(partition_offset(objects)) + squashfs(START))
    write_head(path, objects, "amd64", 0)
    digest_file(path).write_text(f"{hash_file(path)}  {path.name}\n")
    return hash_file(path)


def test_a_sif_of_the_same_image_packed_the_same_way_is_reused(tmp_path):
    file = tmp_path / "a.sif"
    digest = made(file, OURS)
    assert sif.reusable_digest(file, OURS, DEFAULT) == digest
    assert sif.reusable_digest(file, OURS, packing("size")) == ""
    assert sif.reusable_digest(file, OciConfig(Env=("A=c",), Labels=OURS.Labels), DEFAULT) == ""


def test_a_damaged_one_and_one_without_a_checksum_are_not(tmp_path):
    file = tmp_path / "a.sif"
    made(file, OURS)
    digest_file(file).write_text("0" * 64 + "  a.sif\n")
    assert sif.reusable_digest(file, OURS, DEFAULT) == ""
    digest_file(file).unlink()
    assert sif.reusable_digest(file, OURS, DEFAULT) == ""


def test_an_image_that_does_not_tell_what_is_in_it_is_always_converted(tmp_path):
    file = tmp_path / "a.sif"
    foreign = OciConfig(Env=("A=b",))
    made(file, foreign)
    assert sif.reusable_digest(file, foreign, DEFAULT) == ""


def test_a_file_that_is_no_sif_is_never_reused(tmp_path):
    file = tmp_path / "a.sif"
    assert sif.reusable_digest(file, OURS, DEFAULT) == ""
    file.write_bytes(b"junk")
    assert sif.reusable_digest(file, OURS, DEFAULT) == ""
    digest_file(file).write_text(f"{hash_file(file)}  a.sif\n")
    assert sif.reusable_digest(file, OURS, DEFAULT) == ""


class Engine:
    def version(self):
        return {}


def test_behind_a_link_the_file_itself_is_written_and_reused(tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    real, link = tmp_path / "scratch" / "real.sif", tmp_path / "link.sif"
    link.symlink_to(real)

    def write(_client, _name, _source, part, _tell, **_options):
        made(part, OURS)
        digest_file(part).unlink()

    source = SimpleNamespace(id="sha256:0")
    for name, value in (
        ("find_image", lambda *_: source),
        ("read_config", lambda _: OURS),
        ("write", write),
        ("find", lambda: Refusing("/bin/apptainer", "")),
        ("verify", lambda *_: ""),
    ):
        monkeypatch.setattr(sif, name, value)
    for reused in (False, True):
        assert sif.convert(Engine(), "x:y", link, Silent()).reused == reused
        assert link.is_symlink()
        assert check_digest(real) == hash_file(link)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.sif", "scratch"]
