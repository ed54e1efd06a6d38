"""Read facts about a rank's node before a training: its GPUs, its free disk space, and the image file."""

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
"""The number of 64 KiB blocks that each node reads from the image file. These 16 blocks are 1 MiB per node,
which is a small load on the file system even with thousands of nodes.
"""


@dataclass(frozen=True)
class Facts:
    """Facts about one rank and its node. ``first`` is true for the first rank of each node. Only this rank
    reads the facts about the node.

    ``gpus`` are the numbers N of the GPUs ``/dev/nvidiaN`` that the rank can open. ``output`` is the number
    of free bytes in the output folder, and ``tmp`` is the number of free bytes in TMPDIR. If the rank cannot
    write to a folder, the field of this folder contains the reason as text. ``image`` is the result of
    :func:`fingerprint`. ``ahead`` is the number of seconds by which the node's clock is ahead of the clock of
    rank 0's node. ``gbit`` is the speed in Gbit/s at which the node received data from the previous node of
    the ring that :mod:`toolkit.trainers.checks.links` describes.
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


def read_facts(
    requirements: Requirements, rank: int, host: str, *, first: bool, devices: Path = DEVICES
) -> Facts:
    """Return the facts about this rank and its node that the preflight needs to check ``requirements``.
    ``first`` is true for the first rank of a node.

    If the rank cannot read a fact, the result contains the error text instead of the fact. The function
    raises no exception, because an exception on one rank would make all other ranks wait.
    """
    gpus = openable(devices) if requirements.gpus_per_node else ()
    if not first:
        return Facts(rank, host, gpus=gpus)
    return Facts(
        rank,
        host,
        first=True,
        gpus=gpus,
        output=free(requirements.output) if requirements.output else "",
        tmp=free(Path(tempfile.gettempdir())),
        image=fingerprint(requirements.image) if requirements.image else "",
    )


def openable(devices: Path) -> tuple[int, ...]:
    """Return the numbers of the NVIDIA GPUs that this process can open. Slurm's cgroups can block GPUs that
    Slurm did not allocate to this job or rank.
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
    """Return the number of free bytes on the file system of a folder, or the reason why this process cannot
    write to the folder.
    """
    try:
        told = os.statvfs(folder)
        if not os.access(folder, os.W_OK):
            return "the folder is not writable"
    except OSError as error:
        return error.strerror or str(error)
    return told.f_bavail * told.f_frsize


def fingerprint(path: Path) -> str:
    """Return a SHA-256 digest of an image file's size and of 16 blocks of the file. If the file is not
    readable, return ``!`` and the reason.

    The digest identifies the image, but does not cover every byte. The digest includes the SIF header, whose
    unique ID and creation time differ between images.
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
    """Return the facts of another rank from the JSON object that the other rank wrote."""
    return Facts(**{**values, "gpus": tuple(values["gpus"])})  # type: ignore[arg-type]  # JSON has no tuples
