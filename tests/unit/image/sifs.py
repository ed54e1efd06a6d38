"""Make SIF files and sandbox folders for tests, byte by byte."""

import struct
from pathlib import Path

DATA = Path(__file__).parent / "data"
_HEADER = struct.Struct("<32s10s3s3s16s8q")
_DESCRIPTOR = struct.Struct("<i?III7q128s384s")


def sif(partition: bytes, *, architecture: bytes = b"02\0", kind: int = 1, part: int = 2) -> bytes:
    """Return a SIF whose only object is ``partition``."""
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
    """Write a sandbox folder and return it; a text ``->target`` makes a link."""
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
    versions: tuple[str, ...] = (),
    symbols: dict[str, str] | None = None,
    level: int = 0,
) -> bytes:
    """Return a small 64-bit ELF library with a dynamic section, and with ``text`` at its end.

    ``versions``: symbol versions that the library needs of libc.so.6. ``symbols``: a text for each symbol.
    ``level``: the x86-64 level in its property note.
    """
    strings = bytearray(b"\0")

    def put(word: str) -> int:
        strings.extend(word.encode() + b"\0")
        return len(strings) - len(word) - 1

    tags = [(1, put(name)) for name in needed]
    tags += [(14, put(soname))] if soname else []
    tags += [(15, put(rpath))] if rpath else []
    tags += [(29, put(runpath))] if runpath else []
    names = {name: put(name) for name in symbols or {}}
    wanted = [put(version) for version in versions]
    dynamic_at, count = 64 + 3 * 56, len(tags) + 3 + bool(symbols) + bool(versions)
    symbols_at = dynamic_at + count * 16
    strings_at = symbols_at + len(names) * 24
    needs_at = strings_at + len(strings)
    entries = [struct.pack("<IHHII", 0, 0, 2, name, 16 if name != wanted[-1] else 0) for name in wanted]
    needs = struct.pack("<HHIII", 1, len(wanted), 0, 16, 0) + b"".join(entries) if wanted else b""
    note_at = needs_at + len(needs)
    note = struct.pack("<III4sIIII", 4, 16, 5, b"GNU", 0xC0008002, 4, 1 << level - 1, 0) if level else b""
    values_at = note_at + len(note)
    table, values = b"", b""
    for name, value in (symbols or {}).items():
        table += struct.pack("<IBBHQQ", names[name], 17, 0, 1, values_at + len(values), len(value) + 1)
        values += value.encode() + b"\0"
    tags += [(6, symbols_at)] if symbols else []
    tags += [(0x6FFFFFFE, needs_at)] if wanted else []
    tags += [(5, strings_at), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *tag) for tag in tags)
    total = values_at + len(values) + len(text)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), 3, machine, 1, 0, 64, 0, 0, 64, 56, 3, 0, 0, 0
    )
    segments = (
        (1, 0, total),
        (2, dynamic_at, len(dynamic)),
        (0x6474E553 if level else 0, note_at, len(note)),
    )
    heads = b"".join(
        struct.pack("<IIQQQQQQ", kind, 5, at, at, at, size, size, 8) for kind, at, size in segments
    )
    return header + heads + dynamic + table + bytes(strings) + needs + note + values + text


def component(project: str, release: str, framework: str, name: str) -> bytes:
    """Return the structure with which Open MPI, PMIx and PRRTE describe a component."""
    numbers = struct.pack("<3i", *map(int, release.split(".")))
    words = ((project, 16), (framework, 32), (name, 64))
    return b"".join(word.encode().ljust(size, b"\0") + numbers for word, size in words)


def index(listed: dict[str, str], *, flags: int = 0x0303) -> bytes:
    """Return an /etc/ld.so.cache that lists the paths of libraries by name."""
    strings, entries = bytearray(), bytearray()
    start = 48 + 24 * len(listed)
    for soname, path in listed.items():
        places = []
        for word in (soname, path):
            places.append(start + len(strings))
            strings += word.encode() + b"\0"
        entries += struct.pack("<iIIIQ", flags, *places, 0, 0)
    head = b"glibc-ld.so.cache1.1" + struct.pack("<II", len(listed), len(strings))
    return head.ljust(48, b"\0") + bytes(entries) + bytes(strings)


def squashfs(files: dict[str, bytes | str]) -> bytes:
    """Return an uncompressed squashfs with a few small files; a text ``->target`` makes a link."""
    start, data, inodes, folders = 96, bytearray(), bytearray(), bytearray()

    def inode(kind: int, rest: bytes) -> int:
        inodes.extend(struct.pack("<HHHHII", kind, 0o755, 0, 0, 0, 1) + rest)
        return len(inodes) - 16 - len(rest)

    def put(folder: dict) -> int:
        entries = bytearray()
        for name, below in sorted(folder.items()):
            if isinstance(below, dict):
                number, kind = put(below), 1
            elif isinstance(below, str):
                target = below.removeprefix("->").encode()
                number, kind = inode(3, struct.pack("<II", 1, len(target)) + target), 3
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
