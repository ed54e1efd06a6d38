"""Test what toolkit reads about a built image from a Docker engine with containerd's image store."""

from types import SimpleNamespace

import pytest

from toolkit.errors import BadInput
from toolkit.image.builds.build import build, find
from toolkit.image.locks.lock import load_lock
from toolkit.image.locks.recipe import load
from toolkit.model.progress import Silent

MANIFEST_ID = "sha256:4878214b79bca0ab90779ce43f349b36028909fdf19ca06cf7f7a1ec091611c0"


def test_the_bytes_of_an_image_are_those_of_its_files():
    # Docker 28.5 answers like this: Size is the compressed size, and the history has uncompressed sizes.
    image = SimpleNamespace(
        id=MANIFEST_ID,
        labels={"toolkit.lock": "b8d7", "toolkit.source": "8e94"},
        attrs={"Size": 70_910_523, "Descriptor": {"digest": MANIFEST_ID, "size": 1199}},
        history=lambda: [{"Size": 0}, {"Size": 1_030_000}, {"Size": 194_390_160}],
    )
    client = SimpleNamespace(images=SimpleNamespace(get=lambda name: image))
    built = find(client, SimpleNamespace(name="mpi-only", tag="toolkit/mpi-only:latest"))
    assert (built.bytes, built.id, built.reused) == (195_420_160, MANIFEST_ID, True)


def test_an_image_for_another_processor_is_not_built_but_rendered():
    client = SimpleNamespace(info=lambda: {"Architecture": "aarch64"})
    with pytest.raises(
        BadInput, match=r"mpi-only is a recipe for x86_64; this Docker engine runs on aarch64"
    ) as caught:
        build(client, load("mpi-only"), load_lock("mpi-only"), Silent())
    assert "toolkit image render mpi-only -o ctx" in caught.value.fix
