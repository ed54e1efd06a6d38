"""Time how long a program takes to start in each SIF, cold and warm, and in a container without a SIF."""

import os
from collections.abc import Sequence
from pathlib import Path

from docker import DockerClient

from tests.benchmarks.image.timed import Taken, timed
from toolkit.run.docker.builder import BUILDER
from toolkit.run.docker.containers import Box

BARE = "bare"
_MEMORY = 6 << 30
_EXEC = ("apptainer", "-q", "exec", "-u", "--cleanenv", "--no-home")


def starts(
    client: DockerClient, image: str, sifs: Sequence[Path], words: Sequence[str], rounds: int
) -> dict[str, dict[str, list[Taken]]]:
    """Return the times by SIF name, and then by ``cold`` or ``warm``; ``bare`` runs without a SIF.

    Before a cold start, the SIF is removed from the page cache; other files stay in memory.
    """
    found: dict[str, dict[str, list[Taken]]] = {s.stem: {"cold": [], "warm": []} for s in sifs}
    found[BARE] = {"warm": []}
    bare = Box(image, memory=_MEMORY)
    timed(client, bare, words)
    for _ in range(rounds):
        found[BARE]["warm"].append(timed(client, bare, words))
        for sif in sifs:
            box = Box(BUILDER, binds={str(sif.parent.resolve()): "/target:ro"}, memory=_MEMORY, nested=True)
            there = f"/target/{sif.name}"
            _evict(sif)
            for kind in ("cold", "warm"):
                found[sif.stem][kind].append(timed(client, box, (*_EXEC, there, *words)))
    return found


def _evict(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
