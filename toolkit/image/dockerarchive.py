"""Put a root file system into the archive that ``docker save`` writes, which Apptainer starts from."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from toolkit.image.digest import sha256

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_archive(layer: Path, architecture: str, target: Path) -> None:
    """Write an archive of one layer; ``architecture`` is a kernel's name for it."""
    digest = sha256(layer)
    config = json.dumps(
        {
            "architecture": _ARCHITECTURES.get(architecture, architecture),
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": ["base:latest"], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(target, "w") as tar:
        for member, content in ((name, config), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        entry = tarfile.TarInfo("layer.tar")
        entry.size = layer.stat().st_size
        with layer.open("rb") as reading:
            tar.addfile(entry, reading)
