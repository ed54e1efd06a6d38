"""Write the SHA-256 of every file under /opt and of every program and library, as the last step of an image
build.

The program needs only the standard library of Python 3.8, because images may have nothing else. For each
wheel, the program also lists the files that the build changed (stripped) and counts the files that the build
removed (tests, headers), so that a comparison of an image with its wheels can ignore these files.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_ELF = b"\x7fELF"
_SYSTEM = ("usr", "lib", "lib64", "bin", "sbin")


def files(top: Path) -> Iterator[Path]:
    """Yield the regular files below a folder; links are not followed."""
    for folder, _, names in os.walk(top):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == _ELF


def sha256(path: Path) -> str:
    state = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            state.update(chunk)
    return state.hexdigest()


def hashes(root: Path, own: Path) -> dict[str, str]:
    """Return the hash of each file by its path, without the output file ``own``."""
    paths = [path for path in files(root / "opt") if path != own]
    for name in _SYSTEM:
        if not (root / name).is_symlink():
            paths += [path for path in files(root / name) if is_elf(path)]
    with ThreadPoolExecutor() as pool:
        return dict(zip((f"/{p.relative_to(root)}" for p in paths), pool.map(sha256, paths)))  # noqa: B905


def recorded(record: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file that a RECORD lists with a hash, and the hash in hexadecimal."""
    site = record.parent.parent
    with record.open(newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            if len(row) > 1 and row[1].startswith("sha256="):
                coded = row[1][len("sha256=") :]
                digest = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4))
                yield Path(os.path.normpath(site / row[0])), digest.hex()


def changes(root: Path, found: dict[str, str]) -> tuple[list[str], dict[str, int]]:
    """Return the files of wheels that the build changed, and the number of removed files of each wheel."""
    changed, gone = set(), {}
    for record in sorted((root / "opt").glob("**/site-packages/*.dist-info/RECORD")):
        missing = 0
        for path, digest in recorded(record):
            inside = f"/{os.path.relpath(path, root)}"
            now = found.get(inside)
            if now is None:
                missing += 1
            elif now != digest:
                changed.add(inside)
        if missing:
            gone[record.parent.name[: -len(".dist-info")]] = missing
    return sorted(changed), gone


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("/"))
    parser.add_argument("--output", type=Path, default=Path("/opt/toolkit/manifest.json"))
    given = parser.parse_args()
    listed = hashes(given.root, given.output)
    changed, gone = changes(given.root, listed)
    whole = {"schema": "toolkit.manifest/1", "files": listed, "changed": changed, "gone": gone}
    given.output.write_text(json.dumps(whole, indent=0, sort_keys=True) + "\n", encoding="utf-8")
