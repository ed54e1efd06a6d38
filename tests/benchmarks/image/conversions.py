"""Time the conversion of an image to a SIF: by toolkit with each compression (packing), and by plain
``apptainer build``.
"""

import os
import time
from pathlib import Path

from docker import DockerClient

from tests.benchmarks.image.timed import Taken, load
from tests.benchmarks.image.timed import timed as timed_inside
from toolkit.errors import Missing
from toolkit.image.sifs.packing import PACKINGS, Packing
from toolkit.image.sifs.sif import convert
from toolkit.model.progress import Silent
from toolkit.run.docker.builder import BUILDER
from toolkit.run.docker.containers import Box

PLAIN = "plain"
_SOCKET = "/var/run/docker.sock"
_SECONDS = 3600.0


def plain(client: DockerClient, image: str, folder: Path) -> Taken:
    """Build ``plain.sif`` from the Docker engine with ``apptainer build``, as users without toolkit would."""
    where = os.environ.get("DOCKER_HOST", f"unix://{_SOCKET}").removeprefix("unix://")
    if not Path(where).is_socket():
        raise Missing(f"{where} is no socket", fix="run this on the machine of the Docker engine")
    binds = {str(folder.resolve()): "/target", where: _SOCKET}
    box = Box(BUILDER, binds=binds, memory=6 << 30, timeout=_SECONDS, nested=True)
    words = ("apptainer", "build", "--force", f"/target/{PLAIN}.sif", f"docker-daemon:{image}")
    return timed_inside(client, box, words)


def ours(client: DockerClient, image: str, folder: Path, packing: Packing) -> tuple[Taken, str]:
    """Convert the image as ``toolkit image sif`` does; return the time and the SIF's digest.

    The CPU time is unknown and set to 0, because the Docker engine does the work.
    """
    busy, began = load(), time.monotonic()
    made = convert(client, image, folder / f"{packing.name}.sif", Silent(), packing=packing, fresh=True)
    return Taken(time.monotonic() - began, 0.0, busy), made.sha256


def all_of_them(
    client: DockerClient, image: str, folder: Path, rounds: int
) -> tuple[dict[str, list[Taken]], dict[str, bool]]:
    """Return all times, and for each packing whether its SIF files are bit-identical."""
    times: dict[str, list[Taken]] = {name: [] for name in (PLAIN, *(p.name for p in PACKINGS))}
    digests: dict[str, set[str]] = {p.name: set() for p in PACKINGS}
    for number in range(rounds + 1):
        for packing in PACKINGS:
            place = folder / f"round {number}"
            place.mkdir(exist_ok=True)
            taken, digest = ours(client, image, place, packing)
            times[packing.name].append(taken)
            digests[packing.name].add(digest)
            (place / f"{packing.name}.sif").replace(folder / f"{packing.name}.sif")
        if number < rounds:
            times[PLAIN].append(plain(client, image, folder))
    return times, {name: len(found) == 1 for name, found in digests.items()}
