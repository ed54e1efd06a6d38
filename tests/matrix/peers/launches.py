"""Define launches of programs whose ranks find each other without MPI."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from tests.matrix.launches import shape
from tests.matrix.record import Cell
from toolkit.engine.planning.plan import plan
from toolkit.engine.planning.proposal import RANKS_FILE
from toolkit.launch.jobscript.plan import launch_words
from toolkit.launch.jobscript.script import job_script
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Mode, Plan, Request
from toolkit.program.command import read_command

PROGRAMS = Path(__file__).parent / "programs"
FOLDER = "/work/ada/peers"
"""Folder on the cluster that has the programs, and in which jobs write files."""
TWO, BOTH, FOUR = (2, 1), (1, 2), (2, 2)


@dataclass(frozen=True)
class Trap:
    """One change to a launch, such as other variables, container options or words of the command."""

    name: str
    env: dict[str, str] = field(default_factory=dict)
    container: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    exports: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    before: str = ""
    shm: int = 0
    shapes: tuple[tuple[int, int], ...] = (TWO,)


@dataclass(frozen=True)
class ProgramLaunch:
    image: str
    flavour: str
    program: str
    variant: str
    plan: Plan
    request: Request
    trap: Trap = Trap("")

    @property
    def name(self) -> str:
        parts = [self.flavour, self.image, self.plan.mode, self.program, shape(self.request), self.variant]
        return " ".join([*parts, *([self.trap.name] if self.trap.name else [])])

    def spec(self, sif: str, folder: str) -> JobSpec:
        return JobSpec(
            name="peers",
            image=sif,
            command=self.request.command,
            directory=folder,
            nodes=self.request.nodes,
            ranks_per_node=self.request.ranks_per_node,
            workdir=f"{FOLDER}/programs",
            binds=(FOLDER,),
            preflight=False,
        )

    def argv(self, runtime: str) -> str:
        words = launch_words(self.spec("IMAGE", "."), self.plan, self.request.command, runtime)
        exports = [f"{name}={value}" for name, value in self.trap.exports.items()]
        before = [self.trap.before, ";"] if self.trap.before else []
        return " ".join([*before, shlex.join([*exports, *(w for group in words for w in group)])])

    def script(self, sif: str, folder: str, runtime: str, image: ImageFacts) -> str:
        """Return the job script of the launch; its first lines change the shell as the trap says."""
        exports = [f"export {name}={shlex.quote(value)}" for name, value in self.trap.exports.items()]
        text = job_script(self.spec(sif, folder), self.plan, "recorded", runtime, image=image)
        return "\n".join([*exports, *([self.trap.before] if self.trap.before else []), text])

    def cell(self, runtime: str, **became: object) -> Cell:
        return Cell(
            name=self.name,
            image=self.image,
            flavour=self.flavour,
            launch=f"{self.plan.mode} {self.program}",
            variant=self.variant,
            plan=self.plan,
            request=self.request,
            argv=self.argv(runtime),
            trap=self.trap.name,
            environment=self.trap.exports,
            host_changes={"shm": self.trap.shm} if self.trap.shm else {},
            **became,  # type: ignore[arg-type] # the fields of a cell
        )


COMMANDS: dict[str, tuple[str, ...]] = {
    "ddp": ("python", "ddp.py"),
    "ddp-step": ("python", "ddp_step.py"),
    "ddp-localhost": ("python", "ddp_localhost.py"),
    "ddp-spawn": ("python", "ddp_spawn.py"),
    "loader": ("python", "loader.py"),
    "torchrun": ("torchrun", "ddp.py"),
    "run.sh": ("sh", "run.sh"),
    "run-options.sh": ("sh", "run_options.sh"),
    "jax-auto": ("python", "jax_auto.py"),
    "jax-explicit": ("python", "jax_explicit.py"),
    "mwms": ("python", "mwms.py"),
    "hvd": ("python", "hvd.py"),
}
OF_IMAGE: dict[str, tuple[str, ...]] = {
    "torch": (
        "ddp",
        "ddp-step",
        "ddp-localhost",
        "ddp-spawn",
        "loader",
        "torchrun",
        "run.sh",
        "run-options.sh",
    ),
    "torch-openmpi": (
        "ddp",
        "ddp-step",
        "ddp-localhost",
        "ddp-spawn",
        "loader",
        "torchrun",
        "run.sh",
        "run-options.sh",
    ),
    "jax-cpu": ("jax-auto", "jax-explicit"),
    "tf2.15-cpu": ("mwms", "hvd"),
}
MODES: dict[str, Mode] = {"jax-auto": "jax", "jax-explicit": "jax", "mwms": "tf-config", "hvd": "srun-pmix"}

_LISTENER = (
    "python3 -c 'import socket, time; s = socket.create_server((\"\", 29611)); time.sleep(60)' & sleep 1"
)
_EVERY = (
    Trap("--cleanenv", container=("--cleanenv",)),
    Trap("--containall", container=("--containall",), shapes=(TWO, BOTH)),
    Trap("--contain", container=("--contain",), shapes=(TWO, BOTH)),
    Trap("--no-mount tmp", container=("--no-mount", "tmp")),
    Trap("APPTAINER_CLEANENV=1", exports={"APPTAINER_CLEANENV": "1"}),
    Trap("-u SLURM_PROCID", unset=("SLURM_PROCID",), shapes=(TWO, BOTH)),
    Trap("-u SLURM_LOCALID", unset=("SLURM_LOCALID",)),
    Trap("SLURM_NTASKS=1", env={"SLURM_NTASKS": "1"}),
    Trap("SLURM_NTASKS=1 inherited", exports={"SLURM_NTASKS": "1"}),
    Trap("OMPI_COMM_WORLD_SIZE=1 inherited", exports={"OMPI_COMM_WORLD_SIZE": "1", "PMI_SIZE": "1"}),
)


def _tf_config(*workers: str) -> dict[str, str]:
    """Return TF_CONFIG for the first of several workers."""
    value = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": 0}}
    return {"TF_CONFIG": json.dumps(value)}


TRAPS: dict[str, tuple[Trap, ...]] = {
    "ddp": (
        *_EVERY,
        Trap("MASTER_ADDR=localhost", {"MASTER_ADDR": "localhost"}, shapes=(TWO, BOTH, FOUR)),
        Trap("MASTER_ADDR=127.0.0.1", {"MASTER_ADDR": "127.0.0.1"}, shapes=(TWO, BOTH)),
        Trap("MASTER_ADDR=::1", {"MASTER_ADDR": "::1"}),
        Trap("MASTER_ADDR=node1", {"MASTER_ADDR": "node1"}),
        Trap("MASTER_ADDR=node2", {"MASTER_ADDR": "node2"}),
        Trap("MASTER_ADDR=login", {"MASTER_ADDR": "login"}),
        Trap("MASTER_ADDR=nowhere.invalid", {"MASTER_ADDR": "nowhere.invalid"}, shapes=(TWO, BOTH)),
        Trap("MASTER_ADDR=''", {"MASTER_ADDR": ""}),
        Trap("MASTER_ADDR=localhost inherited", exports={"MASTER_ADDR": "localhost", "MASTER_PORT": "1"}),
        Trap("MASTER_PORT=29611", {"MASTER_PORT": "29611"}, shapes=(TWO, BOTH)),
        Trap("MASTER_PORT=29611 taken", {"MASTER_PORT": "29611"}, before=_LISTENER),
        Trap("port taken, none given", before=_LISTENER),
        Trap("MASTER_PORT=80", {"MASTER_PORT": "80"}),
        Trap("MASTER_PORT=70000", {"MASTER_PORT": "70000"}),
        Trap("WORLD_SIZE=1", {"WORLD_SIZE": "1"}, shapes=(TWO, BOTH)),
        Trap("WORLD_SIZE=3", {"WORLD_SIZE": "3"}, shapes=(TWO, BOTH)),
        Trap("WORLD_SIZE=2", {"WORLD_SIZE": "2"}, shapes=(TWO, FOUR)),
        Trap("WORLD_SIZE=1 RANK=0", {"WORLD_SIZE": "1", "RANK": "0"}, shapes=(TWO, BOTH)),
        Trap("RANK=0", {"RANK": "0"}, shapes=(TWO, BOTH)),
        Trap("LOCAL_RANK=0", {"LOCAL_RANK": "0"}, shapes=(TWO, BOTH)),
        Trap("GLOO_SOCKET_IFNAME=ib0", {"GLOO_SOCKET_IFNAME": "ib0"}, shapes=(TWO, BOTH)),
        Trap("GLOO_SOCKET_IFNAME=lo", {"GLOO_SOCKET_IFNAME": "lo"}, shapes=(TWO, BOTH)),
        Trap("GLOO_SOCKET_IFNAME=eth0", {"GLOO_SOCKET_IFNAME": "eth0"}),
        Trap("NCCL_SOCKET_IFNAME=ib0", {"NCCL_SOCKET_IFNAME": "ib0"}),
        Trap("TP_SOCKET_IFNAME=ib0", {"TP_SOCKET_IFNAME": "ib0"}),
    ),
    "loader": (Trap("/dev/shm of 1 MiB", shm=1 << 20, shapes=(TWO,)),),
    "torchrun": (
        *_EVERY,
        Trap("--nnodes=1", words=("--nnodes=1",), shapes=(TWO, FOUR)),
        Trap("--nnodes=2", words=("--nnodes", "2"), shapes=(TWO, FOUR)),
        Trap("--nnodes=3", words=("--nnodes=3",)),
        Trap("--nnodes=1:2", words=("--nnodes=1:2",)),
        Trap("--nproc-per-node=1", words=("--nproc-per-node=1",), shapes=(TWO, FOUR)),
        Trap("--nproc_per_node=2", words=("--nproc_per_node", "2"), shapes=(TWO, BOTH, FOUR)),
        Trap("--standalone", words=("--standalone",), shapes=(TWO, BOTH, FOUR)),
        Trap("--master-addr=localhost", words=("--master-addr=localhost",)),
        Trap(
            "--rdzv-endpoint=localhost:29500", words=("--rdzv-endpoint=localhost:29500",), shapes=(TWO, BOTH)
        ),
        Trap("--rdzv-backend=static", words=("--rdzv-backend=static",), shapes=(TWO, FOUR)),
        Trap("--node-rank=0", words=("--node-rank=0",)),
        Trap("PET_NNODES=1", {"PET_NNODES": "1"}),
        Trap("MASTER_ADDR=localhost", {"MASTER_ADDR": "localhost"}),
        Trap("WORLD_SIZE=1", {"WORLD_SIZE": "1"}),
        Trap("GLOO_SOCKET_IFNAME=ib0", {"GLOO_SOCKET_IFNAME": "ib0"}),
        Trap("GLOO_SOCKET_IFNAME=lo", {"GLOO_SOCKET_IFNAME": "lo"}),
    ),
    "jax-auto": (
        *_EVERY,
        Trap(
            "JAX_COORDINATOR_ADDRESS=localhost:29611",
            {"JAX_COORDINATOR_ADDRESS": "localhost:29611"},
            shapes=(TWO, BOTH),
        ),
        Trap("JAX_COORDINATOR_ADDRESS=node2:29611", {"JAX_COORDINATOR_ADDRESS": "node2:29611"}),
        Trap(
            "JAX_COORDINATOR_ADDRESS=nowhere.invalid:29611",
            {"JAX_COORDINATOR_ADDRESS": "nowhere.invalid:29611"},
        ),
        Trap("JAX_COORDINATOR_ADDRESS=node1:29611", {"JAX_COORDINATOR_ADDRESS": "node1:29611"}),
        Trap(
            "JAX_COORDINATOR_ADDRESS=node1:29611 taken",
            {"JAX_COORDINATOR_ADDRESS": "node1:29611"},
            before=_LISTENER,
        ),
        Trap("JAX_NUM_PROCESSES=1", {"JAX_NUM_PROCESSES": "1"}),
        Trap("JAX_PROCESS_ID=0", {"JAX_PROCESS_ID": "0"}),
        Trap("SLURM_PROCID=0", {"SLURM_PROCID": "0"}),
        Trap("-u SLURM_JOB_ID", unset=("SLURM_JOB_ID", "SLURM_JOBID")),
        Trap("-u SLURM_STEP_NODELIST", unset=("SLURM_STEP_NODELIST",)),
    ),
    "jax-explicit": (
        *_EVERY,
        Trap(
            "JAX_COORDINATOR_ADDRESS=localhost:29611",
            {"JAX_COORDINATOR_ADDRESS": "localhost:29611"},
            shapes=(TWO, BOTH),
        ),
        Trap("JAX_NUM_PROCESSES=1", {"JAX_NUM_PROCESSES": "1"}, shapes=(TWO, BOTH)),
        Trap("JAX_NUM_PROCESSES=3", {"JAX_NUM_PROCESSES": "3"}),
        Trap("JAX_PROCESS_ID=0", {"JAX_PROCESS_ID": "0"}, shapes=(TWO, BOTH)),
        Trap("JAX_NUM_PROCESSES=1 JAX_PROCESS_ID=0", {"JAX_NUM_PROCESSES": "1", "JAX_PROCESS_ID": "0"}),
    ),
    "mwms": (
        *_EVERY,
        Trap("TF_CONFIG={}", {"TF_CONFIG": "{}"}),
        Trap(
            "TF_CONFIG of one",
            _tf_config("localhost:29611"),
            shapes=(TWO, BOTH),
        ),
        Trap(
            "TF_CONFIG of rank 0",
            _tf_config("node1:29611", "node2:29611"),
        ),
        Trap(
            "TF_CONFIG of three",
            _tf_config("node1:29611", "node2:29611", "login:29611"),
        ),
    ),
    "hvd": (Trap("HOROVOD_CONTROLLER=gloo", {"HOROVOD_CONTROLLER": "gloo"}, shapes=(TWO, BOTH)),),
}


def wanted(image: str, flavour: str, host: HostFacts, facts: ImageFacts) -> Iterator[ProgramLaunch]:
    """Yield all launches of an image: each program, in several shapes, with and without changes."""
    for program in OF_IMAGE[image]:
        for nodes, ranks in (TWO, BOTH, FOUR):
            made = _planned(image, flavour, program, host, facts, (nodes, ranks))
            yield made
            if RANKS_FILE in made.plan.wrapper:
                bare = msgspec.structs.replace(made.plan, wrapper=(), starter="")
                yield replace(made, variant="naive", plan=bare)
        for mode in _others(program):
            yield _planned(image, flavour, program, host, facts, TWO, mode=mode)
        for trap in TRAPS.get(program, ()):
            for places in trap.shapes:
                yield _planned(image, flavour, program, host, facts, places, trap)


def _others(program: str) -> tuple[Mode, ...]:
    if program == "hvd":
        return ("gloo", "srun-none", "srun-pmi2")
    return ("srun-pmix", "mpirun-host", "srun-none") if program in {"ddp", "jax-auto", "jax-explicit"} else ()


def _planned(
    image: str,
    flavour: str,
    program: str,
    host: HostFacts,
    facts: ImageFacts,
    places: tuple[int, int],
    trap: Trap = Trap(""),
    mode: Mode | None = None,
) -> ProgramLaunch:
    first, *rest = COMMANDS[program]
    command = (first, *trap.words, *rest)
    request = asked(command, places, trap.env)
    if mode == "gloo":
        request = msgspec.structs.replace(request, directory=FOLDER)
    words = plan(host, facts, request, mode or MODES.get(program, "torch"))
    words = msgspec.structs.replace(
        words,
        container=(*words.container, "--pwd", f"{FOLDER}/programs", *trap.container),
        unset=(*words.unset, *trap.unset),
        binds=(*words.binds, FOLDER),
    )
    variant = "trap" if trap.name else "planned"
    return ProgramLaunch(image, flavour, program, variant, words, request, trap)


def asked(command: tuple[str, ...], places: tuple[int, int], env: dict[str, str]) -> Request:
    """Return the engine's request for a command; the command's script shows how its ranks find each other."""
    shown = read_command(command, PROGRAMS)
    return Request(
        nodes=places[0],
        ranks_per_node=places[1],
        env=env,
        command=command,
        joins=shown.joins,
        says=dict(shown.says),
    )
