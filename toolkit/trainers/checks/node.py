"""What a rank finds on its node before a training: GPUs, free space, and which image it runs."""

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.trainers.checks.wanted import Requirements

DEVICES = Path("/dev")
_GPU = re.compile(r"nvidia([0-9]+)")
_BLOCK = 1 << 16
_BLOCKS = 16
"""Blocks that are read of an image: a megabyte a node, so that thousands at once do no harm."""


@dataclass(frozen=True)
class Facts:
    """What one rank knows; all but the first one of a node leave out what is the same for all on it.

    ``gpus`` are the numbers of those that it may open, ``output`` and ``tmp`` bytes that are free, or why
    that cannot be told. ``ahead`` is by how many seconds its clock is certainly before rank 0's, ``gbit`` how
    many Gbit/s came from the node before it.
    """

    rank: int
    host: str
    first: bool = False
    gpus: tuple[int, ...] = ()
    output: int | str = ""
    tmp: int | str = ""
    image: str = ""
    ahead: float = 0.0
    gbit: float | None = None


def look(wanted: Requirements, rank: int, host: str, *, first: bool, devices: Path = DEVICES) -> Facts:
    """Look at what is asked for; nothing here raises, as the other ranks wait for what is found."""
    gpus = openable(devices) if wanted.gpus_per_node else ()
    if not first:
        return Facts(rank, host, gpus=gpus)
    return Facts(
        rank,
        host,
        first=True,
        gpus=gpus,
        output=free(wanted.output) if wanted.output else "",
        tmp=free(Path(tempfile.gettempdir())),
        image=fingerprint(wanted.image) if wanted.image else "",
    )


def openable(devices: Path) -> tuple[int, ...]:
    """Return the numbers of NVIDIA's GPUs that may be opened; Slurm's cgroups forbid those of others."""
    found = []
    for path in devices.glob("nvidia[0-9]*"):
        number = _GPU.fullmatch(path.name)
        if number:
            with contextlib.suppress(OSError):
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
                found.append(int(number[1]))
    return tuple(sorted(found))


def free(folder: Path) -> int | str:
    """Return the bytes that may be written into a folder, or why none may."""
    try:
        told = os.statvfs(folder)
        if not os.access(folder, os.W_OK):
            return "nothing may be written there"
    except OSError as error:
        return error.strerror or str(error)
    return told.f_bavail * told.f_frsize


def fingerprint(path: Path) -> str:
    """Return the digest of an image's size and of blocks from all over it; why not, after a ``!``.

    It does not tell whether every byte is right, but which image it is: the first block holds the header of
    a SIF, with the number and time that each one is given when it is made.
    """
    digest = hashlib.sha256()
    try:
        size = path.stat().st_size
        digest.update(b"%d" % size)
        with path.open("rb") as file:
            for number in range(_BLOCKS):
                file.seek((size - _BLOCK) * number // (_BLOCKS - 1) if size > _BLOCK else 0)
                digest.update(file.read(_BLOCK))
    except OSError as error:
        return f"!{error.strerror or error}"
    return digest.hexdigest()


def facts_of(values: Mapping[str, object]) -> Facts:
    """Return facts from what another rank wrote as JSON."""
    return Facts(**{**values, "gpus": tuple(values["gpus"])})  # type: ignore[arg-type]  # ours; JSON has no tuples
