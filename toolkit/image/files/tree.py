"""Files of an image, read-only, in any storage format; links never lead out of it."""

import fnmatch
import posixpath
from collections import deque
from collections.abc import Iterator
from typing import Literal, Protocol, runtime_checkable

Kind = Literal["file", "folder", "link", "other"]

MAX_READ = 32 << 20
"""Bytes of a file that are read at once; a hostile image must not fill the memory."""
_MAX_LINKS = 40
_MAX_PATH = 4095
"""Limits of Linux (path_resolution(7))."""
_MAX_PARTS = 100
"""Parts of a pattern; the patterns of this package have at most ten."""


class FileTree(Protocol):
    """The interface of an image for the inspector. Paths are absolute and normal; no method follows links."""

    def kind(self, path: str) -> Kind | None:
        """Return the kind of file at ``path``, or ``None`` if there is none."""

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder; empty if it is not a folder."""

    def target(self, path: str) -> str:
        """Return the target of a link, unchanged."""

    def content(self, path: str, limit: int = MAX_READ) -> bytes:
        """Return at most ``limit`` bytes of a file."""


@runtime_checkable
class Sliced(Protocol):
    """A tree that can read from the middle of a file without reading the bytes before it."""

    def piece(self, path: str, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of a file from ``offset`` on; fewer at its end."""


def resolve(tree: FileTree, path: str) -> str | None:
    """Follow links as the kernel does with the image as root; ``None`` if nothing exists there."""
    done, rest, links = "/", _parts(path), 0
    while rest:
        part = rest.popleft()
        if part == "..":
            done = posixpath.dirname(done)
            continue
        here = posixpath.join(done, part)
        kind = tree.kind(here)
        if kind is None:
            return None
        if kind != "link":
            done = here
            continue
        links += 1
        target = tree.target(here)
        if links > _MAX_LINKS or not 0 < len(target) <= _MAX_PATH or not target.isprintable():
            return None
        if target.startswith("/"):
            done = "/"
        rest.extendleft(reversed(_parts(target)))
    return done


def _parts(path: str) -> deque[str]:
    return deque(p for p in path.split("/") if p not in {"", "."})


def is_file(tree: FileTree, path: str) -> bool:
    """Return whether ``path`` leads to a regular file."""
    real = resolve(tree, path)
    return real is not None and tree.kind(real) == "file"


def read(tree: FileTree, path: str, limit: int = MAX_READ) -> bytes | None:
    """Return the content of the file that ``path`` leads to, or ``None`` if there is none."""
    real = resolve(tree, path)
    if real is None or tree.kind(real) != "file":
        return None
    return tree.content(real, limit)


def text(tree: FileTree, path: str, limit: int = MAX_READ) -> str | None:
    """Return a file as text; bytes that are not UTF-8 become replacement marks."""
    content = read(tree, path, limit)
    return None if content is None else content.decode("utf-8", "replace")


def names(tree: FileTree, path: str) -> tuple[str, ...]:
    """Return the sorted printable names in the folder that ``path`` leads to."""
    real = resolve(tree, path)
    return tuple(sorted(name for name in tree.names(real) if name.isprintable())) if real else ()


def glob(tree: FileTree, pattern: str) -> Iterator[str]:
    """Yield the paths that match a pattern such as ``/usr/lib/*/libmpi.so.*``, in order.

    A folder that several links lead to is entered once, by the first of them.
    """
    parts = [p for p in pattern.split("/") if p]
    if len(parts) <= _MAX_PARTS:
        yield from _glob(tree, "/", parts, set())


def _glob(tree: FileTree, folder: str, parts: list[str], entered: set[tuple[str, int]]) -> Iterator[str]:
    if not parts:
        return
    first, *rest = parts
    wild = any(c in first for c in "*?[")
    for name in [n for n in names(tree, folder) if fnmatch.fnmatchcase(n, first)] if wild else [first]:
        path = posixpath.join(folder, name)
        real = resolve(tree, path)
        if real is None:
            continue
        if not rest:
            yield path
        elif (real, len(rest)) not in entered:
            entered.add((real, len(rest)))
            yield from _glob(tree, path, rest, entered)
