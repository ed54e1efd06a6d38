"""Make docker archives and OCI layouts for tests."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import zstandard

Layer = Mapping[str, "bytes | str | tarfile.TarInfo"]
"""Files of a layer by path. A text ``->target`` makes a symbolic link, and ``=>target`` a hard link."""

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    "gzip": lambda data: gzip.compress(data, 1, mtime=0),
    "zstd": zstandard.ZstdCompressor(level=1).compress,
}
CONFIG = {"Env": ["PATH=/opt/mpi/bin:/usr/bin", "OMPI_MCA_pml=ob1"], "Labels": {"title": "x"}}


def tar(files: Layer, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return a tar as bytes; a name that ends in ``/`` becomes a folder."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755
            if isinstance(content, str) and content[:2] in {"->", "=>"}:
                entry.type = tarfile.SYMTYPE if content[0] == "-" else tarfile.LNKTYPE
                entry.linkname = content[2:]
                archive.addfile(entry)
            elif name.endswith("/"):
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                data = content.encode() if isinstance(content, str) else content
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def named(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def config(layers: list[bytes], **process: object) -> bytes:
    return json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {**CONFIG, **process},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{named(layer)}" for layer in layers]},
        }
    ).encode()


def docker_archive(layers: list[bytes], tag: str = "a:1", **process: object) -> dict[str, bytes]:
    """Return the files by path of an archive as ``docker save`` wrote it before 2024."""
    about = config(layers, **process)
    files = {f"{named(layer)}/layer.tar": layer for layer in layers}
    files[f"{named(about)}.json"] = about
    image = {"Config": f"{named(about)}.json", "RepoTags": [tag], "Layers": list(files)[:-1]}
    image["Layers"] = [f"{named(layer)}/layer.tar" for layer in layers]
    files["manifest.json"] = json.dumps([image]).encode()
    return files


def oci_layout(
    layers: list[bytes], tag: str = "1", pack: str = "", platform: dict | None = None, **process: object
) -> dict[str, bytes]:
    """Return the files of an OCI layout with one image, by their paths."""
    blobs: list[bytes] = []

    def put(data: bytes, kind: str) -> dict:
        blobs.append(data)
        return {
            "mediaType": f"application/vnd.oci.image.{kind}",
            "digest": f"sha256:{named(data)}",
            "size": len(data),
        }

    suffix = f"+{pack}" if pack else ""
    manifest = {
        "schemaVersion": 2,
        "config": put(config(layers, **process), "config.v1+json"),
        "layers": [put(PACK[pack](layer), f"layer.v1.tar{suffix}") for layer in layers],
    }
    found = put(json.dumps(manifest).encode(), "manifest.v1+json")
    found["annotations"] = {"org.opencontainers.image.ref.name": tag} if tag else {}
    if platform:
        found["platform"] = platform
    return {
        "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        "index.json": json.dumps({"schemaVersion": 2, "manifests": [found]}).encode(),
        **{f"blobs/sha256/{named(data)}": data for data in blobs},
    }


def written(root: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root
