"""Find the components (modules) of Open MPI, PMIx and PRRTE (Open MPI 5's launcher) in a library or plugin.

A library contains one structure for each of its components (open-mpi/ompi:opal/mca/mca.h
``mca_base_component_2_1_0_t``, openpmix/openpmix:src/mca/mca.h). The structure contains the names (as text)
and the versions (as three numbers) of the project, of the framework (the kind of component) and of the
component. toolkit searches libraries for such structures. This search needs no symbol table, so toolkit also
finds components in stripped libraries.
"""

import re
import struct
from collections import Counter
from dataclasses import dataclass

_PROJECT, _FRAMEWORK, _NAME, _NUMBERS = 16, 32, 64, 12
_SIZE = _PROJECT + _NUMBERS + _FRAMEWORK + _NUMBERS + _NAME + _NUMBERS
_START = re.compile(
    b"|".join(
        p.ljust(_PROJECT, b"\0").replace(b"\0", rb"\0")
        for p in (b"ompi", b"opal", b"orte", b"oshmem", b"pmix", b"prte")
    )
)
_WORD = re.compile(rb"[a-z][a-z0-9_]*\Z")
_MOST = 2000
_VERSION_LIMIT = 100
"""toolkit reads bytes as a component only if each number of the project's version is below this limit."""


@dataclass(frozen=True, slots=True)
class McaComponent:
    """A component; ``release`` is the version of its project, without suffixes such as ``rc1``."""

    project: str
    release: str
    framework: str
    name: str


def components(content: bytes) -> tuple[McaComponent, ...]:
    """Return the components whose structures a binary contains, in the order of their position, without
    duplicates.
    """
    components_by_key: dict[McaComponent, None] = {}
    for number, start in enumerate(_START.finditer(content)):
        if number >= _MOST:
            break
        at = start.start()
        if at + _SIZE <= len(content) and (component := _read(content, at)):
            components_by_key[component] = None
    return tuple(components_by_key)


def release(components: tuple[McaComponent, ...], *projects: str) -> str | None:
    """Return the most frequent version of the components of ``projects`` (names such as ``pmix``). Return
    None if no component belongs to these projects.
    """
    named = Counter(c.release for c in components if c.project in projects)
    return named.most_common(1)[0][0] if named else None


def by_framework(components: tuple[McaComponent, ...], *frameworks: str) -> dict[str, tuple[str, ...]]:
    """Return the sorted names of the components, by framework. ``base`` is not the name of a component, so
    the result omits ``base``. The result also omits frameworks without components.
    """
    return {
        framework: names
        for framework in frameworks
        if (names := tuple(sorted({c.name for c in components if c.framework == framework} - {"base"})))
    }


def _read(content: bytes, offset: int) -> McaComponent | None:
    project = content[offset : offset + _PROJECT].rstrip(b"\0").decode()
    numbers = struct.unpack_from("<3i", content, offset + _PROJECT)
    framework = _word(content, offset + _PROJECT + _NUMBERS, _FRAMEWORK)
    name = _word(content, offset + _PROJECT + _NUMBERS + _FRAMEWORK + _NUMBERS, _NAME)
    if not framework or not name or not all(0 <= n < _VERSION_LIMIT for n in numbers):
        return None
    return McaComponent(project, ".".join(map(str, numbers)), framework, name)


def _word(content: bytes, offset: int, size: int) -> str:
    """Return the text of a zero-padded field of ``size`` bytes; empty if the field is not a name."""
    field = content[offset : offset + size].rstrip(b"\0")
    return field.decode() if _WORD.match(field) else ""
