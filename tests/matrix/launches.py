"""Define an image's launches: users' first tries, the engine's plans, and plans with one changed setting."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from tests.matrix.record import Cell
from toolkit.engine.planning.proposal import propose
from toolkit.launch.jobscript.plan import by_agent, launch_words, runtime_of
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Mode, Plan, Request
from toolkit.runtime.podman import DESCRIPTOR

PROGRAM = "/opt/probe"
SRUN = ("srun-pmix", "srun-pmi2", "srun-none", "srun")
MPIRUN = ("mpirun-host", "mpirun-container")
LAUNCHES = (*SRUN, *MPIRUN)
CENTRAL = ("bind", "mpirun-host")
"""Launches with an MPI that a computing centre installs in a separate folder."""
_FLAGS = {
    "srun-pmix": ("--mpi=pmix",),
    "srun-pmi2": ("--mpi=pmi2",),
    "srun-none": ("--mpi=none",),
    "srun": (),
}


@dataclass(frozen=True)
class Launch:
    """One launch of an image on a virtual cluster.

    ``exports`` are variables that a user's shell sets before the launcher. ``path`` is a folder that a module
    of the centre puts first on PATH.
    """

    image: str
    flavour: str
    launch: str
    variant: str
    plan: Plan
    request: Request
    trap: str = ""
    exports: dict[str, str] = field(default_factory=dict)
    host_changes: dict[str, Any] = field(default_factory=dict)
    path: str = ""

    @property
    def start(self) -> str:
        return "batch" if self.request.batch else "direct"

    @property
    def name(self) -> str:
        parts = [self.flavour, self.image, self.launch, shape(self.request), self.variant, self.trap]
        return " ".join(part for part in (*parts, "" if self.request.batch else "direct") if part)

    def words(self, sif: str, runtime: str = "singularity") -> list[str]:
        spec = JobSpec(
            name="matrix",
            image=sif,
            command=(PROGRAM,),
            directory="/work/ada",
            nodes=self.request.nodes,
            ranks_per_node=self.request.ranks_per_node,
        )
        words = [w for group in launch_words(spec, self.plan, (PROGRAM,), runtime) for w in group]
        if self.request.batch or self.plan.launcher[0] == "srun":
            return words
        return ["salloc", "-Q", f"-N{self.request.nodes}", f"-n{spec.ranks}", *words]

    def argv(self, runtime: str = "singularity") -> str:
        """Return the command line as the record stores it."""
        exports = [f"{name}={value}" for name, value in self.exports.items()]
        return shlex.join([*exports, *self.words("IMAGE", runtime)])

    def script(self, sif: str, runtime: str) -> str:
        exports = [f"export {name}={shlex.quote(value)}" for name, value in self.exports.items()]
        exports += [f"export PATH={shlex.quote(self.path)}:$PATH"] if self.path else []
        if "locked_memory" in self.host_changes:
            exports.append(f"ulimit -l {self.host_changes['locked_memory'] >> 10}")
        return "\n".join([*exports, f"exec {shlex.join(self.words(sif, runtime))}", ""])

    def cell(self, **became: Any) -> Cell:
        return Cell(
            name=self.name,
            image=self.image,
            flavour=self.flavour,
            launch=self.launch,
            variant=self.variant,
            plan=self.plan,
            request=self.request,
            start=self.start,
            trap=self.trap,
            environment=self.exports,
            host_changes=self.host_changes,
            **became,
        )


def shape(request: Request) -> str:
    return f"{request.nodes}x{request.ranks_per_node}"


def mode_of(launch: str, host: HostFacts) -> Mode:
    """Return the launch mode of the launch named ``launch``; for ``srun``, the mode is Slurm's default."""
    if launch != "srun":
        return launch  # type: ignore[return-value] # the other names are modes
    default = (host.slurm.mpi_default if host.slurm else None) or "none"
    return {"pmix": "srun-pmix", "pmi2": "srun-pmi2"}.get(default.partition("_")[0], "srun-none")  # type: ignore[return-value]


def naive(launch: str, host: HostFacts) -> Plan:
    """Return the plan that users try first."""
    mode = mode_of(launch, host)
    if launch == "bind":
        return _naive_bind(host)
    if launch in _FLAGS:
        return Plan(mode=mode, launcher=("srun", *_FLAGS[launch]))
    return Plan(mode=mode, launcher=("mpirun",), inside=launch == "mpirun-container")


def _naive_bind(host: HostFacts) -> Plan:
    """Return the plan of users who mount the folder of an MPI and set LD_LIBRARY_PATH, as tutorials say."""
    provider = (host.mpis or ())[0]
    prefix = provider.prefix or ""
    return Plan(
        mode="bind",
        launcher=("srun", "--mpi=pmix" if provider.implementation == "openmpi" else "--mpi=pmi2"),
        binds=(prefix,),
        env={"LD_LIBRARY_PATH": f"{prefix}/lib"},
    )


def shapes(launch: str) -> tuple[Request, ...]:
    two = tuple(Request(nodes=2, ranks_per_node=ranks) for ranks in (1, 2))
    if launch in SRUN:
        return two
    one = Request(nodes=1, ranks_per_node=2)
    if launch == "mpirun-host":
        return (*two, one, Request(nodes=2, ranks_per_node=1, batch=False))
    return (two[0], one)


def plain(image: str, flavour: str, host: HostFacts, launches: Iterable[str] = LAUNCHES) -> Iterator[Launch]:
    """Yield the launches that users would try without advice."""
    for launch in launches:
        for request in shapes(launch):
            yield Launch(image, flavour, launch, "naive", naive(launch, host), request)


def planned(
    image: str, flavour: str, host: HostFacts, facts: ImageFacts, launches: Iterable[str] = LAUNCHES
) -> Iterator[Launch]:
    """Yield the launches with the engine's plan, if the plan differs from what users try."""
    runtime = runtime_of(host)
    for launch in launches:
        if launch == "srun":
            continue
        for request in shapes(launch):
            plan = propose(host, facts, request, mode_of(launch, host))
            # These plans need a whole job script, which tests/full/jobs/test_mpirun_nodes.py runs.
            if by_agent(plan):
                continue
            made = Launch(image, flavour, launch, "planned", plan, request)
            if made.argv(runtime) != Launch(
                image, flavour, launch, "naive", naive(launch, host), request
            ).argv(runtime):
                yield made


def with_central(image: str, place: str, host: HostFacts, facts: ImageFacts, path: str) -> Iterator[Launch]:
    """Yield launches with an MPI that the centre installs; ``path`` is the folder with the MPI's programs."""
    found = (*plain(image, place, host, CENTRAL), *planned(image, place, host, facts, CENTRAL))
    for launch in found:
        if launch.request.nodes * launch.request.ranks_per_node == 2:
            yield replace(launch, path=path)


OVER_UCX = {
    "OMPI_MCA_pml": "ucx",
    "OMPI_MCA_opal_common_ucx_tls": "any",
    "OMPI_MCA_opal_common_ucx_devices": "any",
}
"""Settings that make Open MPI use UCX although the nodes have no fast network."""

TRAPS: tuple[tuple[str, dict[str, str], tuple[str, ...], int], ...] = (
    ("--cleanenv", {}, ("--cleanenv",), 1),
    ("--containall", {}, ("--containall",), 1),
    ("--contain", {}, ("--contain",), 1),
    ("--contain", {}, ("--contain",), 2),
    ("--no-mount tmp", {}, ("--no-mount", "tmp"), 1),
    ("OMPI_MCA_btl=openib", {"OMPI_MCA_btl": "openib"}, (), 1),
    ("OMPI_MCA_pml=ucx", {"OMPI_MCA_pml": "ucx"}, (), 1),
    ("OMPI_MCA_btl_tcp_if_include=ib0", {"OMPI_MCA_btl_tcp_if_include": "ib0"}, (), 1),
    ("PMIX_MCA_gds=hash", {"PMIX_MCA_gds": "hash"}, (), 1),
    ("PMIX_MCA_psec=munge", {"PMIX_MCA_psec": "munge"}, (), 1),
    ("FI_PROVIDER=verbs", {"FI_PROVIDER": "verbs"}, (), 1),
    ("UCX_TLS=rc", {"UCX_TLS": "rc"}, (), 1),
    ("I_MPI_FABRICS=shm", {"I_MPI_FABRICS": "shm"}, (), 1),
    ("APPTAINER_CLEANENV=1", {"APPTAINER_CLEANENV": "1"}, (), 1),
    ("APPTAINER_CONTAIN=1", {"APPTAINER_CONTAIN": "1"}, (), 1),
    ("TMPDIR=/nowhere", {"TMPDIR": "/nowhere"}, (), 1),
    ("TMPDIR=/nowhere", {"TMPDIR": "/nowhere"}, (), 2),
    ("PMIX_SERVER_TMPDIR=/nowhere", {"PMIX_SERVER_TMPDIR": "/nowhere"}, (), 1),
    ("PMIX_GDS_MODULE=ds21", {"PMIX_GDS_MODULE": "ds21"}, (), 1),
    # Users can start a launch in the shell of another rank. The launch then has that rank's variables.
    ("PMI_RANK=0", {"PMI_RANK": "0", "PMI_SIZE": "1"}, (), 1),
    ("PMIX_RANK=0", {"PMIX_RANK": "0", "PMIX_NAMESPACE": "gone"}, (), 1),
    ("OMPI_COMM_WORLD_SIZE=1", {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}, (), 1),
    ("SLURM_MPI_TYPE=none", {"SLURM_MPI_TYPE": "none"}, (), 1),
    ("OMPI_MCA_ess=singleton", {"OMPI_MCA_ess": "singleton"}, (), 1),
    ("UCX_NET_DEVICES=mlx5_0:1", {"UCX_NET_DEVICES": "mlx5_0:1"}, (), 1),
    ("MPIR_CVAR_CH4_NETMOD=ucx", {"MPIR_CVAR_CH4_NETMOD": "ucx"}, (), 1),
    ("HYDRA_LAUNCHER=ssh", {"HYDRA_LAUNCHER": "ssh"}, (), 1),
    ("LD_PRELOAD=/nowhere/libmpi.so", {"LD_PRELOAD": "/nowhere/libmpi.so"}, (), 1),
    # These settings come from centres, from vendors' images, and from files in a home folder.
    ("OMPI_MCA_coll=^hcoll", {"OMPI_MCA_coll": "^hcoll", "OMPI_MCA_coll_hcoll_enable": "0"}, (), 1),
    ("OMPI_MCA_osc=^rdma", {"OMPI_MCA_osc": "^rdma", "OMPI_MCA_io": "romio321"}, (), 1),
    ("OMPI_MCA_shmem=nothing", {"OMPI_MCA_shmem": "nothing"}, (), 1),
    (
        "OMPI_MCA_mpi_cuda_support=0",
        {"OMPI_MCA_mpi_cuda_support": "0", "OMPI_MCA_mpi_leave_pinned": "1"},
        (),
        1,
    ),
    ("OMPI_MCA_btl_tcp_if_exclude=docker0", {"OMPI_MCA_btl_tcp_if_exclude": "docker0"}, (), 1),
    ("OMPI_MCA_btl_tcp_if_exclude=lo,docker0", {"OMPI_MCA_btl_tcp_if_exclude": "lo,docker0"}, (), 1),
    ("OMPI_MCA_oob_tcp_if_include=ib0", {"OMPI_MCA_oob_tcp_if_include": "ib0"}, (), 1),
    ("OMPI_MCA_pml=ucx over TCP", OVER_UCX, (), 1),
    ("OMPI_MCA_pml=ucx over TCP", OVER_UCX, (), 2),
    ("PMIX_MCA_gds=^ds12", {"PMIX_MCA_gds": "^ds12"}, (), 1),
    ("PMIX_MCA_gds=^hash", {"PMIX_MCA_gds": "^hash"}, (), 1),
    ("PMIX_MCA_psec=none", {"PMIX_MCA_psec": "none"}, (), 1),
    ("PMIX_MCA_psec=^munge", {"PMIX_MCA_psec": "^munge"}, (), 1),
    ("PMIX_MCA_ptl=^usock", {"PMIX_MCA_ptl": "^usock"}, (), 1),
    ("UCX_TLS=sm,self", {"UCX_TLS": "sm,self"}, (), 1),
    ("UCX_MEMTYPE_CACHE=n", {"UCX_MEMTYPE_CACHE": "n", "UCX_POSIX_USE_PROC_LINK": "n"}, (), 1),
    ("FI_TCP_IFACE=ib0", {"FI_TCP_IFACE": "ib0", "FI_EFA_USE_DEVICE_RDMA": "1"}, (), 1),
    ("MPICH_GPU_SUPPORT_ENABLED=1", {"MPICH_GPU_SUPPORT_ENABLED": "1", "MPIR_CVAR_ENABLE_GPU": "1"}, (), 1),
)
"""Changes to a launch, many of which break it: name, variables, container options, and ranks per node."""


def traps(image: str, flavour: str, host: HostFacts, launch: str, facts: ImageFacts) -> Iterator[Launch]:
    """Yield the engine's plan with one change of ``TRAPS``.

    If the change sets variables, also yield the plan that the engine makes for a job with these variables.
    """
    for trap, exports, options, ranks in TRAPS:
        request = Request(nodes=2, ranks_per_node=ranks)
        base = propose(host, facts, request, mode_of(launch, host))
        plan = msgspec.structs.replace(base, container=(*base.container, *options))
        yield Launch(image, flavour, launch, "trap", plan, request, trap, exports)
        if exports:
            there = inherited(host, exports)
            mended = propose(there, facts, request, mode_of(launch, host))
            if mended != plan:
                yield Launch(image, flavour, launch, "mended", mended, request, trap, exports)


def as_root(image: str, flavour: str, host: HostFacts, _: str, facts: ImageFacts) -> Iterator[Launch]:
    """Yield the engine's launches in all modes with --fakeroot.

    The ranks then have user ID 0, but a launcher expects the ID of the user who started it.
    """
    for launch in (launch for launch in LAUNCHES if launch != "srun"):
        for request in shapes(launch)[:2]:
            base = propose(host, facts, request, mode_of(launch, host))
            if not by_agent(base):
                plan = msgspec.structs.replace(base, container=(*base.container, "--fakeroot"))
                yield Launch(image, flavour, launch, "trap", plan, request, "--fakeroot")


def without_sharing(
    image: str, flavour: str, host: HostFacts, launch: str, facts: ImageFacts
) -> Iterator[Launch]:
    """Yield launches by podman that each lack one option of the engine's plan, such as ``--ipc=host``.

    By default, podman shares nothing with the host.
    """
    for left in (
        DESCRIPTOR,
        "--env-host",
        "--network=host",
        "--ipc=host",
        "--pid=host",
        "--userns=keep-id",
        "/tmp",
    ):
        for nodes, ranks in ((2, 1), (1, 2), (2, 2)):
            request = Request(nodes=nodes, ranks_per_node=ranks)
            base = propose(host, facts, request, mode_of(launch, host))
            plan = msgspec.structs.replace(
                base,
                container=tuple(word for word in base.container if word != left),
                binds=tuple(bind for bind in base.binds if bind != left),
            )
            yield Launch(image, flavour, launch, "trap", plan, request, f"without {left}")


def small_shm(image: str, flavour: str, host: HostFacts, launch: str, facts: ImageFacts) -> Iterator[Launch]:
    for size in (64 << 10, 1 << 20):
        changes = {"shm": size}
        request = Request(nodes=1, ranks_per_node=2)
        plan = propose(host, facts, request, mode_of(launch, host))
        trap = f"/dev/shm of {size >> 10} KiB"
        yield Launch(image, flavour, launch, "trap", plan, request, trap, {}, changes)
        mended = propose(inherited(host, {}, changes), facts, request, mode_of(launch, host))
        if mended != plan:
            yield Launch(image, flavour, launch, "mended", mended, request, trap, {}, changes)


def little_memlock(
    image: str, flavour: str, host: HostFacts, launch: str, facts: ImageFacts
) -> Iterator[Launch]:
    """Yield launches from a shell that may lock only 64 KiB of memory; srun gives the ranks this limit."""
    for nodes, ranks in ((2, 1), (1, 2)):
        request = Request(nodes=nodes, ranks_per_node=ranks)
        plan = propose(host, facts, request, mode_of(launch, host))
        changes = {"locked_memory": 64 << 10}
        yield Launch(image, flavour, launch, "trap", plan, request, "ulimit -l 64", {}, changes)


def inherited(host: HostFacts, variables: dict[str, str], changes: dict[str, Any] | None = None) -> HostFacts:
    """Return the host's facts for a job that inherits ``variables``; ``changes`` replaces other facts."""
    changed = msgspec.structs.replace(host, environment={**host.environment, **variables})
    return msgspec.convert({**msgspec.to_builtins(changed), **(changes or {})}, HostFacts)
