"""Facts that a rank finds on its node before a training: GPUs, free space, and its image."""

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
"""Number of blocks that are read from an image: one megabyte a node, so that thousands of nodes can read at
once.
"""


@dataclass(frozen=True)
class Facts:
    """The facts that one rank knows. Only the first rank of a node fills in the facts that are the same for
    all ranks of the node.

    ``gpus`` are the numbers of the GPUs that the rank can open. ``output`` and ``tmp`` are free bytes, or the
    reason why the bytes are unknown. ``ahead`` is by how many seconds at least its clock is ahead of rank
    0's, and ``gbit`` how many Gbit/s arrived from the previous node.
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


def read_facts(wanted: Requirements, rank: int, host: str, *, first: bool, devices: Path = DEVICES) -> Facts:
    """Return the facts that ``wanted`` asks for. Nothing in this module raises, because the other ranks wait
    for the result.
    """
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
    """Return the numbers of the NVIDIA GPUs that this process can open; Slurm's cgroups forbid other jobs'
    GPUs.
    """
    found = []
    for path in devices.glob("nvidia[0-9]*"):
        number = _GPU.fullmatch(path.name)
        if number:
            with contextlib.suppress(OSError):
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
                found.append(int(number[1]))
    return tuple(sorted(found))


def free(folder: Path) -> int | str:
    """Return how many bytes can be written into a folder, or why none can."""
    try:
        told = os.statvfs(folder)
        if not os.access(folder, os.W_OK):
            return "no file can be written there"
    except OSError as error:
        return error.strerror or str(error)
    return told.f_bavail * told.f_frsize


def fingerprint(path: Path) -> str:
    """Return a digest of an image's size and of blocks from all over it; or ``!`` and the reason why not.

    The digest identifies the image, but does not prove every byte: the first block is the header of a SIF,
    which has the unique number and time of its creation.
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
    """Return the facts that another rank wrote as JSON."""
    return Facts(**{**values, "gpus": tuple(values["gpus"])})  # type: ignore[arg-type]  # ours; JSON has no tuples
