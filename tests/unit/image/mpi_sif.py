"""Write a small SIF that resembles a user's image with Open MPI 4.1.4."""

from pathlib import Path

from tests.unit.image.sifs import sif, squashfs
from tests.unit.image.test_inspect import BASE, OPEN_MPI_4


def write_mpi_sif(path: Path) -> Path:
    """Write the SIF to ``path``; its libraries and programs have names and versions, but no code."""
    files = {
        **BASE,
        **OPEN_MPI_4,
        "/usr/bin/python": "->python3",
        **dict.fromkeys(("/usr/bin/sleep", "/usr/bin/true"), ""),
    }
    path.write_bytes(sif(squashfs({name: _content(given) for name, given in files.items()})))
    return path


def _content(given: str | bytes) -> str | bytes:
    return given if isinstance(given, bytes) or given.startswith("->") else given.encode()
