"""Find the evidence for the prediction of a launch, by comparing the launch with recorded launches.

The project ran the recorded launches as tests. A prediction is best supported if a recorded launch is of the
same kind, and least supported if the launch has a property that no recorded launch has.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.engine.case import Case
from toolkit.engine.host_mpi import provider_of
from toolkit.engine.settings import effects
from toolkit.engine.traits import asks_for_gpus, host_launcher, runtime_of
from toolkit.engine.words import mpi_name, runtime_name
from toolkit.knowledge.measured import measured_launches
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import Basis
from toolkit.versions import parse, upstream


@dataclass(frozen=True, slots=True)
class LaunchCoverage:
    """The properties of one launch that toolkit compares with recorded launches.

    ``launch`` is one text with the launch mode, the releases of MPI and PMIx, and ``server``. The text also
    says whether the launch has more than one node, and more than one rank on each node. ``slurm`` is a
    release series. ``runtime``, ``server``, ``library`` and ``mounted`` are a name and a release series, such
    as ``openmpi 5.0``. ``server`` names the server that tells each rank its number and its peers. ``library``
    is the MPI that programs load. ``mounted`` is the host's MPI in the launch mode ``bind``. A field is
    empty if the property has no effect on the launch, or is unknown.
    """

    launch: str
    slurm: str
    runtime: str
    server: str
    library: str
    mounted: str
    ranks_per_node: int


def basis(case: Case, rule: str = "") -> tuple[Basis, tuple[str, ...]]:
    """Return the basis of a prediction, such as ``measured``, and the properties of the launch that no
    recorded launch has.

    ``rule`` is the id of the rule that decides the outcome. The basis is ``measured`` only if this rule also
    decided the outcome of a recorded launch.
    """
    outside = tuple(_beyond(case))
    if outside:
        return "beyond", outside
    seen = launch_coverage(case).launch in measured_launches().launches and (
        not rule or rule in measured_launches().rules
    )
    return ("measured" if seen else "derived"), ()


def launch_coverage(case: Case) -> LaunchCoverage:
    """Return the properties of a launch that toolkit compares with recorded launches."""
    host, mpi = case.host_facts, case.image_facts.mpi
    runtime = host.runtime
    provider = provider_of(case) if case.mounted_over is not None else None
    return LaunchCoverage(
        launch=_launch(case),
        slurm=_series(host.slurm.version if host.slurm else None) if case.mode.startswith("srun") else "",
        runtime=f"{runtime.name} {_series(runtime.version)}" if runtime and runtime.version else "",
        server=_server(case),
        library=_name_series(mpi),
        mounted=_name_series(provider) if provider and case.mode == "bind" else "",
        ranks_per_node=case.request.ranks_per_node,
    )


def _launch(case: Case) -> str:
    mpi, request = case.image_facts.mpi, case.request
    words = (
        case.mode,
        f"{mpi.implementation} {upstream(mpi.version or '?')}" if mpi else "none",
        upstream(case.image_facts.pmix) if case.image_facts.pmix else "-",
        _server(case) or "-",
        "1" if request.nodes == 1 else "2+",
        "1" if request.ranks_per_node == 1 else "2+",
    )
    return "; ".join(words)


def _server(case: Case) -> str:
    """Return the name and release series of the server that tells each rank its number and its peers, such as
    ``pmix 4.2`` or ``openmpi 5.0``.
    """
    host = case.host_facts
    if case.mode == "srun-pmix":
        return f"pmix {_series(host.pmix)}" if host.pmix else ""
    if case.mode == "bind":
        return _name_series(provider_of(case))
    return _name_series(host_launcher(host)) if case.mode == "mpirun-host" else ""


def _name_series(mpi: ImageMpi | HostMpi | None) -> str:
    return f"{mpi.implementation} {_series(mpi.version)}" if mpi and mpi.version else ""


def _series(version: str | None) -> str:
    """Return the first two numbers of a release, such as ``24.11``; empty if the release is unknown."""
    found = parse(version or "")
    return f"{found.major}.{found.minor}" if found else ""


def _beyond(case: Case) -> Iterator[str]:
    """Yield the properties of the launch that no recorded launch has, as text for users."""
    host, known, found = case.host_facts, measured_launches(), launch_coverage(case)
    runtime, mpi = host.runtime, case.image_facts.mpi
    if runtime and runtime.setuid and case.mode != "mpirun-container":
        yield "a container runtime that is installed setuid"
    if runtime and not runtime_of(host).MEASURED:
        yield f"{runtime_name(runtime.name)}, which toolkit's developers have not tested"
    elif found.runtime and found.runtime not in known.runtimes:
        yield f"{runtime_name(runtime.name if runtime else '')} {found.runtime.partition(' ')[2]}".strip()
    if found.slurm and found.slurm not in known.slurm:
        yield f"Slurm {found.slurm}"
    server = ""
    if found.server and not _is_server_recorded(found.server, known.servers):
        server = _in_words(found.server, provider_of(case) if case.mode == "bind" else host_launcher(host))
        yield server
    is_named = server == f"{mpi_name(mpi)} of the host"  # in the mode bind, ``mpi`` may be the host's MPI
    if mpi and mpi.version and not is_named and not _is_between_measured(found.library, known.libraries):
        yield mpi_name(mpi)
    if found.ranks_per_node > known.ranks_per_node:
        yield f"{found.ranks_per_node} ranks on a node"
    if asks_for_gpus(host, case.request, case.plan):
        yield _gpus(case)
    yield from (f"{one.name}={one.value}" for one in effects(case)[0] if not one.measured)
    if case.request.nodes > 1 and (there := (*(host.infiniband or ()), *(host.fabrics or ()))):
        yield f"a fast network ({there[0]})"


def _gpus(case: Case) -> str:
    """Return the GPU driver and CUDA release of a launch as text for users. No recorded launch used GPUs, so
    toolkit compares no releases.
    """
    host, image = case.host_facts, case.image_facts
    if host.gpus:
        of = f"CUDA {_series(image.cuda)}" if image.cuda else "GPUs"
        return f"{of} on driver {host.gpu_driver}" if host.gpu_driver else of
    return f"AMD GPUs ({host.amd_gpus[0]})" if host.amd_gpus else "GPUs"


def _is_server_recorded(server: str, servers: frozenset[str]) -> bool:
    """Return whether recorded launches used a server of this release series. A PMIx series must equal a
    recorded series; an MPI series must be in the range of the recorded series.
    """
    return server in servers if server.startswith("pmix ") else _is_between_measured(server, servers)


def _is_between_measured(entry: str, entries: frozenset[str]) -> bool:
    """Return whether the release in ``entry``, such as ``openmpi 5.0``, is between the oldest and the newest
    release of the same MPI in ``entries``, or equal to one of the two.
    """
    name, _, series = entry.partition(" ")
    there = [parse(one.partition(" ")[2]) for one in entries if one.partition(" ")[0] == name]
    found = parse(series)
    numbers = [one for one in there if one]
    return found is not None and bool(numbers) and min(numbers) <= found <= max(numbers)


def _in_words(server: str, mpi: HostMpi | None) -> str:
    name, _, series = server.partition(" ")
    if name == "pmix":
        return f"PMIx {series} of Slurm"
    return f"{mpi_name(mpi)} of the host"
