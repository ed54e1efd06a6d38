"""Find the libraries that programs of an image load, and read the versions of these libraries."""

import posixpath
import re
from dataclasses import dataclass
from itertools import chain

from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree
from toolkit.image.loader.loader import Loader
from toolkit.image.loader.search import SearchFolders
from toolkit.image.software.packages import PackageVersion, UnknownVersion

_LIBC = (
    "/lib/*-linux-gnu*/libc.so.6",
    "/usr/lib/*-linux-gnu*/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib64/libc.so.6",
    "/lib/libc.so.6",
    "/usr/lib/libc.so.6",
)


@dataclass(frozen=True, slots=True)
class Finder:
    """Find libraries in an image.

    ``packages`` maps the image's Debian packages to their versions. ``mpi_libraries`` maps the soname of each
    library that the image's MPI loads to the path of the library.
    """

    loader: Loader
    places: SearchFolders
    packages: dict[str, str]
    mpi_libraries: dict[str, str]

    def find_reachable(self, soname: str) -> str | None:
        """Return the path of the library ``soname`` that the MPI loads. If the MPI loads no such library,
        return the path that ld.so finds, or None.
        """
        return self.mpi_libraries.get(soname) or self.loader.find(soname)

    def anywhere(self, soname: str) -> str | None:
        """Return the path of the library ``soname`` that programs can load. If they can load none, return the
        first file ``soname`` in the image's library folders, or None.
        """
        lying = (f"{folder}/{soname}" for folder in self.places.libraries)
        return self.find_reachable(soname) or next(
            (p for p in lying if files.is_file(self.loader.tree, p)), None
        )

    def version(
        self, path: str | None, names: tuple[str, ...], form: bytes
    ) -> PackageVersion | UnknownVersion | None:
        """Return a library's version from its Debian package, or from a text in the library at ``path``.

        ``names`` are the Debian packages that may contain the library. ``form`` is a regular expression for
        the version in the library. If several different versions match, or none, the version is unknown.
        """
        package = next((name for name in names if name in self.packages), None)
        if package and (path is None or _of_system(self.loader, path)):
            return PackageVersion(self.packages[package], f"dpkg: {package} {self.packages[package]}")
        if path is None:
            return None
        # A NUL byte usually precedes the version, but a compiler may put other bytes there.
        for before in (rb"\0", rb"(?<![\d.])"):
            versions = set(re.findall(before + rb"(" + form + rb")(?=\0)", self.loader.texts(path)))
            if len(versions) == 1:
                return PackageVersion(version := versions.pop().decode(), f"{path} says {version}")
        return UnknownVersion(f"{path} does not contain its version")

    def folder(self, path: str) -> str:
        """Return the folder of the library at ``path``, after following links."""
        return posixpath.dirname(files.resolve(self.loader.tree, path) or path)

    def split_plugins(self, folder: str, form: "re.Pattern[str]") -> tuple[dict[str, str], dict[str, str]]:
        """Return two mappings by plugin name: the paths of the plugins in ``folder`` that ld.so can load, and
        the missing libraries of all other plugins in ``folder``.

        ``form`` matches the file name of a plugin; group 1 is the name of the plugin.
        """
        good: dict[str, str] = {}
        bad: dict[str, str] = {}
        for file in files.names(self.loader.tree, folder):
            named = form.match(file)
            path = posixpath.join(folder, file)
            if named is None or named[1] in good or not files.is_file(self.loader.tree, path):
                continue
            lacks = [s for s, where in self.loader.closure(path)[0].items() if where is None]
            if lacks:
                bad[named[1]] = " ".join(lacks)
            else:
                good[named[1]] = path
        return good, {name: why for name, why in bad.items() if name not in good}


def glibc(tree: FileTree, c_library: str | None) -> PackageVersion | UnknownVersion | None:
    """Return the release of glibc from a text in the C library.

    toolkit first reads the C library in the usual folders, then ``c_library``, the C library that programs
    load. Images of Nix and Guix have no C library in the usual folders.
    """
    last_path = None
    lying = (p for pattern in _LIBC for p in files.glob(tree, pattern))
    for path in chain(lying, filter(None, (c_library,))):
        last_path = path
        if match := re.search(rb"stable release version (\d{1,3}\.\d{1,3})", files.read(tree, path) or b""):
            return PackageVersion(match[1].decode(), f"{path}: release version {match[1].decode()}")
    return UnknownVersion(f"{last_path} does not contain its release") if last_path else None


def _of_system(loader: Loader, path: str) -> bool:
    return (files.resolve(loader.tree, path) or path).startswith(("/usr/lib", "/lib"))
