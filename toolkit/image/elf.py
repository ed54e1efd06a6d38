"""What a program or library says of itself in its ELF header: architecture, what it needs, where it looks."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_MACHINES = {
    "EM_X86_64": "x86_64",
    "EM_AARCH64": "aarch64",
    "EM_PPC64": "ppc64le",
    "EM_RISCV": "riscv64",
    "EM_S390": "s390x",
    "EM_386": "i386",
    "EM_ARM": "arm",
}
_SEGMENTS = 128
_TAGS = 1024
_LONGEST = 4096
"""More of any than a sane file has: a hostile one says that it has billions."""


@dataclass(frozen=True, slots=True)
class Elf:
    """``rpath`` and ``runpath`` have ``$ORIGIN`` as written; where both are there, only RUNPATH counts."""

    architecture: str | None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()


def read_elf(content: bytes) -> Elf | None:
    """Read an ELF file; ``None`` for anything else, and for one that is damaged."""
    if not content.startswith(b"\x7fELF"):
        return None
    from elftools.elf.elffile import ELFFile

    try:
        file = ELFFile(io.BytesIO(content))
        found: dict[str, list[str]] = {}
        for tag, text in _texts(file, content):
            found.setdefault(tag, []).append(text)
    except Exception:  # noqa: BLE001 - pyelftools raises its own, construct's and built-in errors on damaged files
        return None
    runpath = _folders(found.get("DT_RUNPATH", []))
    return Elf(
        architecture=_MACHINES.get(file["e_machine"]),
        soname=next(iter(found.get("DT_SONAME", [])), None),
        needed=tuple(found.get("DT_NEEDED", [])),
        rpath=() if runpath else _folders(found.get("DT_RPATH", [])),
        runpath=runpath,
    )


def _folders(texts: list[str]) -> tuple[str, ...]:
    return tuple(p for text in texts for p in text.split(":") if p)


def _texts(file: "ELFFile", content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the tags of the dynamic segment that name a text.

    The tables are walked here, and not by pyelftools: it reads as many entries as the file claims to have.
    """
    from elftools.common.utils import struct_parse

    def entry(shape: str, at: int) -> dict[str, int | str]:
        return struct_parse(getattr(file.structs, shape), file.stream, stream_pos=at)  # type: ignore[no-any-return]  # pyelftools has no types

    count, size = min(file["e_phnum"], _SEGMENTS), file["e_phentsize"]
    segments = [entry("Elf_Phdr", file["e_phoff"] + n * size) for n in range(count)]
    dynamic = next((s for s in segments if s["p_type"] == "PT_DYNAMIC"), None)
    if dynamic is None:
        return
    size = file.structs.Elf_Dyn.sizeof()
    tags: list[tuple[str, int]] = []
    for n in range(min(int(dynamic["p_filesz"]) // size, _TAGS)):
        read = entry("Elf_Dyn", int(dynamic["p_offset"]) + n * size)
        if read["d_tag"] == "DT_NULL":
            break
        tags.append((str(read["d_tag"]), int(read["d_val"])))
    names = next((value for tag, value in tags if tag == "DT_STRTAB"), 0)
    start = next(
        names - int(s["p_vaddr"]) + int(s["p_offset"])
        for s in segments
        if s["p_type"] == "PT_LOAD" and 0 <= names - int(s["p_vaddr"]) < int(s["p_filesz"])
    )
    for tag, value in tags:
        if tag in {"DT_SONAME", "DT_NEEDED", "DT_RPATH", "DT_RUNPATH"}:
            text = content[start + value : start + value + _LONGEST].partition(b"\0")[0]
            yield tag, text.decode("utf-8", "replace")
