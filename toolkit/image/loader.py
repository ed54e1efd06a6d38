"""Find the library that a program in an image would load, as ld.so does it (ld.so(8))."""

import posixpath
import re
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Literal

from toolkit.errors import CheckFailed
from toolkit.image import tree as files
from toolkit.image.elf import Elf, read_elf
from toolkit.image.tree import FileTree

_DEFAULT = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MOST_FILES = 2000
"""Programs and libraries whose headers are read; a training image has a hundred that matter."""
_MOST_TEXT = 1 << 16
_MOST_SCRIPTS = 100
_MOST_INCLUDED = 200
_LONGEST = 1 << 13
"""Of a variable; scripts that set PATH to $PATH:$PATH again and again come to more than memory holds."""


@dataclass
class Loader:
    """Searches one image; remembers what it has read."""

    tree: FileTree
    environment: dict[str, str]
    _elves: dict[str, Elf | None] = field(default_factory=dict)

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The folders of LD_LIBRARY_PATH."""
        return tuple(p for p in self.environment.get("LD_LIBRARY_PATH", "").split(":") if p.startswith("/"))

    @cached_property
    def configured(self) -> tuple[str, ...]:
        """The folders that every program searches last: those of ld.so.conf and the system's."""
        triplets = [p for p in files.glob(self.tree, "/usr/lib/*-linux-gnu*") if _is_folder(self.tree, p)]
        return tuple(dict.fromkeys((*_configured(self.tree, "/etc/ld.so.conf", set()), *triplets, *_DEFAULT)))

    def find(self, soname: str, *users: str) -> str | None:
        """Return the path at which a program finds ``soname``.

        ``users`` are the file that needs it, the one that loaded that, and so on to the program. The RPATH of
        each is searched, unless the first has a RUNPATH, which is its own affair; LD_LIBRARY_PATH stands
        between the two.
        """
        own = self._elf_folders(users[0], "runpath") if users else ()
        inherited = () if own else [p for user in users for p in self._elf_folders(user, "rpath")]
        for folder in dict.fromkeys((*inherited, *self.given, *own, *self.configured)):
            path = posixpath.join(folder, soname)
            if files.is_file(self.tree, path):
                return path
        return None

    def elf(self, path: str) -> Elf | None:
        """Read the ELF header of the file that ``path`` leads to."""
        if path not in self._elves:
            if len(self._elves) >= _MOST_FILES:
                raise CheckFailed(
                    f"the image has more than {_MOST_FILES} programs and libraries to look into"
                )
            content = files.read(self.tree, path)
            self._elves[path] = read_elf(content) if content else None
        return self._elves[path]

    def closure(self, path: str, most: int = 200) -> tuple[dict[str, str | None], bool]:
        """Return soname → path of all that a file needs, itself left out, and whether that is all.

        The path is ``None`` for what is missing.
        """
        found: dict[str, str | None] = {}
        waiting: deque[tuple[str, ...]] = deque([(path,)])
        while waiting and len(found) < most:
            users = waiting.popleft()
            elf = self.elf(users[0])
            for soname in elf.needed if elf else ():
                if soname not in found:
                    found[soname] = where = self.find(soname, *users)
                    if where:
                        waiting.append((where, *users))
        return found, not waiting

    def _elf_folders(self, path: str, kind: Literal["rpath", "runpath"]) -> tuple[str, ...]:
        """Return the folders that a file names itself, with ``$ORIGIN`` put in."""
        found = self.elf(path)
        written: tuple[str, ...] = getattr(found, kind) if found else ()
        origin = posixpath.dirname(files.resolve(self.tree, path) or path)
        folders = (p.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for p in written)
        return tuple(posixpath.normpath(p) for p in folders if p.startswith("/"))

    def program(self, name: str) -> str | None:
        """Return where the image's PATH finds a program."""
        for folder in self.environment.get("PATH", _PATH).split(":"):
            path = posixpath.join(folder, name)
            if folder.startswith("/") and files.is_file(self.tree, path):
                return path
        return None


def environment(tree: FileTree) -> dict[str, str]:
    """Return what the image sets for its programs: the ``export`` lines of Apptainer's scripts.

    The scripts are read and not run, so a value with ``$`` in it stays as it is written,
    but for ``$PATH`` and the like, which are put in.
    """
    values = {"PATH": _PATH}
    for script in islice(files.glob(tree, "/.singularity.d/env/[0-9]*.sh"), _MOST_SCRIPTS):
        for name, raw in re.findall(
            r"^[ \t]*export[ \t]+(\w+)=(.*)$", files.text(tree, script, _MOST_TEXT) or "", re.MULTILINE
        ):
            values[name] = _value(raw.strip()[:_LONGEST], name, values)[:_LONGEST]
    return values


def _value(raw: str, name: str, values: dict[str, str]) -> str:
    value = raw
    # docker images come as export X="${X:-"value"}", with quotes inside quotes
    if found := re.fullmatch(rf'"\$\{{{name}:-\\?"?(.*?)\\?"?\}}"', value):
        value = found[1]
    elif len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    for known in ("PATH", "LD_LIBRARY_PATH"):
        # Not re.sub, which takes a backslash in the text of a variable for a reference to a group.
        value = values.get(known, "").join(re.split(rf"\$\{{?{known}(?::-[^}}]*)?\}}?(?!\w)", value))
    return value


def _configured(tree: FileTree, path: str, visited: set[str]) -> list[str]:
    """Read ld.so.conf as ldconfig(8) does: an included pattern may be relative to the file's own folder."""
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
