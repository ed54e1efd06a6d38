"""Make garbage: wrong file contents, paths that are not files, and names that are hard to print."""

import gzip
import io
import os
import random
import socket
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_DEEP = 100_000
_BIG = 1 << 20


class Garbage(NamedTuple):
    """Garbage at ``path``; an error message about it must contain ``shown``, a part of the path."""

    kind: str
    path: str
    shown: str


def _random(count: int) -> bytes:
    return random.Random(count).randbytes(count)


def _png() -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 1, 1, 8, 2, 0, 0, 0) + b"\0" * 40


def _zip() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("a.txt", "hello")
    return written.getvalue()


def _sif_header() -> bytes:
    texts = (b"#!/usr/bin/env run-singularity\n", b"SIF_MAGIC\0", b"01\0", b"02\0", bytes(16))
    return struct.pack("<32s10s3s3s16s8q", *texts, 0, 0, 47, 48, 4096, 48 * 585, 32768, 0)


CONTENTS: dict[str, bytes | Callable[[], bytes]] = {
    "empty": b"",
    "random-4k": lambda: _random(4096),
    "random-1m": lambda: _random(_BIG),
    "zeros-1m": lambda: bytes(_BIG),
    "hello": b"hello world\n",
    "utf-16": "hello = 'world'\n".encode("utf-16"),
    "latin-1": "name = 'M\u00fcller'\n".encode("latin-1"),
    "bom": b"\xef\xbb\xbf",
    "long-line": lambda: b"x" * 900_000,
    "colours": b"\x1b]0;OWNED\x07\x1b[2J = \x1b[31mred\n",
    "json-list": b"[]\n",
    "json-null": b"null\n",
    "json-object": b"{}\n",
    "json-digits": lambda: b"9" * 5000,
    "json-field-digits": lambda: b'{"schema": ' + b"9" * 5000 + b"}",
    "json-brackets": lambda: b"[" * _DEEP,
    "json-braces": lambda: b'{"a":' * _DEEP,
    "json-surrogate": b'{"schema": "\\ud800"}',
    "json-cut": b'{"schema": "toolkit.facts/2", "host": {"place"',
    "json-escapes": b'{"schema": "\\u001b[2J\\u202e"}',
    "toml-deep": lambda: b"a=" + b"[" * 3000,
    "toml-keys": lambda: b".".join([b"a"] * 5000) + b" = 1\n",
    "toml-digits": lambda: b"schema = " + b"9" * 5000 + b"\n",
    "toml-twice": b'schema = "a"\nschema = "b"\n',
    "yaml-bomb": b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
    "yaml-python": b"!!python/object/apply:os.system ['touch PWNED']\n",
    "yaml-deep": lambda: b"[" * 3000,
    "yaml-two": b"nodes: 1\n---\nnodes: 2\n",
    "elf": lambda: Path("/bin/true").read_bytes(),
    "png": _png,
    "gzip": lambda: gzip.compress(b"hello" * 1000),
    "gzip-cut": lambda: gzip.compress(_random(9999))[:4000],
    "zstd-magic": b"\x28\xb5\x2f\xfd" + b"\0" * 60,
    "sif-magic": b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\0",
    "sif-header": _sif_header,
    "hsqs": lambda: b"hsqs" + _random(200),
    "zip": _zip,
    "tar-empty": bytes(10240),
    "pgp": b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n",
}


def make(folder: Path, suffix: str = "") -> list[Garbage]:
    found = [_file(folder, kind, f"g-{kind}{suffix}", content) for kind, content in CONTENTS.items()]
    found += _not_files(folder, suffix)
    found += _named(folder, suffix)
    return found


def _file(folder: Path, kind: str, name: str, content: bytes | Callable[[], bytes]) -> Garbage:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content())
    return Garbage(kind, str(path), f"g-{kind}")


def _not_files(folder: Path, suffix: str) -> list[Garbage]:
    def at(kind: str) -> Path:
        return folder / f"g-{kind}{suffix}"

    at("folder").mkdir()
    at("full-folder").mkdir()
    (at("full-folder") / "a.txt").write_text("hello")
    at("loop").symlink_to(at("loop"))
    at("dangling").symlink_to(folder / "gone")
    os.mkfifo(at("fifo"))
    _socket(at("socket"))
    at("below-a-file").write_text("hello")
    made = [
        (kind, str(at(kind)), f"g-{kind}")
        for kind in ("folder", "full-folder", "loop", "dangling", "fifo", "socket")
    ]
    made += [("below-a-file", f"{at('below-a-file')}/x{suffix}", "below-a-file")]
    made += [("missing", str(at("missing")), "g-missing")]
    devices = ("/dev/null", "/dev/zero", "/dev/full", "/proc/self/mem")
    made += [(path, path, path.removeprefix("/proc/self")) for path in devices]
    made += [("root", "/", "/"), ("no-name", "", "")]
    return [Garbage(*one) for one in made]


def _socket(path: Path) -> None:
    """Bind the socket from its folder, because the whole path may be too long for a socket address."""
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _named(folder: Path, suffix: str) -> list[Garbage]:
    names = {
        "newline": f"g-new\nline{suffix}",
        "escape": f"g-esc\x1b[31m{suffix}",
        "not-utf-8": f"g-byte\udcff{suffix}",
        "shell": f"g-$(touch PWNED){suffix}",
    }
    made = []
    for kind, name in names.items():
        (folder / name).write_bytes(b"hello world\n")
        made.append(Garbage(f"name-{kind}", str(folder / name), name[:4]))
    made.append(Garbage("name-300", f"{folder}/g-{'n' * 300}{suffix}", "g-nnnn"))
    made.append(Garbage("name-6000", f"{folder}/g-{'n' * 6000}{suffix}", "/"))
    return made
