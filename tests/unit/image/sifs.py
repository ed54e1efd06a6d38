"""Make SIF files and sandbox folders for tests, byte by byte."""

import struct
from pathlib import Path

DATA = Path(__file__).parent / "data"
_HEADER = struct.Struct("<32s10s3s3s16s8q")
_DESCRIPTOR = struct.Struct("<i?III7q128s384s")


def sif(partition: bytes, *, architecture: bytes = b"02\0", kind: int = 1, part: int = 2) -> bytes:
    """Return a SIF whose only object is a partition."""
    table, start = _HEADER.size, _HEADER.size + _DESCRIPTOR.size
    header = _HEADER.pack(
        b"#!/usr/bin/env run-singularity\n",
        b"SIF_MAGIC\0",
        b"01\0",
        architecture,
        bytes(16),
        *(0, 0, 0, 1, table, _DESCRIPTOR.size, start, len(partition)),
    )
    extra = struct.pack("<ii3s", kind, part, architecture)
    descriptor = _DESCRIPTOR.pack(
        0x4004, True, 1, 1, 0, start, len(partition), len(partition), 0, 0, 0, 0, b"system", extra
    )
    return header + descriptor + partition


def sandbox(root: Path, files: dict[str, bytes | str]) -> Path:
    """Write a sandbox folder; a text that begins with ``->`` is a link."""
    for name, content in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and content.startswith("->"):
            path.symlink_to(content[2:])
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def elf(
    *,
    soname: str = "",
    needed: tuple[str, ...] = (),
    runpath: str = "",
    rpath: str = "",
    text: bytes = b"",
    machine: int = 62,
) -> bytes:
    """Return a small 64-bit shared object with a dynamic section, and ``text`` at its end."""
    strings = bytearray(b"\0")

    def put(word: str) -> int:
        strings.extend(word.encode() + b"\0")
        return len(strings) - len(word) - 1

    tags = [(1, put(name)) for name in needed]
    tags += [(14, put(soname))] if soname else []
    tags += [(15, put(rpath))] if rpath else []
    tags += [(29, put(runpath))] if runpath else []
    dynamic_at, count = 64 + 2 * 56, len(tags) + 3
    strings_at = dynamic_at + count * 16
    tags += [(5, strings_at), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *tag) for tag in tags)
    total = strings_at + len(strings) + len(text)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), 3, machine, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, total, total, 4096)
    segment = struct.pack(
        "<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8
    )
    return header + load + segment + dynamic + bytes(strings) + text


def squashfs(files: dict[str, bytes]) -> bytes:
    """Return a squashfs without any compression that holds a few small files."""
    start, data, inodes, folders = 96, bytearray(), bytearray(), bytearray()

    def inode(kind: int, rest: bytes) -> int:
        inodes.extend(struct.pack("<HHHHII", kind, 0o755, 0, 0, 0, 1) + rest)
        return len(inodes) - 16 - len(rest)

    def put(folder: dict) -> int:
        entries = bytearray()
        for name, below in sorted(folder.items()):
            if isinstance(below, dict):
                number, kind = put(below), 1
            else:
                words = struct.pack("<I", len(below) | 1 << 24) if below else b""
                at = struct.pack("<4I", start + len(data), 0xFFFFFFFF, 0, len(below))
                number, kind = inode(2, at + words), 2
                data.extend(below)
            entries += struct.pack("<HhHH", number, 0, kind, len(name) - 1) + name.encode()
        offset = len(folders)
        if entries:
            folders.extend(struct.pack("<3I", len(folder) - 1, 0, 1) + entries)
        return inode(1, struct.pack("<IIHHI", 0, 2, len(folders) - offset + 3, offset, 1))

    tree: dict = {}
    for path, content in files.items():
        *above, name = path.strip("/").split("/")
        here = tree
        for part in above:
            here = here.setdefault(part, {})
        here[name] = content
    root = put(tree)
    tables = [struct.pack("<H", len(table) | 0x8000) + table for table in (inodes, folders)]
    first, second = start + len(data), start + len(data) + len(tables[0])
    head = struct.pack(
        "<5I6H8Q",
        *(0x73717368, 1, 0, 1 << 17, 0, 1, 17, 0, 1, 4, 0),
        *(root, second + len(tables[1]), 0, 0, first, second, 0, 0),
    )
    return head + bytes(data) + tables[0] + tables[1]
