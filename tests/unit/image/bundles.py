"""Make bundles for tests: small valid bundles, and archives with any members."""

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.unit.image.locks import lock
from toolkit.data import shipped_folder
from toolkit.image.builds.build import files_of
from toolkit.image.locks.recipe import parse, recipe_sha256
from toolkit.model.lock import encode_lock

SUMS, INDEX = "SHA256SUMS", "bundle.json"
Member = tuple[tarfile.TarInfo, bytes]


def recipe(title: str = "A recipe of a test") -> bytes:
    text = (shipped_folder("recipes") / "mpi-only.toml").read_text()
    return text.replace("Open MPI and mpi4py, to try a cluster with", title).encode()


def contents(name: str = "mine", title: str = "A recipe of a test", **changed: object) -> dict[str, bytes]:
    """Return the files of a bundle with one recipe, without the list of hashes.

    ``changed``: fields of the bundle's index with other values.
    """
    text = recipe(title)
    locked = lock(recipe=name, recipe_sha256=recipe_sha256(parse(text.decode(), name)))
    index = {
        "schema": "toolkit.bundle/1",
        "toolkit": "0.3.0",
        "pythons": ["3.11"],
        "machine": "x86_64",
        "recipes": [name],
        "images": [],
        "sifs": [],
        **changed,
    }
    return {
        INDEX: json.dumps(index).encode(),
        **{f"files/{file.sha256}/{file.file}": file.file.encode() for file in files_of(locked)},
        "install.sh": b"#!/bin/sh\n",
        f"recipes/{name}.lock.json": encode_lock(locked),
        f"recipes/{name}.toml": text,
        "wheels/hpc_container_toolkit-0.3.0-py3-none-any.whl": b"a wheel",
    }


def sums(files: dict[str, bytes]) -> bytes:
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    return "".join(lines).encode("utf-8", "surrogateescape")


def members(files: dict[str, bytes]) -> list[Member]:
    """Return the members of a bundle's archive; the list of hashes comes first."""
    return [plain(SUMS, sums(files)), *(plain(name, files[name]) for name in sorted(files))]


def plain(name: str, content: bytes, **fields: object) -> Member:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry, content


def special(name: str, kind: bytes, target: str = "") -> Member:
    return plain(name, b"", type=kind, linkname=target)


def packed(found: Iterable[Member], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for entry, content in found:
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def write_bundle(path: Path, files: dict[str, bytes]) -> Path:
    path.write_bytes(packed(members(files)))
    return path


def changed_lock(files: dict[str, bytes], name: str = "mine", **fields: object) -> dict[str, bytes]:
    path = f"recipes/{name}.lock.json"
    values = {**msgspec.json.decode(files[path]), **fields}
    return {**files, path: msgspec.json.encode(values)}


def escape(target: str) -> list[Member]:
    """Return members with which Python's ``extractall(filter="data")`` writes into ``target``
    (CVE-2025-4517).

    ``target`` is relative to the folder into which the archive is unpacked. ``extractall`` does not resolve
    links deeper than PATH_MAX, but the kernel does.
    """
    steps, deep = "abcdefghijklmnop", "d" * 247
    found, folder = list[Member](), ""
    for step in steps:
        found += [
            special(f"{folder}{deep}", tarfile.DIRTYPE),
            special(f"{folder}{step}", tarfile.SYMTYPE, deep),
        ]
        found[-2][0].mode = 0o755
        folder += f"{deep}/"
    link = f"{'/'.join(steps)}/{'l' * 254}"
    found.append(special(link, tarfile.SYMTYPE, "../" * len(steps)))
    found.append(special("escape", tarfile.SYMTYPE, f"{link}/{target}"))
    return [*found, plain("escape/written", b"by a bundle", mode=0o755)]
