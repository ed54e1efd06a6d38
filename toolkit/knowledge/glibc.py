"""Read ``glibc.toml``: the kernel and processor that an image's C library and programs need."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.versions import within


class Kernel(Row, frozen=True, kw_only=True):
    """The oldest kernel on which programs start if their glibc release is within the bounds ``glibc``."""

    glibc: str
    kernel: str
    architecture: str = ""


class Levels(Row, frozen=True, kw_only=True):
    """The names of the x86-64 levels (sets of processor instructions), the lowest level first."""

    levels: tuple[str, ...]


class Instructions(Row, frozen=True, kw_only=True):
    """A package, and the x86-64 levels whose processors lack (``lacking``) or may lack (``doubtful``)
    instructions that the package needs.
    """

    package: str
    versions: str
    lacking: tuple[str, ...]
    doubtful: tuple[str, ...]


class GlibcKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``glibc.toml``."""

    kernel: tuple[Kernel, ...]
    cpu: Levels
    avx: Instructions


@cache
def glibc() -> GlibcKnowledge:
    """Return the content of ``glibc.toml``."""
    return read("glibc", GlibcKnowledge)


def oldest_kernel(version: str, architecture: str | None) -> Kernel | None:
    """Return the row of ``glibc.toml`` with the oldest kernel on which programs with this glibc release
    start; ``None`` if no row matches the release.
    """
    rows = (r for r in glibc().kernel if r.architecture in {"", architecture} and within(version, r.glibc))
    return next(rows, None)


def level(name: str) -> int | None:
    """Return the position of an x86-64 level, counted from 0; ``None`` for an unknown name."""
    levels = glibc().cpu.levels
    return levels.index(name) if name in levels else None
