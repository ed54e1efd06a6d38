"""What a program or library says of itself in its ELF header: architecture, what it needs, where it looks."""

import io
from dataclasses import dataclass

_MACHINES = {
    "EM_X86_64": "x86_64",
    "EM_AARCH64": "aarch64",
    "EM_PPC64": "ppc64le",
    "EM_RISCV": "riscv64",
    "EM_S390": "s390x",
    "EM_386": "i386",
    "EM_ARM": "arm",
}


@dataclass(frozen=True, slots=True)
class Elf:
    """``search`` is the RPATH or RUNPATH, with ``$ORIGIN`` as it is written."""

    architecture: str | None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


def read_elf(content: bytes) -> Elf | None:
    """Read an ELF file; ``None`` for anything else, and for one that is damaged."""
    if not content.startswith(b"\x7fELF"):
        return None
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.elffile import ELFFile

    try:
        file = ELFFile(io.BytesIO(content))
        machine = _MACHINES.get(file["e_machine"])
        soname: str | None = None
        needed: list[str] = []
        search: list[str] = []
        for segment in file.iter_segments():
            if not isinstance(segment, DynamicSegment):
                continue
            for tag in segment.iter_tags():
                # pyelftools puts the text of a tag into an attribute that is named after it.
                word = tag.entry.d_tag.removeprefix("DT_").lower()
                text = str(getattr(tag, word, ""))
                match word:
                    case "soname":
                        soname = text
                    case "needed":
                        needed.append(text)
                    case "rpath" | "runpath":
                        search += [p for p in text.split(":") if p]
        return Elf(machine, soname, tuple(needed), tuple(search))
    except Exception:  # noqa: BLE001 - pyelftools raises its own, construct's and built-in errors on damaged files
        return None
