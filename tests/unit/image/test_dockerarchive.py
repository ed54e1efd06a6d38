"""A root file system as the archive that Apptainer starts from: read back by the reader of archives."""

import io
import tarfile

from toolkit.image.dockerarchive import write_archive
from toolkit.image.inspect import inspect

RELEASE = b'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n'


def test_what_is_written_is_an_image_of_one_layer(tmp_path):
    layer = tmp_path / "base.tar"
    with tarfile.open(layer, "w") as tar:
        entry = tarfile.TarInfo("etc/os-release")
        entry.size = len(RELEASE)
        tar.addfile(entry, io.BytesIO(RELEASE))
    target = tmp_path / "archive.tar"
    write_archive(layer, "x86_64", target)
    first = target.read_bytes()
    facts = inspect(f"docker-archive:{target}")
    assert (facts.distribution, facts.architecture) == ("debian 12 (bookworm)", "x86_64")
    write_archive(layer, "x86_64", target)
    assert target.read_bytes() == first
