"""What can be put into an image and what goes together: ``recipes/knowledge/versions.toml`` as values."""

from functools import cache

import msgspec

from toolkit.data import shipped
from toolkit.errors import BadInput


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: str


class MpiPackages(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An MPI that a distribution carries: what to install to build against it, and to run with it.

    ``speaks`` are the launch interfaces that it was built with, ``pmix`` the PMIx client beside it.
    """

    implementation: str
    version: str
    speaks: tuple[str, ...] = ()
    pmix: str | None = None
    build: tuple[str, ...]
    run: tuple[str, ...]


class BaseRow(_Row, frozen=True, kw_only=True):
    """A release of a distribution to start from."""

    name: str
    image: str
    release: str
    python: str
    glibc: str | None = None
    mpi: tuple[MpiPackages, ...]


class PythonRow(_Row, frozen=True, kw_only=True):
    """A package and the Pythons that it runs on."""

    version: str
    python: tuple[str, ...]


class HorovodRow(_Row, frozen=True, kw_only=True):
    """A Horovod, the TensorFlows that it builds with, and what its build needs besides."""

    version: str
    tensorflow: str
    build: tuple[str, ...]


class Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    base: tuple[BaseRow, ...]
    mpi4py: tuple[PythonRow, ...]
    tensorflow: tuple[PythonRow, ...]
    horovod: tuple[HorovodRow, ...]

    def base_of(self, name: str) -> BaseRow:
        """Return the row of a base that a checked recipe names."""
        return next(row for row in self.base if row.name == name)

    def horovod_of(self, version: str) -> HorovodRow:
        return next(row for row in self.horovod if row.version == version)


@cache
def known() -> Known:
    """Read the file that came with toolkit."""
    file = shipped("recipes") / "knowledge" / "versions.toml"
    try:
        return msgspec.toml.decode(file.read_bytes(), type=Known)
    except (msgspec.DecodeError, OSError) as error:
        raise BadInput(f"{file}: {error}", fix="this file came with toolkit: install it again") from error
