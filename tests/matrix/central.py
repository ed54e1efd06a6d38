"""Install an image's MPI on a virtual cluster, as a computing centre installs an MPI for its users."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.matrix import build
from toolkit.cluster import use
from toolkit.image.inspect import inspect

if TYPE_CHECKING:
    from tests.matrix.place import Place

SHARED = "/work/opt"
BUILT_FOR = "/opt/centre"
"""Folder on every node for MPIs that were built for this folder; other MPIs are copied to ``SHARED``."""
_LINE = "# the MPI of the centre"


def prefix(name: str) -> str:
    """Return the folder on the nodes for the MPI of the image ``name``."""
    mpi = inspect(build.sif(name)).mpi
    if mpi is None or mpi.prefix is None:
        raise RuntimeError(f"{name}: has no MPI with a prefix of its own")
    return mpi.prefix if mpi.prefix.startswith(f"{BUILT_FOR}/") else f"{SHARED}/{name}"


@contextmanager
def central(place: "Place", name: str) -> Iterator[None]:
    """Install the MPI of the image ``name`` for the ``with`` block; do nothing if ``name`` is empty."""
    if not name:
        yield
        return
    there, shell = prefix(name), "/home/ada/.bashrc"
    place.bring([name])
    if there.startswith(SHARED):
        _copy(place, "ada", "login", name, there)
    else:
        for node in place.cluster.hosts:
            _copy(place, "root", node, name, there)
    # .bashrc returns early in a non-interactive shell, so PATH must be set at its start.
    _do(place, "ada", "login", f"sed -i -e '1i PATH={there}/bin:$PATH {_LINE}' -e '/{_LINE}$/d' {shell}")
    place.central = name
    try:
        yield
    finally:
        place.central = ""
        _do(place, "ada", "login", f"sed -i '/{_LINE}$/d' {shell}")


def _copy(place: "Place", user: str, node: str, name: str, there: str) -> None:
    mpi = inspect(build.sif(name)).mpi
    _do(
        place,
        user,
        node,
        f"[ -x {there}/bin/mpirun ] || {{ mkdir -p {there} && singularity exec --userns {place.sif(name)} "
        f"tar -C {mpi.prefix if mpi else ''} --exclude='lib/python*' --exclude='bin/python*' "
        f"--exclude='bin/pip*' --exclude='bin/activate*' -cf - . | tar -C {there} -xf -; }}",
    )


def _do(place: "Place", user: str, node: str, line: str) -> None:
    said = bytearray()
    words = ("bash", "-c", line)
    if use.execute(place.cluster, node, user, words, lambda out, err: said.extend(out + err)):
        raise RuntimeError(f"{node} of {place.cluster.name}: {said.decode(errors='replace')}")
