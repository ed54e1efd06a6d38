"""A recipe resolved: every byte that goes into an image, by name, version and hash."""

import hashlib

import msgspec

from toolkit.model.solution import Solution


class LockedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file to fetch: a wheel, a source archive or a Debian package.

    ``origin`` says where to look, in words of toolkit.image.origins; the hash says whether it is the one.
    ``size`` is in bytes.
    """

    name: str
    version: str
    file: str
    origin: str
    sha256: str
    size: int


class LockedBase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The image that everything is put on.

    ``name`` is that of the knowledge row (``debian:bookworm``). ``published`` is the reference, with its
    digest, of the published image, where a registry told it. Where none answered it is empty, and the base is
    bootstrapped from ``packages``, which gives the same files on every machine.
    """

    name: str
    release: str
    published: str = ""
    packages: tuple[LockedFile, ...] = ()


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one stage of a build installs; order does not matter within a field.

    ``debian`` are packages of the distribution, ``wheels`` are installed as they are, ``sources`` compiled.
    """

    debian: tuple[LockedFile, ...] = ()
    wheels: tuple[LockedFile, ...] = ()
    sources: tuple[LockedFile, ...] = ()


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that an image is made from; ``build`` needs it and nothing else.

    ``recipe_sha256`` is of the recipe's values, not of its text: a comment does not make a lock stale.
    ``epoch`` is the time, in seconds, that every file and header of the image is given (SOURCE_DATE_EPOCH).
    ``build`` is what compiling needs and the image does not keep, ``run`` what stays in it.
    """

    schema: str = "toolkit.lock/1"
    recipe: str
    recipe_sha256: str
    solution: Solution
    epoch: int
    base: LockedBase
    build: Stage
    run: Stage


def encoded(lock: Lock) -> bytes:
    """Return the bytes of a lock's file, the same for equal locks."""
    return msgspec.json.format(msgspec.json.encode(lock), indent=1) + b"\n"


def lock_sha256(lock: Lock) -> str:
    """Return the hash that an image's label ``toolkit.lock`` carries."""
    return hashlib.sha256(encoded(lock)).hexdigest()
