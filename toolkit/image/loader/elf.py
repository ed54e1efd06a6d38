"""Read the ELF headers of a program or a library. The headers name, for example, the libraries that the file
needs and the folders in which ld.so searches.

This module limits the number of entries that it reads from each table of an ELF file. Python libraries that
parse ELF files read as many entries as a file claims to have. A malicious file may claim billions. elf(5) and
the System V ABI describe the format.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.image.files.pages import Pages, pages_of

_MACHINES = {
    3: "i386",
    21: "ppc64le",
    22: "s390x",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
}
_LOAD, _DYNAMIC, _PROPERTY = 1, 2, 0x6474E553
_NEEDED, _STRTAB, _SYMTAB, _STRSZ, _SONAME, _RPATH, _RUNPATH = 1, 5, 6, 10, 14, 15, 29
_VERNEED = 0x6FFFFFFE
_SEGMENTS = 128
_TAGS = 1024
_LONGEST = 4096
_ALL = 32 << 20
_MOST_TEXT = 1 << 18
"""Maximum total size in bytes of the names that toolkit reads from one file. In a library of a training
image, the names of needed libraries and symbol versions take a few thousand bytes.
"""
_FILES = 200
_VERSIONS = 500
_SYMBOLS = 200_000
"""Maximum number of symbols of a file; a malicious file may claim to have billions."""
_ISA_NEEDED = 0xC0008002
"""The type of the property GNU_PROPERTY_X86_ISA_1_NEEDED (x86-64 ABI). Bit n (counted from
0) of the property is set if the file needs x86-64 level n + 1.
"""


@dataclass(frozen=True, slots=True)
class Elf:
    """The headers of an ELF file.

    ``rpath`` and ``runpath`` are the search folders as written in the file: toolkit does not replace
    ``$ORIGIN``. ``rpath`` is empty if the file has a RUNPATH, because ld.so then ignores the RPATH.

    ``versions`` are the symbol versions that the file needs from libraries, for example ``GLIBC_2.34``.
    ``level`` is the x86-64 level (the set of CPU instructions) that the file needs, from 1 to 4; None if the
    file does not state a level.
    """

    architecture: str | None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    level: int | None = None


class Tables:
    """The tables that ld.so reads in an ELF file.

    Raises:
        ValueError, struct.error: if the file is damaged or is not an ELF file.
    """

    def __init__(self, pages: Pages) -> None:
        start = pages.take(0, 64)
        if not start.startswith(b"\x7fELF") or len(start) < 64:
            raise ValueError("no ELF file")
        self._pages, self._left = pages, _MOST_TEXT
        self.wide = start[4] == 2
        self._order = ">" if start[5] == 2 else "<"
        head = self._take("HHIQQQIHHH" if self.wide else "HHIIIIIHHH", 16)
        self.machine, at, size, count = head[1], head[4], head[8], head[9]
        self._segments = [self._segment(at + n * size) for n in range(min(count, _SEGMENTS))]
        self.tags = self._dynamic()
        self._strings = self._first(_STRTAB)

    def _take(self, shape: str, offset: int) -> tuple[int, ...]:
        form = self._order + shape
        return struct.unpack(form, self._pages.take(offset, struct.calcsize(form)))

    def _segment(self, position: int) -> tuple[int, int, int, int, bool]:
        """Return a segment's type, file offset, address and file size, and whether it is executable."""
        if self.wide:
            kind, flags, offset, address, _, size = self._take("IIQQQQ", position)
        else:
            kind, offset, address, _, size, _, flags = self._take("IIIIIII", position)
        return kind, offset, address, size, bool(flags & 1)

    def _dynamic(self) -> list[tuple[int, int]]:
        tags: list[tuple[int, int]] = []
        shape, step = ("qQ", 16) if self.wide else ("iI", 8)
        for kind, offset, _, size, _ in self._segments:
            if kind != _DYNAMIC:
                continue
            count = min(size // step, _TAGS)
            raw = self._pages.take(offset, count * step)
            for tag, value in struct.iter_unpack(self._order + shape, raw):
                if tag == 0:
                    return tags
                tags.append((tag, value))
            if len(raw) < count * step:
                raise ValueError("the file ends inside its dynamic section")
        return tags

    def _first(self, dynamic_tag: int) -> int | None:
        return next((value for tag, value in self.tags if tag == dynamic_tag), None)

    def place(self, address: int) -> int | None:
        """Return the file offset of a memory address, or None if no loaded segment contains the address."""
        for kind, offset, start, size, _ in self._segments:
            if kind == _LOAD and start <= address < start + size:
                return address - start + offset
        return None

    def text(self, offset: int) -> str:
        """Return the text at ``offset`` in the dynamic string table."""
        start = self.place(self._strings) if self._strings is not None else None
        if start is None:
            raise ValueError("no string table")
        text = self._pages.take(start + offset, _LONGEST).partition(b"\0")[0]
        self._left -= len(text)
        if self._left < 0:
            raise ValueError("more names than toolkit's limit")
        return text.decode("utf-8", "replace")

    def data(self) -> bytes:
        """Return the bytes of the loaded segments that are not executable, at most 32 MiB.

        If the string table is missing or only in an executable segment, return the bytes of all loaded
        segments, at most 32 MiB.
        """
        loaded = [(offset, size, run) for kind, offset, _, size, run in self._segments if kind == _LOAD]
        start = self.place(self._strings) if self._strings is not None else None
        plain = [(offset, size) for offset, size, run in loaded if not run]
        if start is None or not any(offset <= start < offset + size for offset, size in plain):
            plain = [(offset, size) for offset, size, _ in loaded]
        left, pieces = _ALL, []
        for offset, size in plain:
            pieces.append(self._pages.take(offset, min(size, left)))
            left -= len(pieces[-1])
        return b"\0".join(pieces)

    def texts(self, dynamic_tag: int) -> tuple[str, ...]:
        return tuple(self.text(value) for tag, value in self.tags if tag == dynamic_tag)

    def versions(self) -> Iterator[str]:
        """Yield the symbol versions that the file needs, from its section ``.gnu.version_r``."""
        start = self._first(_VERNEED)
        at = self.place(start) if start is not None else None
        files = 0
        while at is not None and files < _FILES:
            _, count, _, first, following = self._take("HHIII", at)
            entry = at + first
            for _ in range(min(count, _VERSIONS)):
                _, _, _, name, step = self._take("IHHII", entry)
                yield self.text(name)
                if step == 0:
                    break
                entry += step
            files += 1
            at = at + following if following else None

    @property
    def pages(self) -> Pages:
        return self._pages

    def first(self, tag: int) -> int | None:
        """Return the first value of a tag in the dynamic section, or None if the section lacks the tag."""
        return self._first(tag)

    def offset(self, tag: int) -> int | None:
        """Return the file offset of the table to which a tag of the dynamic section points, or None."""
        address = self._first(tag)
        return None if address is None else self.place(address)

    def level(self) -> int | None:
        """Return the x86-64 level (the set of CPU instructions) that the file needs, from its section
        ``.note.gnu.property``; None if the file states no level.
        """
        for kind, offset, _, size, _ in self._segments:
            if kind != _PROPERTY:
                continue
            name, length, note = self._take("III", offset)
            at, end = offset + 12 + -(-name // 4) * 4, offset + min(size, 12 + name + length)
            while note == 5 and at + 12 <= end:
                property_type, size_of_data = self._take("II", at)
                if property_type == _ISA_NEEDED:
                    return self._take("I", at + 8)[0].bit_length() or None
                at += 8 + -(-size_of_data // 8) * 8
        return None

    def symbol(self, name: str) -> bytes | None:
        """Return the bytes from a symbol's address to the next NUL byte, or None if the file lacks the
        symbol.
        """
        strings, symbols = self._strings, self._first(_SYMTAB)
        names = self.place(strings) if strings is not None else None
        at = self.place(symbols) if symbols is not None else None
        if names is None or at is None or not self.wide:
            return None
        length = self._first(_STRSZ) or 0
        wanted = self._pages.take(names, length).find(b"\0" + name.encode() + b"\0")
        if wanted < 0:
            return None
        # The name of a symbol has at least two bytes (with its NUL byte), so the size of the string table
        # limits the number of symbols. toolkit does not compute this number from the offset of the string
        # table, because some tools move the string table away from the symbols.
        size = min(length // 2, _SYMBOLS) * 24
        entry = self._entry(struct.pack(self._order + "I", wanted + 1), at, size)
        if entry is None:
            return None
        _, _, _, section, value, _ = self._take("IBBHQQ", entry)
        where = self.place(value) if section else None
        return None if where is None else self._pages.take(where, _LONGEST * 4).partition(b"\0")[0]

    def _entry(self, name: bytes, offset: int, length: int) -> int | None:
        table = self._pages.take(offset, length)
        position = table.find(name)
        while position >= 0 and position % 24:
            position = table.find(name, position + 1)
        return offset + position if position >= 0 else None


def tables(pages: Pages) -> Tables | None:
    """Return the tables of an ELF file, or None if the file is damaged or is not an ELF file."""
    try:
        return Tables(pages)
    except (ValueError, struct.error, OverflowError):
        return None


def symbol(pages: Pages, name: str) -> str | None:
    """Return the text at a symbol's address in a library, or None if the library lacks the symbol."""
    file_tables = tables(pages)
    try:
        text = file_tables.symbol(name) if file_tables else None
    except (ValueError, struct.error, OverflowError):
        return None
    return None if text is None else text.decode("utf-8", "replace")


def data(pages: Pages) -> bytes:
    """Return the part of an ELF file that may contain readable texts. If the file is damaged or is not an ELF
    file, return its first 32 MiB.
    """
    file_tables = tables(pages)
    return file_tables.data() if file_tables else pages.take(0, _ALL)


def read_elf(pages: Pages | bytes) -> Elf | None:
    """Return the headers of an ELF file, or None if the file is damaged or is not an ELF file."""
    try:
        file = Tables(pages_of(pages) if isinstance(pages, bytes) else pages)
        runpath = _folders(file.texts(_RUNPATH))
        return Elf(
            architecture=_MACHINES.get(file.machine),
            soname=next(iter(file.texts(_SONAME)), None),
            needed=file.texts(_NEEDED),
            rpath=() if runpath else _folders(file.texts(_RPATH)),
            runpath=runpath,
            versions=tuple(dict.fromkeys(file.versions())),
            level=file.level(),
        )
    except (ValueError, struct.error, OverflowError):
        return None


def _folders(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(p for text in texts for p in text.split(":") if p)
