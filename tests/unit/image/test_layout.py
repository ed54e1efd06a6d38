"""Test that toolkit converts the stream of ``docker save`` to an OCI layout."""

import hashlib
import io
import json
import tarfile

import pytest

from tests.unit.image.archives import PACK
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.sifs.layout import write_layout
from toolkit.model.progress import Silent

LAYERS = (b"first layer" * 300, b"second")


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def archive(*, named=None, leave_out=(), layers=LAYERS):
    """Return an archive as Docker before 25 writes it: a folder per layer, and ``manifest.json`` last."""
    config = json.dumps({"rootfs": {"diff_ids": named or [f"sha256:{sha(layer)}" for layer in LAYERS]}})
    names = [f"{number}/layer.tar" for number, _ in enumerate(layers)]
    manifest = json.dumps([{"Config": "config.json", "Layers": names, "RepoTags": None}])
    files = dict(zip(names, layers, strict=True))
    files |= {"config.json": config.encode(), "manifest.json": manifest.encode()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            if name not in leave_out:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def chunks(content: bytes, size: int = 777):
    return (content[at : at + size] for at in range(0, len(content), size))


def test_every_blob_has_the_name_of_its_content(tmp_path):
    write_layout(chunks(archive()), tmp_path / "l", Silent())
    for blob in (tmp_path / "l" / "blobs" / "sha256").iterdir():
        assert blob.name == sha(blob.read_bytes())


def test_the_index_leads_to_the_layers_in_their_order(tmp_path):
    write_layout(chunks(archive()), tmp_path, Silent())
    blobs = tmp_path / "blobs" / "sha256"
    (entry,) = json.loads((tmp_path / "index.json").read_text())["manifests"]
    manifest = json.loads((blobs / entry["digest"].removeprefix("sha256:")).read_text())
    assert [layer["digest"] for layer in manifest["layers"]] == [f"sha256:{sha(layer)}" for layer in LAYERS]
    assert [layer["size"] for layer in manifest["layers"]] == [len(layer) for layer in LAYERS]
    assert manifest["config"]["digest"].removeprefix("sha256:") in {b.name for b in blobs.iterdir()}


@every_row(
    "broken",
    [
        b"",
        b"junk" * 400,
        archive()[:2000],
        archive(leave_out=["manifest.json"]),
        archive(leave_out=["0/layer.tar"]),
        archive(named=["sha256:00", "sha256:11"]),
        archive(layers=(b"something else", b"second")),
    ],
    ids=["nothing", "junk", "cut short", "no list", "no layer", "other digests", "other content"],
)
def test_what_is_not_a_whole_archive_is_refused(broken, tmp_path):
    with pytest.raises(CheckFailed, match="does not contain exactly one image"):
        write_layout(chunks(broken), tmp_path, Silent())


@every_row("pack", ["gzip", "zstd"])
def test_layers_stay_compressed_as_containerds_store_has_them(tmp_path, pack):
    packed = tuple(map(PACK[pack], LAYERS))
    write_layout(chunks(archive(layers=packed)), tmp_path, Silent())
    blobs = tmp_path / "blobs" / "sha256"
    (entry,) = json.loads((tmp_path / "index.json").read_text())["manifests"]
    layers = json.loads((blobs / entry["digest"].removeprefix("sha256:")).read_text())["layers"]
    assert [layer["digest"] for layer in layers] == [f"sha256:{sha(layer)}" for layer in packed]
    assert {layer["mediaType"] for layer in layers} == {f"application/vnd.oci.image.layer.v1.tar+{pack}"}


@every_row(
    "first",
    [PACK["gzip"](b"something else"), PACK["gzip"](LAYERS[0])[:-9], b"\x1f\x8bjunk", b"BZhjunk"],
    ids=["other content", "cut short", "no gzip", "bzip2"],
)
def test_compressed_layers_are_held_against_the_configuration(first, tmp_path):
    with pytest.raises((CheckFailed, BadInput), match="from the Docker engine"):
        write_layout(chunks(archive(layers=(first, LAYERS[1]))), tmp_path, Silent())


def test_a_layer_too_few_is_refused(tmp_path):
    with pytest.raises(CheckFailed, match="has 1 layers, but its configuration names 2"):
        write_layout(chunks(archive(layers=LAYERS[:1])), tmp_path, Silent())
