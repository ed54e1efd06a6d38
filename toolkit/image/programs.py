"""Programs and extensions of Python in an image that load an MPI, and the library that each really gets."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from toolkit.image import tree as files
from toolkit.image.loader import Loader
from toolkit.image.search import Places

MPI_SONAME = re.compile(
    r"lib(mpi|mpich|mpi_abi|mpi_mt|mpi_ibm|mpi_cray|mpi_gnu_\d+|mpi_intel|mpi_nvidia)\.so(\.\d+)*\Z"
)
"""A library that implements MPI, and not one of its bindings for a language."""
_HINTS = (b"libmpi", b"libopen_mpi")
_EXTENSIONS = (
    "mpi4py/MPI.*so",
    "mpi4py/MPI.*.so",
    "horovod/tensorflow/mpi_lib*.so",
    "horovod/torch/mpi_lib*.so",
    "horovod/mxnet/mpi_lib*.so",
)
_OWN = re.compile(
    r"(mpi(run|exec|cc|cxx|c\+\+|CC|f77|f90|fort|java|version|vars|chversion|exec\.\w+|run\.\w+)"
    r"|mpi-\w+|ompi[-_].*|orte.*|opal.*|osh.*|shmem.*|prte.*|prun.*|pterm.*|pmix.*|hydra.*|impi_.*|IMB-.*)\Z"
)
"""Programs that come with an MPI and tell of nothing but that."""
_HEAD = 1 << 20
"""The names of needed libraries stand in the first part of a file, unless a tool has moved them."""
_MOST = 400
_ALL = 96 << 20


def loading(loader: Loader, places: Places, entrypoint: tuple[str, ...]) -> dict[str, str]:
    """Return path → real path of the MPI that it loads, or nothing where the image's loader finds none."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    left = _ALL
    for path in islice(_candidates(loader, places, entrypoint), _MOST):
        real = files.resolve(loader.tree, path)
        if real is None or real in seen or left <= 0:
            continue
        seen.add(real)
        head = files.read(loader.tree, real, _HEAD) or b""
        left -= len(head)
        if head.startswith(b"\x7fELF") and any(hint in head for hint in _HINTS):
            library = _loaded(loader, path)
            if library is not None:
                found[path] = library
    return found


def favourite(programs: dict[str, str]) -> list[str]:
    """Return the libraries that programs load, the one that most load first."""
    return [library for library, _ in Counter(v for v in programs.values() if v).most_common()]


def _candidates(loader: Loader, places: Places, entrypoint: tuple[str, ...]) -> Iterator[str]:
    for site in places.sites:
        for pattern in _EXTENSIONS:
            yield from files.glob(loader.tree, f"{site}/{pattern}")
    if entrypoint:
        first = entrypoint[0]
        path = first if first.startswith("/") else loader.program(first)
        yield from [path] if path else []
    yield from places.loose
    for folder in places.programs:
        for name in files.names(loader.tree, folder):
            if not _OWN.match(name):
                yield posixpath.join(folder, name)


def _loaded(loader: Loader, path: str) -> str | None:
    """Return the MPI that a file loads, itself or through a library; ``None`` if it loads none."""
    closure, _ = loader.closure(path)
    for soname, library in closure.items():
        if MPI_SONAME.match(soname):
            return (files.resolve(loader.tree, library) or library) if library else ""
    return None
