"""What is told of an image that was built, as an engine with containerd's image store answers."""

from types import SimpleNamespace

from toolkit.image.builds.build import find

MANIFEST_ID = "sha256:4878214b79bca0ab90779ce43f349b36028909fdf19ca06cf7f7a1ec091611c0"


def test_the_bytes_of_an_image_are_those_of_its_files():
    # From Docker 28.5: Size is of the compressed layers, history has the unpacked ones.
    image = SimpleNamespace(
        id=MANIFEST_ID,
        labels={"toolkit.lock": "b8d7", "toolkit.source": "8e94"},
        attrs={"Size": 70_910_523, "Descriptor": {"digest": MANIFEST_ID, "size": 1199}},
        history=lambda: [{"Size": 0}, {"Size": 1_030_000}, {"Size": 194_390_160}],
    )
    client = SimpleNamespace(images=SimpleNamespace(get=lambda name: image))
    built = find(client, SimpleNamespace(name="mpi-only", tag="toolkit/mpi-only:latest"))
    assert (built.bytes, built.id, built.reused) == (195_420_160, MANIFEST_ID, True)
