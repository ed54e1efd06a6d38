import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.run.registry import manifest
from toolkit.run.registry.manifest import Descriptor, digest_of, read_manifest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("sha256:" + "0" * 64),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["schemaVersion", "config", "layers", "manifests", "digest", "size", "mediaType", "x"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


def part(**changes):
    return {"mediaType": "x", "digest": "sha256:" + "0" * 64, "size": 3, **changes}


def whole(**changes):
    return json.dumps({"schemaVersion": 2, "config": part(), "layers": [part()], **changes}).encode()


def test_the_manifest_of_a_sif_is_the_one_that_apptainer_writes():
    layer = Descriptor(manifest.SIF_LAYER, digest_of(b"abc"), 3, {manifest.TITLE: "it.sif"})
    text = manifest.for_sif(layer, Descriptor(manifest.SIF_CONFIG, digest_of(b"{}"), 2))
    assert json.loads(text) == {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.sylabs.sif.config.v1+json",
            "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            "size": 2,
        },
        "layers": [
            {
                "mediaType": "application/vnd.sylabs.sif.layer.v1.sif",
                "digest": "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                "size": 3,
                "annotations": {"org.opencontainers.image.title": "it.sif"},
            }
        ],
    }
    assert read_manifest(text, "x").layers == (layer,)


def test_a_part_that_is_named_twice_is_one_part():
    assert len(read_manifest(whole(), "x").blobs) == 1


@every_row(
    ("text", "said"),
    [
        (b"", "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"a":' * 100_000, "cannot be read"),
        (whole(schemaVersion=1), "schema version 1"),
        (whole(layers=[part(digest="md5:12")]), "not a SHA-256"),
        (whole(layers=[part(digest="sha256:../../../etc/passwd")]), "not a SHA-256"),
        (whole(layers=[part(size=-1)]), "-1 bytes"),
        (whole(layers=[part(size=1 << 60)]), "bytes"),
        (whole(layers=[part()] * 501), "more than 500"),
        (whole(manifests=[part(digest="x")]), "not a SHA-256"),
    ],
)
def test_a_manifest_that_cannot_be_is_refused(text, said):
    with pytest.raises(CheckFailed, match=said):
        read_manifest(text, "x")


@given(JSON | st.binary(max_size=50))
def test_no_manifest_surprises(value):
    text = value if isinstance(value, bytes) else msgspec.json.encode(value)
    try:
        found = read_manifest(text, "x")
    except CheckFailed:
        return
    assert all(p.digest.startswith("sha256:") and p.size >= 0 for p in found.blobs)
