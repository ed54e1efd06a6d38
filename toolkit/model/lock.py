"""A lock: all files and build steps of an image, which toolkit derives from a recipe."""

import hashlib
from typing import Literal

import msgspec

from toolkit.model.solution import Component, Solution

SCHEMA = "toolkit.lock/2"

CompiledComponent = Literal["ucx", "pmix", "openmpi", "mpi4py", "horovod"]
"""Components that toolkit can compile; each has a script in ``containers/parts``."""

Helper = Literal["cuda"]
"""Source archives that the script of another component unpacks with a helper script
in ``containers/parts``.
"""

PYTHON_PACKAGES: frozenset[str] = frozenset({"mpi4py", "horovod"})
"""Compiled components whose script builds a wheel. The scripts of other components install files."""


class LockedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file to download: a wheel, a source archive or a Debian package.

    ``origin`` says where to download the file; :mod:`toolkit.image.locks.origins` defines its syntax.
    ``sha256`` identifies the file. ``size`` is in bytes.
    """

    name: str
    version: str
    file: str
    origin: str
    sha256: str
    size: int


class LockedBase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base image, on which the build installs all components.

    ``name`` is the distribution with its release (``debian:bookworm``). ``image`` is the published image
    without a digest (``debian:bookworm-slim``). ``published`` is the published image with its digest; it is
    empty if toolkit could not reach a registry. Without ``published``, the build bootstraps the base from
    ``packages``, which produces the same files on every machine.
    """

    name: str
    release: str
    image: str
    published: str = ""
    packages: tuple[LockedFile, ...] = ()


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The packages and files that a build installs in one stage; the order within a field does not matter.

    ``debian`` lists packages of the distribution. The build installs ``wheels`` unchanged, and compiles
    ``sources``.
    """

    debian: tuple[LockedFile, ...] = ()
    wheels: tuple[LockedFile, ...] = ()
    sources: tuple[LockedFile, ...] = ()


class LockedStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One component to compile, from the archive of the same name in ``build.sources``.

    ``words`` are the options of the component's configure script or, for Horovod, its operations, such as
    ``nccl``. ``after`` names earlier steps whose results this step needs. ``wheels`` names wheels of the
    image against which the step compiles. ``extra`` names further source archives that the component's script
    unpacks. ``patches`` maps files of ``recipes/patches`` to their SHA-256; the build applies these patches
    to the unpacked sources, in the order of the patches' names.
    """

    component: CompiledComponent
    words: tuple[str, ...] = ()
    after: tuple[CompiledComponent, ...] = ()
    wheels: tuple[str, ...] = ()
    extra: tuple[Helper, ...] = ()
    patches: dict[str, str] = {}


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All inputs of an image's build; ``image render`` and ``image build`` read nothing else.

    ``recipe_sha256`` is the hash of the recipe's values, so a new comment in the recipe does not make the
    lock out of date. ``packages`` names the wheels that the recipe requests. ``epoch`` is the time, in
    seconds since 1970, that the build records in every file and header of the image (SOURCE_DATE_EPOCH). The
    build compiles ``steps`` in the order of the list. ``environment`` maps the image's variables, except PATH
    and LANG, to their values. ``licences`` maps each component with a known licence to an SPDX identifier or
    a LicenseRef. ``build`` lists packages that are necessary only to compile components. ``run`` lists
    packages that remain in the image.
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
        """The operations, such as ``nccl``, in the compiled Horovod; empty if the build does not compile
        Horovod.
        """
        return next((step.words for step in self.steps if step.component == "horovod"), ())


def encode_lock(lock: Lock) -> bytes:
    """Return the content of a lock file in JSON; equal locks produce equal bytes."""
    return msgspec.json.format(msgspec.json.encode(lock), indent=1) + b"\n"


def lock_sha256(lock: Lock) -> str:
    """Return the SHA-256 of the lock file in hexadecimal. An image has this hash in its label
    ``toolkit.lock``.
    """
    return hashlib.sha256(encode_lock(lock)).hexdigest()
