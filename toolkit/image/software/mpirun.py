"""The launcher that belongs to an MPI library."""

import posixpath

from toolkit.image.files import tree as files
from toolkit.image.loader.loader import Loader

_NAMES = {
    "openmpi": ("mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.openmpi", "orterun", "prterun"),
    "intelmpi": ("mpirun", "mpiexec", "mpiexec.hydra"),
    "": ("mpirun", "mpiexec", "mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich"),
}
_KINDS = (
    ("intelmpi", (b"I_MPI_",)),
    ("hydra", (b"HYDRA", b"hydra")),
    ("openmpi", (b"libopen-rte", b"prterun", b"ompi", b"orterun", b"libprrte")),
)
"""Texts in a launcher that identify its kind; the first match counts, because each contains words of the
next.
"""
_HEAD = 8 << 20


def launcher(loader: Loader, prefix: str, implementation: str) -> tuple[str, str] | None:
    """Return the real path of an installation's launcher, and the path at which it was found.

    If several MPIs share /usr/bin, the administrator chooses ``mpirun`` (update-alternatives), so a launcher
    of another kind is skipped.
    """
    names = _NAMES.get(implementation, _NAMES[""])
    beside = [posixpath.join(prefix, "bin", name) for name in names]
    on_path = [p for name in names if (p := loader.program(name))]
    for path in dict.fromkeys((*beside, *on_path)):
        real = files.resolve(loader.tree, path)
        if real is None or loader.tree.kind(real) != "file":
            continue
        if (kind := _kind(loader, real)) == _family(implementation) or (not kind and path in beside):
            return real, path
    return None


def _family(implementation: str) -> str:
    return implementation if implementation in {"openmpi", "intelmpi"} else "hydra"


def _kind(loader: Loader, real: str) -> str:
    content = files.read(loader.tree, real, _HEAD) or b""
    return next((kind for kind, texts in _KINDS if any(t in content for t in texts)), "")
