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
_TRAPS = {
    "apptainer --cleanenv": ("--cleanenv",),
    "apptainer --contain": ("--contain",),
    "apptainer --containall": ("--containall",),
    "apptainer --no-home": ("--no-home",),
    "apptainer --pid": ("--pid",),
    "apptainer --ipc": ("--ipc",),
    "apptainer --pid --ipc": ("--pid", "--ipc"),
    "apptainer --sharens": ("--sharens",),
    "apptainer --writable-tmpfs": ("--writable-tmpfs",),
    "apptainer --fakeroot": ("--fakeroot",),
    "2 ranks/node": (),
    "2 ranks/node --sharens": ("--sharens",),
    "2 ranks/node --containall": ("--containall",),
    "2 ranks/node alice": (),
    "alice": (),
    "mpi4py": (),
}


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
        ),
        pmix=pmix,
        mpis=(_LAUNCHERS[launcher],),
        runtime=ContainerRuntime(name="apptainer", version="1.4.5", path="/usr/bin/apptainer", setuid=False),
        user_namespaces=True,
    )


def expressible(cell: dict[str, Any]) -> Measured | None:
    """Return a cell in the engine's words, or ``None`` where today's modes or facts cannot say it."""
    mode = _mode(cell)
    trap = cell.get("trap") or ""
    if mode is None or (trap and trap not in _TRAPS) or cell["set"] == "bind":
        return None
    plan = Plan(
        mode=mode,
        launcher=_launcher(mode),
        inside=mode == "mpirun-container",
        container=_TRAPS.get(trap, ()),
        unset=tuple(re.findall(r"-u ([A-Z]\w+)", cell["cmd"])),
        env=dict(re.findall(r"\+(OMPI_MCA_btl_tcp_if_include)=(\S+)", cell["launcher"])),
    )
    request = _request(cell)
    name = f"{cell['host'][:8]} {cell['launcher']} {trap} {cell['image']}"
    return Measured(name, host(cell), image(cell["image"]), request, plan, cell["outcome"])


def _mode(cell: dict[str, Any]) -> Mode | None:
    launcher = cell["launcher"]
    odd = "+" in launcher and "btl_tcp_if_include" not in launcher and "GDS" not in launcher
    if odd or "sharens" in launcher or "noSLURMenv" in launcher:
        return None
    if launcher.startswith("srun-pmix"):
        return "srun-pmix"
    if launcher.startswith("srun-pmi2"):
        return "srun-pmi2"
    if launcher.startswith("contained-sbatch"):
        return "mpirun-container"
    # Without an allocation nothing is launched by toolkit, and launchers behave otherwise there.
    if launcher.startswith("hybrid-ompi") and "salloc" in cell["cmd"]:
        return "mpirun-host"
    return None


def _launcher(mode: Mode) -> tuple[str, ...]:
    return {
        "srun-pmix": ("srun", "--mpi=pmix"),
        "srun-pmi2": ("srun", "--mpi=pmi2"),
        "mpirun-host": ("mpirun",),
        "mpirun-container": ("mpirun",),
    }[mode]


def _request(cell: dict[str, Any]) -> Request:
    words = f"{cell['launcher']} {cell['cmd']}"
    if re.search(r"-N1\b", words):
        return Request(nodes=1, ranks_per_node=cell["want"], batch="sbatch" in cell["cmd"])
    return Request(nodes=2, ranks_per_node=cell["want"] // 2, batch="sbatch" in cell["cmd"])
