"""List the names of the commands and Python modules in an image."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree
from toolkit.image.loader.ldcache import read_cache
from toolkit.model.facts import ImageFacts

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SITES = (
    "/usr/lib/python3/dist-packages",
    "/usr/lib/python3.*/*-packages",
    "/usr/lib64/python3.*/*-packages",
    "/usr/local/lib/python3.*/*-packages",
    "/usr/local/lib64/python3.*/*-packages",
)
_APPLICATIONS = ("/workspace", "/workspace/*", "/app", "/code", "/src", "/project", "/usr/src/*", "/opt/*")
_INIT = "__init__.py"
_MOST_FOLDERS, _MOST_NAMES = 60, 200
_ENDS = (".py", ".so", ".pyd")
_LONGEST = 1 << 16
_CACHE = "/etc/ld.so.cache"
_LONGEST_CACHE = 4 << 20


@dataclass(frozen=True, slots=True)
class Contents:
    """The names of the commands on PATH, and of the modules that any Python installation of the image can
    import.

    ``whole`` is false if a ``.pth`` file may add modules whose names toolkit does not know.
    """

    commands: frozenset[str]
    modules: frozenset[str]
    whole: bool = True
    folders: frozenset[str] = frozenset()
    """The folders on the image's PATH."""
    libraries: frozenset[str] = frozenset()
    """The sonames of libraries that ld.so finds in the image; empty if unknown."""
    applications: Mapping[str, str] = field(default_factory=dict)
    """Maps each Python file or package in folders such as /app and /workspace to its folder."""


def contents_of(tree: FileTree, facts: ImageFacts) -> Contents:
    """Return the names of the commands and modules in an image, including links without a target."""
    path = [folder for folder in facts.environment.get("PATH", _PATH).split(":") if folder.startswith("/")]
    commands = frozenset(name for folder in path for name in files.names(tree, folder))
    folders = list(_sites(tree, path, facts.environment.get("PYTHONPATH", "")))
    modules: set[str] = set()
    whole = True
    for folder in folders:
        for name in files.names(tree, folder):
            if name.endswith(".pth"):
                more, known = linked_folders(tree, folder, name)
                whole &= known
                folders += [folder for folder in more if folder not in folders]
            elif "-" not in name:
                modules.add(_module(name))
    libraries, applications = _libraries(tree, facts), _applications(tree)
    return Contents(commands, frozenset(modules), whole, frozenset(path), libraries, applications)


def _applications(tree: FileTree) -> dict[str, str]:
    """Return the folder of each Python file or package in the usual working directories of Docker images.

    Apptainer starts a container in the user's current folder, so a command cannot reach files in the image's
    working directory by a relative path.
    """
    folders = (folder for pattern in _APPLICATIONS for folder in files.glob(tree, pattern))
    found: dict[str, str] = {}
    for folder in islice(folders, _MOST_FOLDERS):
        for name in files.names(tree, folder)[:_MOST_NAMES]:
            if name == _INIT:
                continue
            if name.endswith(".py") or files.is_file(tree, f"{folder}/{name}/{_INIT}"):
                found.setdefault(name, folder)
    return found


def _libraries(tree: FileTree, facts: ImageFacts) -> frozenset[str]:
    """Return the sonames in /etc/ld.so.cache, and the file names in the folders of LD_LIBRARY_PATH. Return no
    names if the image has no valid ld.so.cache.
    """
    cached = read_cache(files.read(tree, _CACHE, _LONGEST_CACHE) or b"", facts.architecture)
    if not cached:
        return frozenset()
    folders = [
        folder for folder in facts.environment.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")
    ]
    return frozenset(cached) | {name for folder in folders for name in files.names(tree, folder)}


def _sites(tree: FileTree, path: list[str], pythonpath: str) -> Iterator[str]:
    prefixes = dict.fromkeys(posixpath.dirname(folder) for folder in path if folder.endswith("/bin"))
    patterns = [*_SITES, *(f"{prefix}/lib/python3.*/site-packages" for prefix in prefixes if prefix != "/")]
    site_folders = (folder for pattern in patterns for folder in files.glob(tree, pattern))
    yield from dict.fromkeys(
        (*site_folders, *(folder for folder in pythonpath.split(":") if folder.startswith("/")))
    )


def _module(name: str) -> str:
    """Return a file's module name, for example ``_cffi`` for ``_cffi.cpython-311-x86_64-linux-gnu.so``."""
    return name.partition(".")[0] if name.endswith(_ENDS) else name


def linked_folders(tree: FileTree, folder: str, name: str) -> tuple[list[str], bool]:
    """Return the folders that a ``.pth`` file adds to Python's path.

    The second returned value is false if the ``.pth`` file runs code of an editable installation (``pip
    install -e``), which may add other modules.
    """
    text = files.text(tree, posixpath.join(folder, name), _LONGEST) or ""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    known = "__editable__" not in text
    return [posixpath.join(folder, line) for line in lines if not line.startswith("import")], known
