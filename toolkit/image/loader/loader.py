"""Find the libraries that a program in an image would load, with the rules of ld.so(8)."""

import posixpath
import re
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from sys import intern
from typing import Literal

from toolkit.errors import CheckFailed
from toolkit.image.files import tree as files
from toolkit.image.files.bounded import BoundedTree
from toolkit.image.files.pages import Pages, pages_of
from toolkit.image.files.tree import FileTree, Sliced
from toolkit.image.loader.elf import Elf, data, read_elf
from toolkit.image.loader.ldcache import read_cache

_DEFAULT = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MOST_FILES = 2000
"""Maximum number of programs and libraries whose headers toolkit reads. A training image has about a hundred
such files."""
_MOST_TEXT = 1 << 16
_MOST_INCLUDED = 200
_CACHE = "/etc/ld.so.cache"
_ITSELF = re.compile(r"ld(-linux[\w-]*|64)\.so\.\d\Z")
"""The names of ld.so itself. toolkit does not report ld.so as a missing library, because every process has
already loaded ld.so. In images of Nix, Guix or EESSI, ld.so may be outside the search folders.
"""
_SHARED = re.compile(r"\.so(\.|\Z)")
_MOST_CACHE = 8 << 20
_MOST_PATHS, _MOST_FOLDERS, _MOST_CLOSURES = 50_000, 256, 1000
"""Maximum numbers of entries in the caches of paths, folders and needed libraries. For some training images,
toolkit looks up 20,000 paths.
"""
_MOST_PATH = 4095
_MOST_NAMES = 16 << 20
"""Maximum total size in bytes of the names in the ELF headers of an image's programs and libraries."""
_CACHE_BYTES = 24 << 20
"""Maximum size in bytes of each of two caches: the pages of files, and the readable bytes of libraries. With
these caches, toolkit rarely unpacks a library twice.
"""
_LIB = {"x86_64": ("lib/x86_64-linux-gnu", "lib64"), "aarch64": ("lib/aarch64-linux-gnu", "lib64")}
"""For each architecture, the value of ``$LIB`` in search folders on Debian and on other distributions."""
_NAME = 64
"""The approximate memory in bytes that an empty Python string needs."""
_PROGRAMS = ("/bin/sh", "/usr/bin/env", "/bin/ls", "/bin/busybox")


@dataclass
class Loader:
    """Find libraries in one image by the rules of ld.so, and cache the headers of the files."""

    tree: FileTree
    environment: dict[str, str]
    read_limit: int = files.MAX_READ
    """If ``tree`` cannot read single pages of a file, toolkit reads the file's first ``read_limit`` bytes."""
    bytes_read: int = 0
    """The number of bytes that toolkit has read so far to find needed libraries."""
    names_size: int = 0
    """The total size in bytes of the names in the ELF headers that toolkit has read so far."""
    _elves: dict[str, Elf | None] = field(default_factory=dict)
    _pages: OrderedDict[str, Pages] = field(default_factory=OrderedDict)
    _texts: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    _real: dict[str, str | None] = field(default_factory=dict)
    _folders: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    _closures: dict[tuple[str, ...], tuple[dict[str, str | None], bool]] = field(default_factory=dict)

    @cached_property
    def library_path(self) -> tuple[str, ...]:
        """The folders in the image's LD_LIBRARY_PATH."""
        return tuple(p for p in self.environment.get("LD_LIBRARY_PATH", "").split(":") if p.startswith("/"))

    @cached_property
    def preloaded(self) -> dict[str, str]:
        """The libraries in LD_PRELOAD, by soname. ld.so loads these libraries before any other library. If a
        program needs one of their sonames, ld.so does not search for another file.
        """
        named = re.split(r"[:\s]+", self.environment.get("LD_PRELOAD", ""))
        paths = [path for path in named if path.startswith("/") and self._file(path)]
        headers = [(path, self.elf(path)) for path in paths]
        return {elf.soname or posixpath.basename(path): path for path, elf in headers if elf}

    @cached_property
    def architecture(self) -> tuple[str, str] | None:
        """The architecture of the image, and the program whose ELF header names it; None if unknown."""
        for program in _PROGRAMS:
            if (elf := self.elf(program)) and elf.architecture:
                return elf.architecture, program
        return None

    @cached_property
    def index(self) -> dict[str, str] | None:
        """The path of each library in ldconfig's index, by soname; None if the image has no index."""
        content = files.read(self.tree, _CACHE, _MOST_CACHE)
        return read_cache(content, self.architecture[0] if self.architecture else None) if content else None

    @cached_property
    def standard(self) -> tuple[str, ...]:
        """The default search folders of the image's ld.so."""
        if musl := next(files.glob(self.tree, "/lib/ld-musl-*.so.1"), None):
            return _of_musl(self.tree, musl)
        triplets = [p for p in files.glob(self.tree, "/usr/lib/*-linux-gnu*") if _is_folder(self.tree, p)]
        return (*triplets, *_DEFAULT)

    @cached_property
    def default_folders(self) -> tuple[str, ...]:
        """The folders that ld.so searches by default: the folders in ld.so.conf, then :attr:`standard`."""
        return tuple(dict.fromkeys((*_configured(self.tree, "/etc/ld.so.conf", set()), *self.standard)))

    @cached_property
    def offered_names(self) -> tuple[str, ...]:
        """The sorted sonames that :meth:`find` finds for a program without RPATH and RUNPATH."""
        last = self.standard if self.index is not None else self.default_folders
        lying = {
            name
            for folder in (*self.library_path, *last)
            for name in files.names(self.tree, files.resolve(self.tree, folder) or folder)
            if _SHARED.search(name)
        }
        return tuple(sorted({*(self.index or ()), *lying}))

    def find(self, soname: str, *users: str) -> str | None:
        """Return the path of the library that ld.so loads for ``soname``, such as ``libmpi.so.40``, or None
        if ld.so does not find the library.

        ``users`` are the file that needs the library, then the file that loaded that file, and so on up to
        the program. ld.so searches the RPATH of each file in ``users``, then LD_LIBRARY_PATH, then ldconfig's
        index, then the default folders. If the file that needs the library has a RUNPATH, ld.so ignores all
        RPATHs and searches that RUNPATH after LD_LIBRARY_PATH. If the image has no ldconfig index, toolkit
        searches the folders in ld.so.conf instead.
        """
        if "/" in soname:
            return soname if self._file(soname) else None
        if soname in self.preloaded:
            return self.preloaded[soname]
        own = self._elf_folders(users[0], "runpath") if users else ()
        inherited = () if own else [p for user in users for p in self._elf_folders(user, "rpath")]
        wanted = self.elf(users[0]) if users else None
        if path := self._in_folders((*inherited, *self.library_path, *own), soname, wanted):
            return path
        if self.index is None:
            return self._in_folders(self.default_folders, soname, wanted)
        listed = self.index.get(soname)
        if listed and self._file(listed):
            return listed
        return self._in_folders(self.standard, soname, wanted)

    def fixes(self, soname: str, *users: str) -> bool:
        """Return whether ld.so finds ``soname`` in an RPATH folder, so that LD_LIBRARY_PATH has no effect.

        ``users`` are as in :meth:`find`.
        """
        if self._elf_folders(users[0], "runpath"):
            return False
        inherited = tuple(p for user in users for p in self._elf_folders(user, "rpath"))
        return self._in_folders(inherited, soname, self.elf(users[0])) is not None

    def _in_folders(self, folders: tuple[str, ...], soname: str, user: Elf | None) -> str | None:
        """Return the path of the first file ``soname`` in ``folders``; None if no folder contains the file.

        Like ld.so, skip a file if its architecture differs from the architecture of ``user``.
        """
        for folder in dict.fromkeys(folders):
            path = posixpath.join(folder, soname)
            if not self._file(path):
                continue
            elf = self.elf(path) if user else None
            if elf is None or user is None or elf.architecture == user.architecture:
                return path
        return None

    def real_path(self, path: str) -> str | None:
        """Return ``path`` with all links resolved, or None if the file does not exist."""
        if path not in self._real:
            if len(self._real) >= _MOST_PATHS:
                self._real.clear()
            self._real[path] = files.resolve(self.tree, path)
        return self._real[path]

    def _file(self, path: str) -> bool:
        real = self.real_path(path)
        return real is not None and self.tree.kind(real) == "file"

    def elf(self, path: str) -> Elf | None:
        """Return the ELF headers of the file at ``path``, or None if the file is not an ELF file."""
        real = self.real_path(path) or path
        if real not in self._elves:
            if len(self._elves) >= _MOST_FILES:
                raise CheckFailed(
                    f"the image has more programs and libraries than toolkit's limit of {_MOST_FILES}"
                )
            pages = self.pages(real)
            self._elves[real] = elf = read_elf(pages)
            self.names_size += _weight(elf) if elf else 0
            if self.names_size > _MOST_NAMES:
                raise CheckFailed(
                    "the names in the ELF headers of the image's programs and libraries need more memory "
                    f"than toolkit's limit of {_MOST_NAMES >> 20} MiB"
                )
            self.bytes_read += pages.held
        return self._elves[real]

    def pages(self, path: str) -> Pages:
        """Return the file at ``path`` as pages (pieces of a fixed size); empty if there is no such file.

        If possible, toolkit reads only the pages that a caller needs.
        """
        real = self.real_path(path)
        if real is None or self.tree.kind(real) != "file":
            return pages_of(b"")
        if real not in self._pages:
            tree = self.tree
            sliced = tree.sliced if isinstance(tree, BoundedTree) else True
            if isinstance(tree, Sliced) and sliced:
                self._pages[real] = Pages(partial(tree.piece, real))
            else:
                content = files.read(tree, real, self.read_limit) or b""
                self.bytes_read += len(content)
                self._pages[real] = pages_of(content)
        self._pages.move_to_end(real)
        while len(self._pages) > 1 and sum(p.held for p in self._pages.values()) > _CACHE_BYTES:
            self._pages.popitem(last=False)
        return self._pages[real]

    def headers(self) -> dict[str, Elf]:
        """Return the headers of all programs and libraries that toolkit has read so far, by real path."""
        return {path: elf for path, elf in self._elves.items() if elf is not None}

    def texts(self, path: str) -> bytes:
        """Return the non-executable bytes of the library at ``path``, which contain its readable texts."""
        real = self.real_path(path) or path
        if real not in self._texts:
            self._texts[real] = data(self.pages(real))
        self._texts.move_to_end(real)
        while len(self._texts) > 1 and sum(map(len, self._texts.values())) > _CACHE_BYTES:
            self._texts.popitem(last=False)
        return self._texts[real]

    def closure(self, path: str, *users: str, limit: int = 200) -> tuple[dict[str, str | None], bool]:
        """Return the paths, by soname, of the libraries that a file needs directly or indirectly, and whether
        the list is complete.

        A missing library has the path None. ``users`` are the file that loads the file ``path``, then the
        file that loads that file, and so on up to the program. The list is incomplete if the file needs more
        than ``limit`` libraries.
        """
        key = (path, *users, str(limit))
        if key not in self._closures:
            if len(self._closures) >= _MOST_CLOSURES:
                self._closures.clear()
            self._closures[key] = self._follow((path, *users), limit)
        return self._closures[key]

    def _follow(self, start: tuple[str, ...], limit: int) -> tuple[dict[str, str | None], bool]:
        closure: dict[str, str | None] = {}
        waiting: deque[tuple[str, ...]] = deque([start])
        while waiting and len(closure) < limit:
            users = waiting.popleft()
            elf = self.elf(users[0])
            for soname in elf.needed if elf else ():
                if soname not in closure:
                    where = self.find(soname, *users)
                    if where is None and _ITSELF.match(soname):
                        continue
                    closure[soname] = where = intern(where) if where else None
                    if where:
                        waiting.append((where, *users))
        return closure, not waiting

    def _elf_folders(self, path: str, kind: Literal["rpath", "runpath"]) -> tuple[str, ...]:
        """Return the RPATH or RUNPATH folders of a file, with ``$ORIGIN`` and ``$LIB`` replaced."""
        key = (path, kind)
        if key not in self._folders:
            if len(self._folders) >= _MOST_FOLDERS:
                self._folders.clear()
            self._folders[key] = self._written(path, kind)
        return self._folders[key]

    def _written(self, path: str, kind: Literal["rpath", "runpath"]) -> tuple[str, ...]:
        elf = self.elf(path)
        written: tuple[str, ...] = getattr(elf, kind) if elf else ()
        origin = posixpath.dirname(self.real_path(path) or path)
        libs = _LIB.get((elf.architecture if elf else None) or "", ("lib",))
        folders = (
            _put_variable(_put_variable(p, "ORIGIN", origin), "LIB", lib)
            for p in written
            for lib in (libs if re.search(r"\$\{?LIB", p) else libs[:1])
        )
        known = [posixpath.normpath(p) for p in islice(folders, _MOST_INCLUDED) if p.startswith("/")]
        return tuple(p for p in known if len(p) <= _MOST_PATH)

    def program(self, name: str) -> str | None:
        """Return the path of the first program with this name on the image's PATH, or None."""
        for folder in self.environment.get("PATH", _PATH).split(":"):
            path = posixpath.join(folder, name)
            if folder.startswith("/") and files.is_file(self.tree, path):
                return path
        return None


def _weight(elf: Elf) -> int:
    named = (*elf.needed, *elf.rpath, *elf.runpath, *elf.versions)
    return sum(map(len, named)) + _NAME * len(named)


def _put_variable(text: str, name: str, value: str) -> str:
    return text.replace(f"${{{name}}}", value).replace(f"${name}", value)


def _of_musl(tree: FileTree, loader: str) -> tuple[str, ...]:
    """Return the folders in musl's file ``/etc/ld-musl-ARCHITECTURE.path``. If the file names no folder,
    return musl's default folders (musl:ldso/dynlink.c).
    """
    name = posixpath.basename(loader).removesuffix(".so.1")
    written = re.split(r"[:\n]", files.text(tree, f"/etc/{name}.path", _MOST_TEXT) or "")
    return tuple(p for p in written if p.startswith("/")) or ("/lib", "/usr/local/lib", "/usr/lib")


def _configured(tree: FileTree, path: str, visited: set[str]) -> list[str]:
    """Return the folders that ld.so.conf and its included files name, in the order of ldconfig(8)."""
    real = files.resolve(tree, path)
    if real is None or real in visited or len(visited) >= _MOST_INCLUDED:
        return []
    visited.add(real)
    folders: list[str] = []
    for raw in (files.text(tree, real, _MOST_TEXT) or "").splitlines():
        words = raw.partition("#")[0].split()
        if words[:1] == ["include"]:
            for pattern in words[1:]:
                for included in files.glob(tree, posixpath.join(posixpath.dirname(path), pattern)):
                    folders += _configured(tree, included, visited)
        elif words and words[0].startswith("/"):
            folders.append(words[0].partition("=")[0])
    return folders


def _is_folder(tree: FileTree, path: str) -> bool:
    real = files.resolve(tree, path)
    return real is not None and tree.kind(real) == "folder"
