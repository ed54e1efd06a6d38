"""Find the library that a program in an image would load, as ld.so does it (ld.so(8))."""

import posixpath
import re
from dataclasses import dataclass, field

from toolkit.image import tree as files
from toolkit.image.elf import Elf, read_elf
from toolkit.image.tree import FileTree

_DEFAULT = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_INCLUDES = 16


@dataclass
class Loader:
    """Searches one image; remembers what it has read."""

    tree: FileTree
    environment: dict[str, str]
    _elves: dict[str, Elf | None] = field(default_factory=dict)

    def folders(self) -> tuple[str, ...]:
        """Return the folders that every program searches: LD_LIBRARY_PATH, ld.so.conf, the system's."""
        given = self.environment.get("LD_LIBRARY_PATH", "").split(":")
        configured = _configured(self.tree, "/etc/ld.so.conf", _INCLUDES)
        triplets = [p for p in files.glob(self.tree, "/usr/lib/*-linux-gnu*") if _is_folder(self.tree, p)]
        return tuple(
            dict.fromkeys(p for p in (*given, *configured, *triplets, *_DEFAULT) if p.startswith("/"))
        )

    def find(self, soname: str, user: str | None = None) -> str | None:
        """Return the path at which ``user`` (else any program) finds ``soname``."""
        own = self.search_of(user) if user else ()
        for folder in (*own, *self.folders()):
            path = posixpath.join(folder, soname)
            if files.is_file(self.tree, path):
                return path
        return None

    def elf(self, path: str) -> Elf | None:
        """Read the ELF header of the file that ``path`` leads to."""
        if path not in self._elves:
            content = files.read(self.tree, path)
            self._elves[path] = read_elf(content) if content else None
        return self._elves[path]

    def search_of(self, path: str) -> tuple[str, ...]:
        """Return the folders that a file names itself, with ``$ORIGIN`` put in."""
        found = self.elf(path)
        real = files.resolve(self.tree, path) or path
        origin = posixpath.dirname(real)
        return tuple(
            posixpath.normpath(p.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))
            for p in (found.search if found else ())
        )

    def closure(self, path: str, most: int = 60) -> dict[str, str | None]:
        """Return soname → path of all that a file needs, itself left out; ``None`` for what is missing."""
        found: dict[str, str | None] = {}
        waiting = [path]
        while waiting and len(found) < most:
            user = waiting.pop(0)
            elf = self.elf(user)
            for soname in elf.needed if elf else ():
                if soname not in found:
                    found[soname] = where = self.find(soname, user)
                    if where:
                        waiting.append(where)
        return found

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
    for script in files.glob(tree, "/.singularity.d/env/[0-9]*.sh"):
        for name, raw in re.findall(
            r"^\s*export\s+(\w+)=(.*)$", files.text(tree, script) or "", re.MULTILINE
        ):
            values[name] = _value(raw.strip(), name, values)
    return values


def _value(raw: str, name: str, values: dict[str, str]) -> str:
    value = raw
    # docker images come as export X="${X:-"value"}", with quotes inside quotes
    if found := re.fullmatch(rf'"\$\{{{name}:-\\?"?(.*?)\\?"?\}}"', value):
        value = found[1]
    elif len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    for known in ("PATH", "LD_LIBRARY_PATH"):
        value = re.sub(rf"\$\{{?{known}(:-[^}}]*)?\}}?(?!\w)", values.get(known, ""), value)
    return value


def _configured(tree: FileTree, path: str, depth: int) -> list[str]:
    folders: list[str] = []
    for raw in (files.text(tree, path) or "").splitlines():
        line = raw.partition("#")[0].strip()
        if line.startswith("include") and depth:
            for included in files.glob(tree, line.removeprefix("include").strip()):
                folders += _configured(tree, included, depth - 1)
        elif line.startswith("/"):
            folders.append(line)
    return folders


def _is_folder(tree: FileTree, path: str) -> bool:
    real = files.resolve(tree, path)
    return real is not None and tree.kind(real) == "folder"
