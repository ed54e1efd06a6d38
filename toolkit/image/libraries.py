"""Versions of libraries that are found as the loader finds them, whichever packager put them there."""

import re

from toolkit.image import tree as files
from toolkit.image.loader import Loader
from toolkit.image.packages import Found, Untold
from toolkit.image.tree import FileTree

_LIBC = (
    "/lib/*-linux-gnu*/libc.so.6",
    "/usr/lib/*-linux-gnu*/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib64/libc.so.6",
)
_ELSEWHERE = (
    "/opt/*/venv/lib",
    "/opt/venv/lib",
    "/venv/lib",
    "/opt/*/lib",
    "/opt/*/*/lib",
    "/usr/local/lib*",
)


def glibc(tree: FileTree) -> Found | Untold | None:
    """Read the release from the text of the C library."""
    seen = None
    for path in (p for pattern in _LIBC for p in files.glob(tree, pattern)):
        seen = path
        if said := re.search(rb"stable release version (\d{1,3}\.\d{1,3})", files.read(tree, path) or b""):
            return Found(said[1].decode(), f"{path}: release version {said[1].decode()}")
    return Untold(f"{seen} does not tell its release") if seen else None


def ucx(loader: Loader, packages: dict[str, str]) -> Found | Untold | None:
    """Find UCX by its main library, libucp."""
    return _library(loader, packages, "libucp.so.0", ("libucx0", "libucx0t64"), rb"1\.\d{1,3}\.\d{1,3}")


def hwloc(loader: Loader, packages: dict[str, str]) -> Found | Untold | None:
    """Find the hwloc that programs load."""
    return _library(
        loader, packages, "libhwloc.so.15", ("libhwloc15", "libhwloc15t64"), rb"2\.\d{1,3}\.\d{1,3}"
    )


def operations(tree: FileTree, places: tuple[str, ...]) -> frozenset[str] | None:
    """Return the tensor operations that Horovod's library has classes for; ``None`` if it has none."""
    for path in (p for s in places for p in files.glob(tree, f"{s}/horovod/tensorflow/mpi_lib*.so")):
        content = files.read(tree, path) or b""
        found = {name.lower() for name in ("MPI", "Gloo", "NCCL") if f"{name}Allreduce".encode() in content}
        return frozenset(found) or None
    return None


def _library(
    loader: Loader, packages: dict[str, str], soname: str, names: tuple[str, ...], form: bytes
) -> Found | Untold | None:
    """Find a library, and its version by its package, else by the only number in it that can be it."""
    found = loader.find(soname)
    path = found or next((p for e in _ELSEWHERE for p in files.glob(loader.tree, f"{e}/{soname}")), None)
    package = next((name for name in names if name in packages), None)
    if package and (path is None or _of_system(loader, path)):
        return Found(packages[package], f"dpkg: {package} {packages[package]}")
    if path is None:
        return None
    # The compiler may put what is no text right before the number; the zero after it is sure.
    said = set(re.findall(rb"(?<![\d.])(" + form + rb")(?=\0)", files.read(loader.tree, path) or b""))
    if len(said) == 1:
        return Found(version := said.pop().decode(), f"{path} says {version}")
    return Untold(f"{path} does not tell its version")


def _of_system(loader: Loader, path: str) -> bool:
    return (files.resolve(loader.tree, path) or path).startswith(("/usr/lib", "/lib"))
