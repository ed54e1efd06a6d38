"""Test which files of a ``docker save`` archive toolkit uploads to a registry."""

import gzip
import json

import pytest

from tests.unit.image.archives import PACK, config, named, oci_layout, tar
from tests.unit.tables import every_row
from toolkit.image.transfer.upload import open_upload
from toolkit.model.progress import Silent

LAYERS = [tar({"etc/one": "1"}), tar({"etc/two": "2"})]
GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"


@pytest.fixture
def cargo_of(tmp_path, monkeypatch):
    """Return a function that makes an archive and returns the files that toolkit would upload."""
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))

    def read(layers, pack, more=None):
        about, kept = config(layers), [PACK[pack](layer) for layer in layers]
        paths = [f"blobs/sha256/{named(layer)}" for layer in kept]
        saved = [{"Config": f"blobs/sha256/{named(about)}", "RepoTags": None, "Layers": paths}]
        files = dict(zip(paths, kept, strict=True)) | {saved[0]["Config"]: about}
        file = tmp_path / "saved.tar"
        file.write_bytes(tar({**files, "manifest.json": json.dumps(saved), **(more or {})}))
        with open_upload(str(file), "", lambda _: False, Silent()) as cargo:
            sent = {b.digest: b.source.read_at(0, b.size) for b in cargo.blobs}
            return json.loads(cargo.manifest), sent

    return read


def test_layers_that_are_compressed_are_sent_as_they_are(cargo_of):
    manifest, sent = cargo_of(LAYERS, "gzip")
    kept = {f"sha256:{named(PACK['gzip'](layer))}" for layer in LAYERS}
    assert [layer["mediaType"] for layer in manifest["layers"]] == [GZIP, GZIP]
    assert {layer["digest"] for layer in manifest["layers"]} == kept
    assert kept < set(sent)
    assert all(named(content) == digest.removeprefix("sha256:") for digest, content in sent.items())


def test_layers_that_are_not_are_compressed(cargo_of):
    manifest, sent = cargo_of(LAYERS, "")
    assert [layer["mediaType"] for layer in manifest["layers"]] == [GZIP, GZIP]
    assert [gzip.decompress(sent[layer["digest"]]) for layer in manifest["layers"]] == LAYERS


@every_row("pack", ["", "gzip"])
def test_of_a_saved_archive_with_an_index_plain_layers_are_compressed_too(cargo_of, pack):
    # Docker 25 and newer write an index. An engine that stores layers as folders saves uncompressed layers.
    layout = oci_layout(LAYERS, pack=pack)
    manifest, sent = cargo_of(LAYERS, pack, layout)
    assert [layer["mediaType"] for layer in manifest["layers"]] == [GZIP, GZIP]
    assert [gzip.decompress(sent[layer["digest"]]) for layer in manifest["layers"]] == LAYERS
    (entry,) = json.loads(layout["index.json"])["manifests"]
    unchanged = json.loads(layout[f"blobs/{entry['digest'].replace(':', '/')}"]) == manifest
    assert unchanged == (pack == "gzip")


@every_row("pack", ["", "gzip"])
def test_a_layer_that_an_image_has_twice_is_named_twice_and_sent_once(cargo_of, pack):
    manifest, sent = cargo_of([LAYERS[0], LAYERS[1], LAYERS[0]], pack)
    digests = [layer["digest"] for layer in manifest["layers"]]
    assert len(digests) == 3
    assert digests[0] == digests[2] != digests[1]
    assert len(sent) == 3  # two layers and the image configuration
