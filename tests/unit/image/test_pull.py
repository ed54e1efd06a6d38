import contextlib
import hashlib
import json
import tarfile

import pytest

from tests.unit.image.sifs import sif
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.files import oci
from toolkit.image.files.digest import check_digest
from toolkit.image.sifs.ociarchive import write_archive
from toolkit.image.transfer.pull import choose, pull
from toolkit.image.transfer.shrink import shrink_layers
from toolkit.image.transfer.upload import open_upload
from toolkit.model.progress import Silent
from toolkit.run.registry.manifest import (
    OCI_LAYER,
    SIF_LAYER,
    Descriptor,
    ImageManifest,
    Platform,
    digest_of,
    for_image,
    read_manifest,
)
from toolkit.run.registry.name import parse_name
from toolkit.run.registry.upload import Blob


def entry(os="linux", architecture="amd64", variant="", number=0):
    return Descriptor("x", f"sha256:{number:064}", 1, {}, Platform(os, architecture, variant))


def index(*entries):
    return ImageManifest(2, "", manifests=tuple(entries))


def test_the_image_for_the_platform_is_taken(monkeypatch):
    monkeypatch.setattr(oci, "this_platform", lambda: "linux/amd64")
    arm, amd = entry(architecture="arm64", variant="v8", number=1), entry(number=2)
    assert choose(index(arm, amd), "x", "") == amd
    assert choose(index(arm, amd), "x", "linux/arm64") == arm
    assert choose(index(arm, amd), "x", "linux/arm64/v8") == arm
    assert choose(index(arm), "x", "") == arm


def test_an_index_without_it_names_what_it_has():
    with pytest.raises(BadInput, match="no image for linux/s390x; its platforms: linux/amd64, linux/arm64"):
        choose(index(entry(architecture="arm64"), entry(), entry("unknown", "unknown")), "x", "linux/s390x")
    with pytest.raises(BadInput, match="its platforms: unknown"):
        choose(index(), "x", "linux/s390x")
    with pytest.raises(BadInput) as caught:
        choose(index(entry("li\nnux", "\x1b[1m")), "x", "linux/s390x")
    assert caught.value.message.isprintable()


@pytest.fixture
def archive(tmp_path):
    blobs = {b"config": "", b"layer one": "", b"layer two": ""}
    for content in blobs:
        (tmp_path / digest_of(content).removeprefix("sha256:")).write_bytes(content)
    config, *layers = (Descriptor("x", digest_of(c), len(c)) for c in blobs)
    text = for_image(config, tuple(layers))
    for name in ("a.tar", "b.tar"):
        write_archive(tmp_path / name, text, read_manifest(text, "x"), tmp_path, "h/a:1")
    return tmp_path


def test_an_archive_is_the_same_twice_and_names_what_is_in_it(archive):
    assert (archive / "a.tar").read_bytes() == (archive / "b.tar").read_bytes()
    with tarfile.open(archive / "a.tar") as tar:
        names = tar.getnames()
        assert {m.mtime for m in tar} == {0}
    assert names == sorted(names)
    assert {"index.json", "oci-layout", "manifest.json", "blobs", "blobs/sha256"} < set(names)


def test_the_index_of_an_archive_says_the_whole_name(archive):
    # docker load with containerd's image store accepts only this list for the name.
    with tarfile.open(archive / "a.tar") as tar:
        (entry,) = json.load(tar.extractfile("index.json"))["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == "h/a:1"
    assert entry["annotations"]["org.opencontainers.image.ref.name"] == "1"


def test_a_sif_is_an_artifact_of_two_parts(tmp_path):
    file = tmp_path / "it.sif"
    file.write_bytes(sif(b"x" * 100))
    with open_upload(str(file), "", lambda _: False, Silent()) as cargo:
        config, layer = cargo.blobs
        assert config.source.read_at(0, 10) == b"{}"
        assert layer.source.read_at(0, layer.size) == file.read_bytes()
        assert digest_of(file.read_bytes()) == layer.digest
        assert cargo.form == "sif"


def test_a_sif_with_another_checksum_beside_it_is_not_sent(tmp_path):
    file = tmp_path / "it.sif"
    file.write_bytes(sif(b"x" * 100))
    (tmp_path / "it.sif.sha256").write_text(f"{'0' * 64}  it.sif\n")
    with (
        pytest.raises(CheckFailed, match="has changed"),
        open_upload(str(file), "", lambda _: False, Silent()),
    ):
        pass


def test_what_is_no_image_is_not_sent(tmp_path):
    (tmp_path / "x").write_text("no image")
    with (
        pytest.raises(BadInput, match="not an image"),
        open_upload(str(tmp_path / "x"), "", lambda _: False, Silent()),
    ):
        pass


class Content:
    def read_at(self, offset, count):
        return (b"abc" * 1000)[offset : offset + count]


def test_a_layer_that_the_registry_has_is_not_compressed_again(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    layer = Blob(digest_of(b"abc" * 1000), 3000, Content())
    (first,) = shrink_layers((layer,), tmp_path, lambda _: True, Silent())
    assert first.file is not None
    assert digest_of(first.file.read_bytes()) == first.descriptor.digest
    assert first.descriptor.media_type == f"{OCI_LAYER}+gzip"
    (again,) = shrink_layers((layer,), tmp_path, lambda digest: digest == first.descriptor.digest, Silent())
    assert (again.descriptor, again.file) == (first.descriptor, None)
    (anew,) = shrink_layers((layer,), tmp_path, lambda _: False, Silent())
    assert anew == first


def test_behind_a_link_the_file_itself_is_fetched(tmp_path, monkeypatch):
    content = b"a SIF"
    layer = Descriptor(SIF_LAYER, digest_of(content), len(content))
    monkeypatch.setattr("toolkit.image.transfer.pull.open_session", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(
        "toolkit.image.transfer.pull.fetch_manifest", lambda *_: (b"", ImageManifest(2, "", layers=(layer,)))
    )
    monkeypatch.setattr(
        "toolkit.image.transfer.pull.fetch_blob", lambda _s, _n, _blob, part, _got: part.write_bytes(content)
    )
    real, link = tmp_path / "scratch" / "real.sif", tmp_path / "link.sif"
    real.parent.mkdir()
    link.symlink_to(real)
    for reused in (False, True):
        found = pull(parse_name("oras://h/a:1"), link, None, Silent())
        assert (found.reused, found.sha256) == (reused, hashlib.sha256(content).hexdigest())
        assert link.is_symlink()
        assert check_digest(real) == found.sha256
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["link.sif"]
    assert sorted(path.name for path in real.parent.iterdir()) == ["real.sif", "real.sif.sha256"]
