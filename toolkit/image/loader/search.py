"""Find an image's folders with software that the distribution's package manager did not install.

toolkit searches for installations below /opt (conda, Spack, EasyBuild, Intel oneAPI, HPC-X), below /usr/local
and below folders in / that Linux distributions usually lack. toolkit also searches the folders in PATH,
LD_LIBRARY_PATH and similar variables. The search is breadth-first. It stops at a maximum number of folders,
or at a maximum number of file names. It skips folders that usually contain neither programs nor libraries.
"""

import errno
import os
import posixpath
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from toolkit.image.files import tree as files
from toolkit.image.files.bounded import BoundedTree
from toolkit.image.files.tree import FileTree

_SYSTEM = frozenset(
    (
        *("bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "media", "mnt"),
        *("proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"),
    )
)
_ROOTS = ("/opt", "/usr/local", "/usr/mpi", "/usr/lib64", "/usr/lib")
_HOMES = ("/root", "/home", "/srv", "/mnt")
"""Folders in which users build software; toolkit searches these folders last."""
_SHUT = os.strerror(errno.EACCES)
_NAMED = ("PATH", "LD_LIBRARY_PATH")
_PREFIXES = ("VIRTUAL_ENV", "CONDA_PREFIX", "MPI_HOME", "MPI_DIR", "MPI_ROOT", "I_MPI_ROOT", "OMPI_DIR")
_DEPOTS = "JULIA_DEPOT_PATH"
_LIBRARIES = re.compile(r"lib(32|64|x32)?\Z")
_IN_LIBRARIES = re.compile(
    r"(lib(64)?\Z|bin\Z|release|debug|openmpi|mpich|mvapich|mpi\Z|.*-linux-gnu|python3)", re.IGNORECASE
)
_IN_MPI = re.compile(rf"gcc\Z|{_IN_LIBRARIES.pattern}", re.IGNORECASE)
"""The subfolders of a folder ``mpi`` that toolkit searches. They include gcc, because openSUSE has Open MPI
in /usr/lib64/mpi/gcc/openmpi4.
"""
_IN_SYSTEM = re.compile(r"(lib(64)?\Z|bin\Z|openmpi|mpich|mvapich|mpi\Z|.*-linux-gnu|python3)", re.IGNORECASE)
_BARREN = re.compile(
    r"(include|share|doc|man|etc|src|pkgs|var|tests?|__pycache__|node_modules|locale|ssl|conda-meta|cuda.*"
    r"|site-packages|dist-packages|pkgconfig|cmake|stubs|nvvm|games|modulefiles|lmod|registries"
    r"|\.(?!(spack-env|venv)\Z).*)\Z"
)
"""Folders that toolkit does not enter, because they usually contain neither programs nor libraries."""
_WITHIN = {
    ".conda": ("envs",),
    ".julia": ("artifacts",),
    ".local": ("bin", "lib", "share"),
    ".mamba": ("envs",),
    ".micromamba": ("envs",),
    ".pixi": ("envs",),
    "share": ("julia/artifacts", "mamba/envs"),
}
"""Parts of skipped folders that contain software: environments of conda and its variants, packages of ``pip
install --user``, and Julia depots.
"""
_PADDING = "__spack_path_"
"""The name prefix of Spack's padding folders, each of which contains one folder
(spack:lib/spack/spack/util/path.py). Spack pads an installation path so that a longer path can replace it
later.
"""
_PEEKED = re.compile(r"(share|src|var|tests?|cuda.*|games)\Z")
_FILE = re.compile(
    r".*\.(so[\d.]*|py|pyc|h|hpp|a|la|txt|md|json|[jt]s|css|html?|gz|xz|bz2|zip|tar|tgz|sh|csh|pc|conf|cfg|ini"
    r"|log|c|cc|cpp|f90|mod|dat|xml|whl|ya?ml|toml|rst|png|svg|sif|deb|rpm)\Z"
)
_DEEPEST = 12
"""The maximum number of folder levels below a start folder such as /opt. NVIDIA's HPC SDK and Spack need
about as many levels: /opt/nvidia/hpc_sdk/Linux_x86_64/24.3/comm_libs/12.3/hpcx/hpcx-2.17.1/ompi/lib."""
_LOOSE = 4
"""The maximum depth in folder levels at which toolkit treats a file outside ``bin`` as a possible program.
"""
_MOST_FOLDERS = 3000
_MOST_NAMES = 30_000
_MOST_LISTED = 400


@dataclass(frozen=True, slots=True)
class SearchFolders:
    """The folders of an image that contain libraries, programs or Python packages (``sites``).

    ``other_programs`` are the paths of possible programs that are not in a folder with the name ``bin``.

    ``whole`` is false if toolkit stopped the search at a limit.
    """

    libraries: tuple[str, ...]
    programs: tuple[str, ...]
    sites: tuple[str, ...]
    other_programs: tuple[str, ...]
    whole: bool


class _Walk:
    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.libraries: list[str] = []
        self.programs: list[str] = []
        self.sites: list[str] = []
        self.other_programs: list[str] = []
        self.entered: set[str] = set()
        self.names = 0
        self.cut = False
        self.waiting: deque[tuple[str, int]] = deque()

    def run(self, roots: tuple[str, ...]) -> None:
        self.waiting.extend((root, 0) for root in roots)
        while self.waiting:
            if len(self.entered) >= _MOST_FOLDERS or self.names >= _MOST_NAMES:
                self.cut = True
                return
            self._enter(*self.waiting.popleft())

    def _enter(self, path: str, depth: int) -> None:
        real = files.resolve(self.tree, path)
        if real is None or real in self.entered or self.tree.kind(real) != "folder":
            return
        self.entered.add(real)
        name = posixpath.basename(path)
        system = path in {"/usr/lib", "/usr/lib64"}
        if _LIBRARIES.match(name) or _LIBRARIES.match(posixpath.basename(posixpath.dirname(path))):
            if not system:
                self.libraries.append(path)
            known = _IN_SYSTEM if system else _IN_MPI if name == "mpi" else _IN_LIBRARIES
            self._go_on(path, depth, known)
        elif name in {"bin", "sbin", "bin64"}:
            self.programs += [path, *self._folders(path)]
        else:
            self._go_on(path, depth, None)

    def _go_on(self, path: str, depth: int, pattern: "re.Pattern[str] | None") -> None:
        listed = files.names(self.tree, path)
        self.names += len(listed)
        # Intel MPI has lib/debug and lib/release. Search "debug" last, because env/vars.sh uses lib/release.
        for name in sorted(listed, key=lambda name: name.startswith("debug")):
            below = posixpath.join(path, name)
            if name.startswith("python3") and pattern is not None:
                self._python(below)
            elif _FILE.match(name) or (pattern and not pattern.match(name)):
                continue
            elif _BARREN.match(name):
                self._peek(below, name, depth, pattern)
                self.waiting.extend((f"{below}/{within}", depth + 1) for within in _WITHIN.get(name, ()))
            elif name.startswith(_PADDING):
                self.waiting.append((below, depth))
            elif not files.names(self.tree, below):
                self._list_file(below, depth, pattern)
            elif depth < _DEEPEST:
                self.waiting.append((below, depth + 1))
            else:
                self.cut = True

    def _peek(self, path: str, name: str, depth: int, pattern: "re.Pattern[str] | None") -> None:
        """Record ``path`` as a possible program if it is a file. If ``path`` is a folder such as ``share`` at
        depth 0 or 1 of the search, record the possible programs in this folder, but not in its subfolders.
        """
        if name.startswith("."):
            return
        if files.is_file(self.tree, path):
            self._list_file(path, depth, pattern)
        elif depth <= 1 and pattern is None and _PEEKED.match(name):
            for inside in files.names(self.tree, path):
                below = posixpath.join(path, inside)
                if not _FILE.match(inside) and files.is_file(self.tree, below):
                    self._list_file(below, depth, pattern)

    def _list_file(self, path: str, depth: int, pattern: "re.Pattern[str] | None") -> None:
        if depth <= _LOOSE and pattern is None and len(self.other_programs) < _MOST_LISTED:
            self.other_programs.append(path)

    def _folders(self, path: str) -> Iterator[str]:
        for name in files.names(self.tree, path):
            below = posixpath.join(path, name)
            real = None if _FILE.match(name) else files.resolve(self.tree, below)
            if real and self.tree.kind(real) == "folder" and not name.startswith(("_", ".")):
                yield below

    def _python(self, path: str) -> None:
        for name in ("site-packages", "dist-packages"):
            site = posixpath.join(path, name)
            real = files.resolve(self.tree, site)
            if real and self.tree.kind(real) == "folder" and site not in self.sites:
                self.sites.append(site)


def places(tree: FileTree, environment: dict[str, str]) -> SearchFolders:
    """Return the software folders of an image.

    The Python package folders are sorted: folders that variables such as PATH select come first, and folders
    in /usr come last.
    """
    own = [f"/{n}" for n in files.names(tree, "/") if n not in _SYSTEM and not n.startswith(".")]
    walk = _Walk(tree)
    named = tuple(dict.fromkeys(_named_prefixes(environment)))
    for path in own:
        if files.is_file(tree, path) and not _FILE.match(path):
            walk.other_programs.append(path)
    walk.run(tuple(dict.fromkeys((*named, *_ROOTS, *own))))
    with skip_forbidden_folders(tree):
        walk.run(_HOMES)

    def rank(site: str) -> int:
        by_name = next((n for n, prefix in enumerate(named) if site.startswith(f"{prefix}/")), None)
        return by_name if by_name is not None else len(named) + site.startswith("/usr/")

    return SearchFolders(
        libraries=tuple(walk.libraries),
        programs=tuple(walk.programs),
        sites=tuple(sorted(walk.sites, key=rank)),
        other_programs=tuple(walk.other_programs),
        whole=not walk.cut,
    )


@contextmanager
def skip_forbidden_folders(tree: FileTree) -> Iterator[None]:
    """Ignore read errors in folders that the user has no permission to enter: the user's ranks cannot enter
    these folders, either.
    """
    unread = tree.unread if isinstance(tree, BoundedTree) else {}
    before = set(unread)
    yield
    for path in [p for p, why in unread.items() if why == _SHUT and p not in before]:
        del unread[path]


def _named_prefixes(environment: dict[str, str]) -> Iterator[str]:
    """Yield the installation prefixes that environment variables name, except prefixes such as /usr."""
    named = [environment.get(name, "") for name in _PREFIXES]
    named += [f"{depot}/artifacts" for depot in environment.get(_DEPOTS, "").split(":") if depot]
    named += [posixpath.dirname(p) for name in _NAMED for p in environment.get(name, "").split(":")]
    for path in named:
        normal = posixpath.normpath(path)
        if path.startswith("/") and normal not in {"/", "/usr", "/usr/local", "/usr/lib"}:
            yield normal
