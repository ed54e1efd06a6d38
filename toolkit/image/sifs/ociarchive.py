"""Write an image as an OCI archive that ``docker load`` also reads; equal input gives equal bytes."""

import io
import tarfile
from pathlib import Path

import msgspec

from toolkit.run.registry.manifest import OCI_MANIFEST, ImageManifest, digest_of

_NAME = "org.opencontainers.image.ref.name"
_FULL_NAME = "io.containerd.image.name"
"""The annotation from which containerd's image store reads the image name.

The annotation of the OCI specification, ``_NAME``, has only the tag. Without ``_FULL_NAME``, containerd
stores the image without a name.
"""


def write_archive(target: Path, text: bytes, manifest: ImageManifest, blobs: Path, name: str) -> None:
    """Write the image ``name`` as the archive ``target``.

    ``text`` is the manifest as JSON, and ``manifest`` is its parsed form. ``blobs`` is the folder with the
    layers and the configuration; the name of each file is its SHA-256.
    """
    kind = manifest.media_type or OCI_MANIFEST
    described = {"mediaType": kind, "digest": digest_of(text), "size": len(text)}
    names = {_NAME: name.rpartition(":")[2], _FULL_NAME: name}
    index = {"schemaVersion": 2, "manifests": [{**described, "annotations": names}]}
    config = _path(manifest.config.digest) if manifest.config else ""
    saved = [{"Config": config, "RepoTags": [name], "Layers": [_path(d.digest) for d in manifest.layers]}]
    small = {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": msgspec.json.encode(index),
        "manifest.json": msgspec.json.encode(saved),
        _path(digest_of(text)): text,
    }
    files = {_path(d.digest): blobs / d.digest.removeprefix("sha256:") for d in manifest.blobs}
    # Add an entry for each folder, because Apptainer creates only folders that have an entry.
    folders = {str(folder) for path in files for folder in Path(path).parents} - {"."}
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted({*small, *files, *folders}):
            entry = tarfile.TarInfo(path)
            entry.mode = 0o755 if path in folders else 0o644
            if path in folders:
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            elif path in small:
                entry.size = len(small[path])
                archive.addfile(entry, io.BytesIO(small[path]))
            else:
                entry.size = files[path].stat().st_size
                with files[path].open("rb") as file:
                    archive.addfile(entry, file)


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
