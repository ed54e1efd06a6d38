"""Find the MPI that mpi4py loads, if mpi4py was built for several MPIs.

Since mpi4py 4.1, its wheels have one extension module for each MPI ABI (binary interface). mpi4py tries to
open MPI libraries in a fixed order. mpi4py then imports the extension for the ABI of the first library that
it can open (mpi4py:src/mpi4py/_mpiabi.py).
"""

import posixpath
import re
from collections.abc import Iterator

from toolkit.image.files import tree as files
from toolkit.image.loader.loader import Loader

_VARIANT = re.compile(r"MPI\.(?P<abi>mpich|openmpi|mpiabi)\.(cpython|pypy|abi3).*so\Z")
_NAMES = ("libmpi.so", "libmpi.so.12", "libmpi.so.40")
_HOME = re.compile(r"^home[ \t]*=[ \t]*(/\S*)", re.MULTILINE)
_MOST = 1 << 16
_OPEN_MPI = b"ompi_mpi_comm_self"


def variants(loader: Loader, site: str) -> dict[str, str]:
    """Return the path of each mpi4py extension in the package folder ``site``, by ABI; empty if mpi4py was
    built for one MPI.
    """
    folder = f"{site}/mpi4py"
    if not files.is_file(loader.tree, f"{folder}/_mpiabi.py"):
        return {}
    named = ((_VARIANT.match(name), name) for name in files.names(loader.tree, folder))
    return {variant["abi"]: f"{folder}/{name}" for variant, name in named if variant}


def find_extension(loader: Loader, site: str) -> tuple[str, str] | None:
    """Return the path of the mpi4py extension that Python imports, and the path of the MPI that this
    extension loads. The second path is empty if toolkit does not find the MPI.

    The result is None if ``site`` has no mpi4py for several MPIs. For an mpi4py that was built for one MPI,
    callers read the name of this MPI in the ELF header of the only extension.
    """
    have = variants(loader, site)
    if not have:
        return None
    wanted_abi = re.sub(r"[ _-]", "", loader.environment.get("MPI4PY_MPIABI", "")).lower()
    wanted_abi = "mpich" if wanted_abi == "impi" else wanted_abi
    opened = None if wanted_abi else next(_loadable_libraries(loader, site), None)
    abi = wanted_abi or (_interface(loader, opened) if opened else "")
    path = have.get(abi)
    if path is None:
        return next(iter(have.values())), ""
    return path, _library(loader, path, opened) or ""


def _library(loader: Loader, path: str, first_library: str | None) -> str | None:
    """Return the path of the MPI that an extension loads, or None if toolkit does not find the MPI.

    mpi4py opens the library ``first_library`` before it loads the extension. If the extension needs the
    soname of this library, the MPI is ``first_library``. If not, the MPI is the library that ld.so finds.
    """
    own = loader.elf(path)
    needed = [name for name in (own.needed if own else ()) if name.startswith("libmpi")]
    elf = loader.elf(first_library) if first_library else None
    where = first_library if elf and elf.soname in needed else None
    for name in needed:
        where = where or loader.find(name, path)
    return (files.resolve(loader.tree, where) or where) if where else None


def _interface(loader: Loader, library: str) -> str:
    elf = loader.elf(library)
    if elf and (elf.soname or "").startswith("libmpi_abi"):
        return "mpiabi"
    return "openmpi" if _OPEN_MPI in loader.texts(library) else "mpich"


def _loadable_libraries(loader: Loader, site: str) -> Iterator[str]:
    """Yield the MPI libraries that mpi4py can open, in the order in which mpi4py tries them."""
    setting = loader.environment.get("MPI4PY_LIBMPI")
    for entry in setting.split(":") if setting else _folders(loader, site):
        real = files.resolve(loader.tree, entry) if entry else None
        folder = not entry or (real is not None and loader.tree.kind(real) == "folder")
        for name in (posixpath.join(entry, n) for n in _NAMES) if folder else (entry,):
            path = loader.find(name)
            if path and loader.elf(path) and None not in loader.closure(path)[0].values():
                yield path


def _folders(loader: Loader, site: str) -> Iterator[str]:
    """Yield the folders in which mpi4py looks for an MPI library, in the order of mpi4py's search.

    First comes ``lib`` in the virtual environment, then ``lib`` in the installation of its base Python. The
    last value is an empty text, which means the folders that ld.so searches.
    """
    prefix = site.partition("/lib/python")[0]
    settings = files.text(loader.tree, f"{prefix}/pyvenv.cfg", _MOST)
    base = prefix
    if settings is not None:
        yield f"{prefix}/lib"
        home = _HOME.search(settings)
        base = posixpath.dirname(home[1]) if home else "/usr"
    own = any(n.startswith("python3") for n in files.names(loader.tree, f"{base}/bin"))
    if own and base != "/usr":
        yield f"{base}/lib"
    yield ""
