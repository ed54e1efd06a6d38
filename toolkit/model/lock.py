"""A recipe resolved to every file and step that an image is built from."""

import hashlib
from typing import Literal

import msgspec

from toolkit.model.solution import Component, Solution

SCHEMA = "toolkit.lock/2"

CompiledComponent = Literal["ucx", "pmix", "openmpi", "mpi4py", "horovod"]
"""Components that can be compiled: each has a script in ``containers/parts``."""

Helper = Literal["cuda"]
"""Archives that the script of another component unpacks, by a script in ``containers/parts``."""

PYTHON_PACKAGES: frozenset[str] = frozenset({"mpi4py", "horovod"})
"""Compiled components whose script makes a wheel; the scripts of other components install files."""


class LockedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file to fetch: a wheel, a source archive or a Debian package.

    ``origin`` says where to download it, in the words of toolkit.image.locks.origins; the hash identifies it.
    ``size`` is in bytes.
    """

    name: str
    version: str
    file: str
    origin: str
    sha256: str
    size: int


class LockedBase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The image that all components are installed on.

    ``name`` is the distribution with its release (``debian:bookworm``), ``image`` the published image without
    a digest (``debian:bookworm-slim``). ``published`` is the published image with its digest; it is empty if
    no registry answered. The base is then bootstrapped from ``packages``, which gives the same files on every
    machine.
    """

    name: str
    release: str
    image: str
    published: str = ""
    packages: tuple[LockedFile, ...] = ()


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The packages and files that one stage of a build installs; order does not matter within a field.

    ``debian`` are packages of the distribution, ``wheels`` are installed as they are, ``sources`` compiled.
    """

    debian: tuple[LockedFile, ...] = ()
    wheels: tuple[LockedFile, ...] = ()
    sources: tuple[LockedFile, ...] = ()


class LockedStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One component that is compiled, from the archive of its name among the sources of ``build``.

    ``words`` are the options of the component's configure script, or the operations of Horovod. ``after``
    names the earlier steps whose results this step needs, ``wheels`` the wheels of the image that it is
    compiled against. ``extra`` names further source archives that its script unpacks. ``patches`` are applied
    to the unpacked sources in the order of their names: a file of ``recipes/patches`` → its SHA-256.
    """

    component: CompiledComponent
    words: tuple[str, ...] = ()
    after: tuple[CompiledComponent, ...] = ()
    wheels: tuple[str, ...] = ()
    extra: tuple[Helper, ...] = ()
    patches: dict[str, str] = {}


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that an image is built from; ``image render`` and ``image build`` read nothing else.

    ``recipe_sha256`` is the hash of the recipe's values: a comment in the recipe does not make a lock stale.
    ``packages`` names the wheels that the recipe itself asks for. ``epoch`` is the time, in seconds since
    1970, that every file and header of the image gets (SOURCE_DATE_EPOCH). ``steps`` are compiled in this
    order. ``environment`` holds variables of the image, in addition to PATH and LANG. ``licences`` has an
    identifier of SPDX for each component whose licence is known, or a LicenseRef. ``build`` lists packages
    that only compiling needs, ``run`` lists packages that stay in the image.
    """

    schema: str = SCHEMA
    recipe: str
    recipe_sha256: str
    title: str
    packages: tuple[str, ...]
    solution: Solution
    epoch: int
    base: LockedBase
    steps: tuple[LockedStep, ...]
    environment: dict[str, str]
    licences: dict[Component, str]
    build: Stage
    run: Stage

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that Horovod is compiled with; empty for an image without compiled Horovod."""
        return next((step.words for step in self.steps if step.component == "horovod"), ())


def encode_lock(lock: Lock) -> bytes:
    """Return the bytes of a lock's file, equal for equal locks."""
    return msgspec.json.format(msgspec.json.encode(lock), indent=1) + b"\n"


def lock_sha256(lock: Lock) -> str:
    """Return the hash in an image's label ``toolkit.lock``."""
    return hashlib.sha256(encode_lock(lock)).hexdigest()
