"""Turn the measured cells into facts, plans and outcomes that the engine can be asked about."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from toolkit import knowledge
from toolkit.model.facts import ContainerRuntime, HostFacts, HostMpi, ImageFacts, ImageMpi, SlurmFacts
from toolkit.model.prediction import Mode, Plan, Request

_HERE = Path(__file__).parent
_FAMILY = {"Open MPI": "openmpi", "MPICH": "mpich", "Intel MPI": "intelmpi"}
_DEB5 = HostMpi(
    implementation="openmpi",
    version="5.0.7",
    launcher="/usr/bin/mpirun",
    leaks=("OMPI_MCA_mca_base_component_path",),
    pmix="5.0.7",
)
_LAUNCHERS = {
    "trixie": _DEB5,
    "bookworm": HostMpi(
        implementation="openmpi", version="4.1.4", launcher="/usr/bin/mpirun", leaks=(), pmix="4.2.2"
    ),
    "4.1.8": HostMpi(
        implementation="openmpi",
        version="4.1.8",
        launcher="hostmpi/openmpi-4.1.8/bin/mpirun",
        leaks=("OPAL_PREFIX", "PMIX_INSTALL_PREFIX"),
        pmix="3.2.5",
    ),
    "5.0.11": HostMpi(
        implementation="openmpi",
        version="5.0.11",
        launcher="hostmpi/openmpi-5.0.11/bin/mpirun",
        leaks=("OPAL_PREFIX", "PMIX_PREFIX", "PRTE_PREFIX"),
        pmix="5.0.11",
    ),
}
_EXCLUDED: tuple[tuple[str, str], ...] = (
    ("host libraries are mounted in: the mode bind", r"^bind |libfabric\.so\.1 supplied"),
    ("no PMI is offered: the mode srun-none", r"srun-none|cray_shasta"),
    ("the host's launcher is Hydra", r"hybrid-\w*hydra"),
    ("/dev/shm is small: no fact tells its size", r"/dev/shm="),
    ("the launcher inside is itself a rank of srun", r"contained mpirun|hybrid wrong order"),
    ("there is no allocation of Slurm", r"contained-1node|bare-1proc|no salloc|hybrid without salloc"),
    ("the rank's own command changes its environment", r"passed back|unset PMIX_NAMESPACE|ess=pmi"),
    ("another Python of the image is started", r"system python"),
    ("a file in the home folder: no fact tells it", r"bad ~/\.openmpi/mca-params\.conf"),
)
"""Why a cell cannot be asked about, and the pattern of set, launcher, trap that tells; the first counts."""


@dataclass(frozen=True)
class Measured:
    """One cell: what was launched where, and what became of it."""

    name: str
    host: HostFacts
    image: ImageFacts
    request: Request
    plan: Plan
    outcome: str


@cache
def cells() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_HERE / "cells.jsonl").read_text().splitlines()]


@cache
def image(name: str) -> ImageFacts:
    """Return the facts of a measured image, as the inspector would read them."""
    read = json.loads((_HERE / "images.json").read_text())[name]
    family = next(f for f in _FAMILY if read["flavour"].startswith(f))
    implementation, version = _FAMILY[family], read["flavour"].removeprefix(family).strip()
    bundled = "pmix3x" in read["ompi_components"].get("pmix", ())
    client = read["pmix_client_version"] or (knowledge.bundled_pmix(version) if bundled else None)
    return ImageFacts(
        path=f"{name}.sif",
        format="sif",
        architecture="x86_64",
        glibc=read["glibc"],
        mpi=ImageMpi(
            implementation=implementation,
            version=version,
            library=read["libmpi"].split(" -> ")[-1],
            interfaces=("pmix",) if implementation == "openmpi" else ("pmi1", "pmi2"),
            launcher=read["bins"].get("mpirun"),
            plugins=any(read["ompi_plugin_dirs"].values()),
            markers=tuple(read["libmpi_markers"]),
        ),
        pmix=client,
        libfabric=read["libfabric_found"] or None,
        ssh=read["ssh"] or None,
        absent={
            "stack": "not in the image",
            **({} if client else {"pmix": "no libpmix"}),
            **({} if read["libfabric_found"] else {"libfabric": "no libfabric"}),
            **({} if read["ssh"] else {"ssh": "no ssh"}),
        },
    )


def host(cell: dict[str, Any]) -> HostFacts:
    """Return the facts of a measured cluster, with the launcher that the cell used in front."""
    old = cell["host"].startswith("bookworm")
    pmix = "4.2.2" if old else "5.0.7"
    used = re.search(r"hybrid-ompi(4\.1\.8|5\.0\.11)", cell["launcher"])
    launcher = used[1] if used else ("bookworm" if old else "trixie")
    return HostFacts(
        place=cell["host"],
        architecture="x86_64",
        slurm=SlurmFacts(
            version="22.05.8" if old else "24.11.5",
            mpi_types=("pmix", "pmix_v4" if old else "pmix_v5", "pmi2", "none"),
            mpi_default="none" if old else "pmix",
            nodes=2,
        ),
        pmix=pmix,
        mpis=(_LAUNCHERS[launcher],),
        runtime=ContainerRuntime(name="apptainer", version="1.4.5", path="/usr/bin/apptainer", setuid=False),
        user_namespaces=True,
        environment=cell.get("env") or {},
    )


def excluded(cell: dict[str, Any]) -> str | None:
    """Return why today's modes or facts cannot say what was done in a cell."""
    outside = cell["launcher"].startswith("hybrid") and "salloc" not in cell["cmd"]
    named = f"{cell['set']} {cell['launcher']} {cell.get('trap') or ''}{' no salloc' if outside else ''}"
    return next((reason for reason, pattern in _EXCLUDED if re.search(pattern, named)), None)


def expressible(cell: dict[str, Any]) -> Measured | None:
    """Return a cell in the engine's words, or ``None`` where it is :func:`excluded`."""
    if excluded(cell):
        return None
    request, place = _request(cell), host(cell)
    mode = _mode(cell)
    words = _options(cell["cmd"])
    launched = Plan(
        mode=mode,
        launcher=_launcher(mode),
        inside=mode == "mpirun-container",
        container=tuple(w for w, _ in words if w != "-B") + tuple(v for w, v in words if v and w != "-B"),
        unset=tuple(re.findall(r"-u ([A-Z]\w+)", cell["cmd"])),
        env=dict(request.env),
        binds=tuple(v for w, v in words if w == "-B" and v in {"/tmp", "/var/tmp:/tmp"}),
    )
    name = f"{cell['host'][:8]} {cell['launcher']} {cell.get('trap') or ''} {cell['image']}"
    return Measured(name, place, image(cell["image"]), request, launched, cell["outcome"])


def _options(cmd: str) -> list[tuple[str, str]]:
    """Return the options of ``apptainer exec`` behind ``-u``, with their values."""
    said = re.search(r"apptainer exec -u (.*?)\S+\.sif", cmd)
    return re.findall(r"(--?[\w-]+)(?:[ =]([\w/][\w/,.:]*))?", said[1]) if said else []


def _mode(cell: dict[str, Any]) -> Mode:
    launcher = cell["launcher"]
    if launcher.startswith("srun-pmi2"):
        return "srun-pmi2"
    if launcher.startswith("contained-sbatch"):
        return "mpirun-container"
    if launcher.startswith("hybrid-ompi"):
        return "mpirun-host"
    assert launcher == "srun" or launcher.startswith("srun-pmix"), launcher
    return "srun-pmix"


def _launcher(mode: Mode) -> tuple[str, ...]:
    return {
        "srun-pmix": ("srun", "--mpi=pmix"),
        "srun-pmi2": ("srun", "--mpi=pmi2"),
        "mpirun-host": ("mpirun",),
        "mpirun-container": ("mpirun",),
    }[mode]


def _request(cell: dict[str, Any]) -> Request:
    words = f"{cell['launcher']} {cell['cmd']}"
    before = re.match(r"\s*((?:[A-Z]\w+=\S+ )*)", cell["cmd"])
    given = dict(re.findall(r"(\w+)=(\S+)", before[1] if before else ""))
    nodes = 1 if re.search(r"-N1\b", words) else 2
    return Request(
        nodes=nodes, ranks_per_node=cell["want"] // nodes, batch="sbatch" in cell["cmd"], env=given
    )
