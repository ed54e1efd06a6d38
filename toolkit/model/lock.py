"""A lock: the files and the build steps of an image. toolkit derives a lock from a recipe."""

import hashlib
from typing import Literal

import msgspec

from toolkit.model.solution import Component, Solution

SCHEMA = "toolkit.lock/2"

CompiledComponent = Literal["ucx", "pmix", "openmpi", "mpi4py", "horovod"]
"""Components that toolkit can compile; each has a script in ``containers/parts``."""

Helper = Literal["cuda"]
"""Components that the build does not compile, but that it needs to compile other components. A script in
``containers/parts`` unpacks the files of such a component.
"""

PYTHON_PACKAGES: frozenset[str] = frozenset({"mpi4py", "horovod"})
"""Components whose build script produces a wheel. Other build scripts install files and make no wheel."""


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
    empty if toolkit could not download the image, or if the lock is for an architecture other than this
    machine's. ``release`` is the codename of the release (``bookworm``). If ``published`` is empty, the build
    makes the base image from the Debian packages in ``packages``. Each build from the same ``packages``
    produces the same files.
    """

    name: str
    release: str
    image: str
    published: str = ""
    packages: tuple[LockedFile, ...] = ()


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The packages and files for one stage of a build: compilation (``build``) or the finished image
    (``run``).

    ``debian`` lists packages of the distribution. The build installs the files in ``wheels``, and unpacks
    the archives in ``sources`` to compile components. The order within a field does not matter.
    """

    debian: tuple[LockedFile, ...] = ()
    wheels: tuple[LockedFile, ...] = ()
    sources: tuple[LockedFile, ...] = ()


class LockedStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One component to compile. Its source archive has the component's name in the lock's ``build.sources``.

    ``words`` are options for the component's configure script; for Horovod, ``words`` are Horovod's
    operations, such as ``nccl``. ``after`` names the components that the build must compile before this
    component. ``wheels`` names the wheels that the build installs before it compiles this component.
    ``extra`` names other archives in ``build.sources`` that the component's build script unpacks. ``patches``
    maps files of ``recipes/patches`` to their SHA-256; the build applies these patches to the unpacked
    sources, in the order of the patches' names.
    """

    component: CompiledComponent
    words: tuple[str, ...] = ()
    after: tuple[CompiledComponent, ...] = ()
    wheels: tuple[str, ...] = ()
    extra: tuple[Helper, ...] = ()
    patches: dict[str, str] = {}


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All packages, files and build steps of an image; ``toolkit image build`` installs nothing else.

    ``recipe_sha256`` is the hash of the recipe's values, so a new comment in the recipe does not make the
    lock out of date. ``packages`` names the wheels that the recipe requests. ``epoch`` is the creation time
    of the image, in seconds since 1970 (SOURCE_DATE_EPOCH). In the SIF, files with a later modification time
    get this time.

    The build compiles ``steps`` in the order of the list. ``environment`` maps the image's variables, except
    PATH and LANG, to their values. ``licences`` maps each component with a known licence to an SPDX
    identifier or a LicenseRef. ``build`` lists packages that are necessary only to compile components.
    ``run`` lists packages that remain in the image.
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
    """Return a lock as JSON, the content of a lock file. Equal locks produce equal bytes."""
    return msgspec.json.format(msgspec.json.encode(lock), indent=1) + b"\n"


def lock_sha256(lock: Lock) -> str:
    """Return the SHA-256 of the lock file in hexadecimal. The label ``toolkit.lock`` of an image contains
    this hash.
    """
    return hashlib.sha256(encode_lock(lock)).hexdigest()
