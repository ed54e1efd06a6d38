"""A virtual cluster that runs launches of the matrix."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests import mounting
from tests.matrix import build
from tests.matrix.record import place_name
from tests.matrix.said import QUESTIONS, heard
from toolkit.cluster import use, virtual
from toolkit.cluster.plan import container
from toolkit.data import shipped_folder
from toolkit.job.places import open_runner
from toolkit.launch.loaded import with_runtime
from toolkit.model.cluster import Cluster
from toolkit.model.facts import HostFacts
from toolkit.probe.probe import probe
from toolkit.report.progress import Progress
from toolkit.run.command import Command
from toolkit.run.stage import Parcel, stage

_FOLDER = "/work/ada/matrix"


class Place:
    """A virtual cluster of one flavour, with the matrix's images.

    ``cluster`` names a cluster to use instead of the flavour's own cluster. ``central`` is the image whose
    MPI is installed as the centre's MPI, and is empty if there is none.
    """

    def __init__(self, flavour: str, tell: Progress, cluster: str = "", runtime: str = "") -> None:
        self.flavour, self.tell, self.central, self.runtime = flavour, tell, "", runtime
        self.cluster: Cluster = virtual.up(cluster or f"matrix-{flavour}", 2, tell, flavour)
        self.runner = open_runner(None, self.cluster.name)
        self.runner.write(f"{_FOLDER}/driver.py", (Path(__file__).parent / "driver.py").read_bytes())

    @property
    def name(self) -> str:
        """The key of this cluster's facts and launches in the record."""
        name = place_name(self.flavour, self.central)
        return f"{name} by {self.runtime}" if self.runtime else name

    def sif(self, name: str) -> str:
        return f"{_FOLDER}/{name}.sif"

    @property
    def podman(self) -> bool:
        return self.flavour == "podman" and not self.runtime

    def word(self, name: str) -> str:
        """Return the argument that names an image for the cluster's runtime: a folder, a tag or a SIF."""
        if self.runtime == "ch-run":
            return f"{_FOLDER}/{name}"
        return f"localhost/matrix/{name}:latest" if self.podman else self.sif(name)

    @property
    def before(self) -> str:
        """Return the line that podman needs in a job script before the launch command, or nothing."""
        return f". {_FOLDER}/podman.sh\n" if self.podman else ""

    def facts(self) -> HostFacts:
        host = with_runtime(probe(self.runner), None, (), "podman" if self.podman else self.runtime)
        return msgspec.structs.replace(host, place=f"cluster {self.name}")

    def bring(self, names: Iterable[str]) -> None:
        names = list(names)
        stage(self.runner, [Parcel.of(build.sif(n), self.sif(n)) for n in names], self.tell)
        for name in names if self.podman else ():
            self._load(name)
        for name in names if self.runtime == "ch-run" else ():
            words = ("apptainer", "build", "--force", "--sandbox", self.word(name), self.sif(name))
            self.runner.run(Command(words, timeout=300.0)).require(f"unpacking {name}")

    def _load(self, name: str) -> None:
        """Load an image into podman's store on every node, with the script that toolkit's jobs use."""
        script, archive = f"{_FOLDER}/podman.sh", f"{_FOLDER}/{name}.tar"
        self.runner.write(script, (shipped_folder("slurm") / "podman.sh").read_bytes())
        stage(self.runner, [Parcel.of(build.archive(name), archive)], self.tell)
        nodes = len(self.cluster.hosts) - 1
        words = ("srun", f"-N{nodes}", "--ntasks-per-node=1", "--mpi=none", "sh", script, archive)
        self.runner.run(Command((*words, self.word(name)), timeout=300.0)).require(f"loading {name}")

    def run(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        said = bytearray()
        given = "\n".join(json.dumps(job) for job in jobs).encode() + b"\n"
        words = ("python3", f"{_FOLDER}/driver.py")
        status = use.execute(self.cluster, "login", "ada", words, lambda out, _: said.extend(out), given)
        found = [json.loads(line) for line in said.decode().splitlines()]
        if status or len(found) != len(jobs):
            raise RuntimeError(f"matrix-{self.flavour}: {len(found)} of {len(jobs)} jobs came back, {status}")
        return found

    @contextmanager
    def changed(self, changes: dict[str, Any]) -> Iterator[None]:
        """Resize /dev/shm on the compute nodes for the ``with`` block; job scripts make other changes."""
        nodes, size = self.cluster.hosts[1:], changes.get("shm")
        # Remove files of killed ranks, which may be larger than the new size.
        for node in nodes if size else ():
            self._ask(node, ("sh", "-c", "pkill -9 -x probe; rm -f /dev/shm/*"))
        words = ("sh", "-c", "df --output=size -B1 /dev/shm | tail -n 1")
        before = [self._ask(node, words).strip() for node in nodes] if size else []
        try:
            for node in nodes if size else ():
                self._resize(node, size)
            yield
        finally:
            for node, former in zip(nodes, before, strict=False):
                self._resize(node, former)

    def _resize(self, node: str, size: str) -> None:
        words = ("mount", "-o", f"remount,size={size}", "/dev/shm")
        if why := mounting.on_node(container(self.cluster.name, node), *words):
            raise RuntimeError(f"{node}: {why}")

    def _ask(self, node: str, words: tuple[str, ...]) -> str:
        out = bytearray()
        if use.execute(self.cluster, node, "root", words, lambda o, _: out.extend(o)):
            raise RuntimeError(f"{node}: {' '.join(words)} failed")
        return out.decode()

    def said(self, name: str) -> dict[str, Any]:
        out = bytearray()
        words = ("singularity", "exec", "--cleanenv", self.sif(name), "sh", "-c", QUESTIONS)
        use.execute(self.cluster, "login", "ada", words, lambda o, _: out.extend(o))
        return heard(out.decode("utf-8", "replace"))
