"""Read the flavours of virtual clusters: the nodes' Debian release, Slurm settings and MPI packages."""

from functools import cache
from typing import Literal

import msgspec

from toolkit.data import shipped_folder
from toolkit.errors import BadInput
from toolkit.knowledge.strict import tables, text_of

FILE = "flavours.toml"


class Flavour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of ``containers/cluster/flavours.toml``. Comments in ``flavours.toml`` explain the fields."""

    title: str
    release: str
    mpi_default: Literal["pmix", "pmi2", "none"]
    pmix_plugin: bool
    packages: tuple[str, ...]
    cgroup_plugin: Literal["disabled", "cgroup/v1"] = "disabled"


@cache
def flavours() -> dict[str, Flavour]:
    """Return all flavours by name, with the default flavour first.

    Raises:
        BadInput: if the shipped file is damaged.
    """
    file = shipped_folder("containers") / "cluster" / FILE
    try:
        return msgspec.convert(tables(text_of(file), str(file)), dict[str, Flavour])
    except msgspec.ValidationError as error:
        raise BadInput(
            f"{file}: {error}", fix="install toolkit again; this file is a part of toolkit"
        ) from error


def default_flavour() -> str:
    """Return the name of the default flavour."""
    return next(iter(flavours()))


def check_flavour(name: str) -> str:
    """Return ``name`` if ``name`` is the name of a flavour.

    Raises:
        BadInput: if the flavour does not exist; the error lists the existing flavours.
    """
    if name not in flavours():
        known = "; ".join(f"{key}: {flavour.title}" for key, flavour in flavours().items())
        raise BadInput(f"flavour {name!r}: not found", fix=f"choose one of {known}")
    return name
