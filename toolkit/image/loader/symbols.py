"""Read the symbols and symbol versions that ld.so checks before it starts a program (elf(5))."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from toolkit.image.files.pages import Pages
from toolkit.image.loader.elf import Tables, tables

_STRTAB, _SYMTAB, _STRSZ, _HASH, _GNU_HASH = 5, 6, 10, 4, 0x6FFFFEF5
_RELA, _RELASZ, _JMPREL, _PLTRELSZ = 7, 8, 23, 2
_BIND_NOW, _FLAGS, _FLAGS_1 = 24, 30, 0x6FFFFFFB
_VERNEED, _VERDEF = 0x6FFFFFFE, 0x6FFFFFFC
_MOST_SYMBOLS = 200_000
_MOST_BYTES = 16 << 20
_MOST_VERSIONS = 1000
_MOST_FILES = 200
_WEAK = 2
_ENTRY = 24
_RELATIVE = 24


@dataclass(frozen=True, slots=True)
class Symbols:
    """The symbols that a file exports, and the symbols that ld.so must find before a program starts.

    ``imports`` are the symbols whose addresses ld.so looks up when the program starts. They include neither
    weak symbols nor functions that ld.so looks up at the first call. ``required_versions`` maps a library's
    soname to the versions that the library must define. ``own_versions`` are the versions that the file
    itself defines.
    """

    exports: frozenset[bytes]
    imports: frozenset[bytes]
    required_versions: dict[str, tuple[str, ...]]
    own_versions: frozenset[str]


def read_symbols(pages: Pages) -> Symbols | None:
    """Return the symbols of a 64-bit ELF file, or None if the file is damaged or is not a 64-bit ELF file."""
    file_tables = tables(pages)
    if file_tables is None or not file_tables.wide:
        return None
    try:
        names, entries = _names(file_tables), _entries(file_tables)
        bound = _bound(file_tables)
        exports, imports = set(), set()
        for number, (name, info, section) in enumerate(entries):
            binding = info >> 4
            if section and binding:
                exports.add(names[name : names.find(b"\0", name)])
            elif binding not in {0, _WEAK} and number in bound:
                imports.add(names[name : names.find(b"\0", name)])
        return Symbols(frozenset(exports), frozenset(imports), _needs(file_tables), _defines(file_tables))
    except (ValueError, struct.error, OverflowError, IndexError):
        return None


def _names(file: Tables) -> bytes:
    at = file.offset(_STRTAB)
    return file.pages.take(at, min(file.first(_STRSZ) or 0, _MOST_BYTES)) if at is not None else b""


def _entries(file: Tables) -> Iterable[tuple[int, int, int]]:
    """Return a tuple for each symbol: the offset of the name, a byte with binding and type, and the section.

    elf(5) describes these fields (Elf64_Sym).
    """
    at, count = file.offset(_SYMTAB), min(_count(file), _MOST_SYMBOLS)
    raw = file.pages.take(at, count * _ENTRY) if at is not None else b""
    return struct.iter_unpack("<IBxH16x", raw[: len(raw) // _ENTRY * _ENTRY])


def _count(file: Tables) -> int:
    """Return the number of symbols in a file. An ELF file states this number only in its hash tables."""
    if (at := file.offset(_HASH)) is not None:
        return int(struct.unpack("<II", file.pages.take(at, 8))[1])
    at = file.offset(_GNU_HASH)
    if at is None:
        return 0
    buckets, first, bloom, _ = struct.unpack("<IIII", file.pages.take(at, 16))
    start = at + 16 + 8 * bloom
    raw = file.pages.take(start, 4 * min(buckets, _MOST_SYMBOLS))
    last = max(struct.unpack(f"<{len(raw) // 4}I", raw), default=0)
    if last < first:
        return int(first)
    chain = start + 4 * buckets + 4 * (last - first)
    for more in range(_MOST_SYMBOLS):
        if struct.unpack("<I", file.pages.take(chain + 4 * more, 4))[0] & 1:
            return int(last + more + 1)
    return 0


def _bound(file: Tables) -> set[int]:
    """Return the positions, in the symbol table, of the symbols that ld.so looks up before the program
    starts.
    """
    now = (
        file.first(_BIND_NOW) is not None
        or bool((file.first(_FLAGS) or 0) & 8)
        or bool((file.first(_FLAGS_1) or 0) & 1)
    )
    names = _referenced_symbols(file, _RELA, _RELASZ)
    return names | _referenced_symbols(file, _JMPREL, _PLTRELSZ) if now else names


def _referenced_symbols(file: Tables, table: int, size: int) -> set[int]:
    at = file.offset(table)
    if at is None:
        return set()
    raw = file.pages.take(at, min(file.first(size) or 0, _MOST_BYTES) // _RELATIVE * _RELATIVE)
    words = memoryview(raw[: len(raw) // 8 * 8]).cast("Q")
    # The set is small: most relocations refer to no symbol, so their info fields (r_info) are equal.
    return {info >> 32 for info in set(words[1::3].tolist())} - {0}


def _needs(file: Tables) -> dict[str, tuple[str, ...]]:
    """Return, by soname, the symbol versions that the file needs from each library, without weak versions."""
    versions_by_file: dict[str, tuple[str, ...]] = {}
    at = file.offset(_VERNEED)
    for _ in range(_MOST_FILES):
        if at is None:
            break
        _, count, name, first, following = struct.unpack("<HHIII", file.pages.take(at, 16))
        entry, versions = at + first, []
        for _ in range(min(count, _MOST_VERSIONS)):
            _, flags, _, version, step = struct.unpack("<IHHII", file.pages.take(entry, 16))
            if not flags & _WEAK:
                versions.append(file.text(version))
            entry += step
            if step == 0:
                break
        versions_by_file[file.text(name)] = tuple(versions)
        at = at + following if following else None
    return versions_by_file


def _defines(file: Tables) -> frozenset[str]:
    names: set[str] = set()
    at = file.offset(_VERDEF)
    for _ in range(_MOST_VERSIONS):
        if at is None:
            break
        _, _, _, _, _, first, following = struct.unpack("<HHHHIII", file.pages.take(at, 20))
        names.add(file.text(struct.unpack("<II", file.pages.take(at + first, 8))[0]))
        at = at + following if following else None
    return frozenset(names)
