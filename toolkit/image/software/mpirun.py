"""Find the launcher (mpirun or mpiexec) that belongs to an MPI library."""

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
"""Strings that identify the kind of a launcher; the first match decides.

The order matters, because Intel MPI's launcher, for example, also contains the strings of Hydra.
"""
_HEAD = 8 << 20
_STARTER = "mpiexec.hydra"
"""The program that Intel MPI's script ``mpirun`` looks up on PATH and starts."""
_VARIABLES = ("mpivars.sh", "../env/vars.sh", "../setvars.sh")
"""The scripts that Intel MPI's ``mpirun`` sources if I_MPI_ROOT is not set. The scripts put Intel MPI's
folder first on PATH.
"""


def launcher(loader: Loader, prefix: str, implementation: str) -> tuple[str, str] | None:
    """Return the real path of an MPI's launcher, and the path (possibly a link) at which toolkit found it.

    ``prefix`` is the folder of the MPI's installation. toolkit searches ``bin`` in this folder, then PATH. If
    several MPIs are installed in /usr, ``mpirun`` may be a link to the launcher of a different MPI
    (update-alternatives). toolkit skips such a launcher. The result is None if no launcher is left.
    """
    names = _NAMES.get(implementation, _NAMES[""])
    beside = [posixpath.join(prefix, "bin", name) for name in names]
    on_path = [p for name in names if (p := loader.program(name))]
    for path in dict.fromkeys((*beside, *on_path)):
        real = files.resolve(loader.tree, path)
        if real is None or loader.tree.kind(real) != "file":
            continue
        if (kind := _kind(loader, real)) == _family(implementation) or (not kind and path in beside):
            return _started_by(loader, real, path)
    return None


def _started_by(loader: Loader, real_path: str, path: str) -> tuple[str, str]:
    """Return the launcher's real path and its path (possibly a link). They are ``real_path`` and ``path``
    unless ``path`` is a script that does not start its own MPI's launcher.

    Intel MPI's script ``mpirun`` starts the first ``mpiexec.hydra`` on PATH, which may belong to MPICH. If
    this program is not Intel MPI's, return the ``mpiexec.hydra`` beside the script instead of the script.
    """
    content = files.read(loader.tree, real_path, _HEAD) or b""
    folder = posixpath.dirname(path)
    own = posixpath.join(folder, _STARTER)
    target = files.resolve(loader.tree, own)
    if not content.startswith(b"#!") or _STARTER.encode() not in content or target is None:
        return real_path, path
    read = (posixpath.normpath(posixpath.join(folder, name)) for name in _VARIABLES)
    led = "I_MPI_ROOT" not in loader.environment and any(files.is_file(loader.tree, file) for file in read)
    starter = loader.program(_STARTER)
    same = starter is not None and files.resolve(loader.tree, starter) == target
    return (real_path, path) if led or same else (target, own)


def _family(implementation: str) -> str:
    return implementation if implementation in {"openmpi", "intelmpi"} else "hydra"


def _kind(loader: Loader, real_path: str) -> str:
    content = files.read(loader.tree, real_path, _HEAD) or b""
    return next((kind for kind, texts in _KINDS if any(t in content for t in texts)), "")
