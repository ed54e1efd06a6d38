"""Read the files of an image in any storage format. toolkit resolves all links inside the image."""

import fnmatch
import posixpath
from collections import deque
from collections.abc import Iterator
from typing import Literal, Protocol, runtime_checkable

Kind = Literal["file", "folder", "link", "other"]

MAX_READ = 32 << 20
"""Maximum number of bytes that one read returns, so that a malicious image cannot fill the memory."""
_MAX_LINKS = 40
_MAX_PATH = 4095
"""Linux's limits: the number of links that Linux follows to resolve one path, and the length of a path in
bytes (path_resolution(7)).
"""
_MAX_PARTS = 100
"""Maximum number of parts, separated by ``/``, in a pattern for :func:`glob`. toolkit's own patterns have at
most ten parts.
"""


class FileTree(Protocol):
    """The files of an image.

    All paths are absolute and normalised. No method follows links.
    """

    def kind(self, path: str) -> Kind | None:
        """Return the type of the file at ``path``, or None if it does not exist."""

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder; empty if the path is not a folder."""

    def target(self, path: str) -> str:
        """Return the target of a link, as the image stores it."""

    def content(self, path: str, limit: int = MAX_READ) -> bytes:
        """Return the first ``limit`` bytes of a file."""


@runtime_checkable
class Sliced(Protocol):
    """A file tree that can read a part of a file without reading the bytes before that part."""

    def piece(self, path: str, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of a file from ``offset``, or fewer bytes if the file ends earlier."""


def resolve(tree: FileTree, path: str) -> str | None:
    """Return ``path`` without links: toolkit replaces each link by its target inside the image.

    The result is None if the path does not exist, if toolkit must follow more than 40 links, or if the target
    of a link is empty, too long or not printable.
    """
    done, rest, links = "/", _parts(path), 0
    while rest:
        part = rest.popleft()
        if part == "..":
            done = posixpath.dirname(done)
            continue
        candidate = posixpath.join(done, part)
        kind = tree.kind(candidate)
        if kind is None:
            return None
        if kind != "link":
            done = candidate
            continue
        links += 1
        target = tree.target(candidate)
        if links > _MAX_LINKS or not 0 < len(target) <= _MAX_PATH or not target.isprintable():
            return None
        if target.startswith("/"):
            done = "/"
        rest.extendleft(reversed(_parts(target)))
    return done


def _parts(path: str) -> deque[str]:
    return deque(p for p in path.split("/") if p not in {"", "."})


def is_file(tree: FileTree, path: str) -> bool:
    """Return whether ``path`` is a regular file, or a link to a regular file."""
    real = resolve(tree, path)
    return real is not None and tree.kind(real) == "file"


def read(tree: FileTree, path: str, limit: int = MAX_READ) -> bytes | None:
    """Return the first ``limit`` bytes of a file; follow links. Return None if ``path`` is not a file."""
    real = resolve(tree, path)
    if real is None or tree.kind(real) != "file":
        return None
    return tree.content(real, limit)


def text(tree: FileTree, path: str, limit: int = MAX_READ) -> str | None:
    """Return the first ``limit`` bytes of a file as text, or None if ``path`` is not a file.

    U+FFFD replaces invalid UTF-8.
    """
    content = read(tree, path, limit)
    return None if content is None else content.decode("utf-8", "replace")


def names(tree: FileTree, path: str) -> tuple[str, ...]:
    """Return the sorted printable names in the folder ``path``; follow links. Empty if there is no such
    folder.
    """
    real = resolve(tree, path)
    return tuple(sorted(name for name in tree.names(real) if name.isprintable())) if real else ()


def glob(tree: FileTree, pattern: str) -> Iterator[str]:
    """Yield the paths that match a pattern such as ``/usr/lib/*/libmpi.so.*``, sorted in each folder.

    If several links lead to the same folder, toolkit searches the folder once.
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
