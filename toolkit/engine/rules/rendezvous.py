"""Rules about ranks that meet without MPI: Horovod's by Gloo, ranks of PyTorch, JAX and TensorFlow."""

import re

from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.meeting import (
    JAX_BY_SLURM,
    Given,
    address,
    by_srun,
    interfaces,
    is_explicit,
    is_local,
    is_told_peers,
    nodes_of,
    starts_by_torchrun,
    told,
)
from toolkit.engine.rule import MPI_MODES, Hit, rule
from toolkit.engine.rules.program import WITHOUT_MPI
from toolkit.model.prediction import Outcome

_SOURCE = "horovod/horovod:docs/gloo.rst"


@rule(
    "gloo-lacks-horovod",
    "There is no Horovod in the image, which alone can do without MPI",
    severity="error",
    fix="use an image with Horovod",
    instead=MPI_MODES,
    source=_SOURCE,
    facts=("image.horovod",),
    modes=("gloo",),
)
def gloo_lacks_horovod(case: Case) -> Hit | None:
    """Gloo is Horovod's own way to wire up ranks; no other program speaks it."""
    if case.image.horovod:
        return None
    return Hit(case.cite("image.horovod"), "unavailable")


@rule(
    "horovod-lacks-gloo",
    "Horovod in the image was built without Gloo",
    severity="error",
    fix="build it with HOROVOD_WITH_GLOO=1 (toolkit image build does)",
    instead=MPI_MODES,
    source=_SOURCE,
    facts=("image.horovod", "image.horovod_built"),
    modes=("gloo",),
)
def horovod_lacks_gloo(case: Case) -> Hit | None:
    """Asked for a controller that it does not have, Horovod ends in ``hvd.init()``."""
    if not case.image.horovod:
        return None
    built = case.image_facts.horovod_built
    if built is None:  # its libraries do not say
        raise Undecided("image.horovod_built")
    if "gloo" in built:
        return None
    return Hit(case.cite("image.horovod_built"), "init-failure", "Horovod has no Gloo to wire up its ranks")


_ENV = "PyTorch documentation, torch.distributed, environment variable initialization"
_LEAVE = "leave it to toolkit: the job script sets it from the nodes of the job"
_MOST_PORT = 65535
_WORKER = re.compile(r"[\w.\]-]+:\d+")


@rule(
    "peers-not-told",
    "Nothing tells the ranks where the others are",
    severity="error",
    fix="launch it with toolkit, whose job script tells each rank its peers",
    source=f"{_ENV}; TensorFlow guide, distributed training, TF_CONFIG; tests/matrix/peers",
    facts=(),
    programs=WITHOUT_MPI,
)
def peers_not_told(case: Case) -> Hit | None:
    """A launcher says how many ranks there are. PyTorch looks for MASTER_ADDR, RANK and WORLD_SIZE, which no
    launcher sets; TensorFlow without TF_CONFIG takes itself for the only worker. JAX reads Slurm's variables.
    """
    if is_told_peers(case) or case.request.alone:
        return None
    evidence = (f"plan: {' '.join(case.plan.launcher)} tells ranks nothing of MASTER_ADDR or TF_CONFIG",)
    if case.plan.program == "tf-config" and told(case, "TF_CONFIG") is None:
        return Hit(evidence, "singletons", "TensorFlow without TF_CONFIG takes itself for the only worker")
    if case.plan.program == "jax" and is_explicit(case):
        return Hit(evidence, "init-failure", "nothing sets the variables that the program reads")
    if case.plan.program != "torch":
        return None
    if starts_by_torchrun(case):
        return _torchrun_alone(case, evidence)
    if all(told(case, name) for name in ("MASTER_ADDR", "WORLD_SIZE", "RANK")):
        return None
    return Hit(evidence, "init-failure", "PyTorch finds no MASTER_ADDR, RANK and WORLD_SIZE")


def _torchrun_alone(case: Case, evidence: tuple[str, ...]) -> Hit:
    """Without options torchrun starts a world of one; a second one finds its port taken."""
    if case.request.ranks_per_node > 1:
        return Hit(evidence, "init-failure", "each rank starts its own torchrun, on one port")
    return Hit(evidence, "singletons", "torchrun without --nnodes takes its node for the only one")


@rule(
    "address-is-local",
    "The ranks meet at an address that each node takes for itself",
    severity="error",
    fix=_LEAVE,
    source=f"{_ENV}; tests/matrix/peers",
    facts=(),
    programs=WITHOUT_MPI,
)
def address_is_local(case: Case) -> Hit | None:
    """The first rank listens on its node. With ``localhost`` the ranks of other nodes knock at their own, and
    wait until they give up, minutes later.
    """
    found = address(case)
    if found is None or case.request.alone:
        return None
    if not found.value:
        return Hit((found.evidence,), "init-failure", f"{found.name} is empty")
    if case.request.nodes == 1 or not is_local(found.value):
        return None
    return Hit((found.evidence,), "hang", f"{found.name} is {found.value} on every node")


@rule(
    "address-given",
    "The address at which the ranks meet is fixed, and the nodes of the job are not",
    severity="warning",
    fix=_LEAVE,
    source=_ENV,
    facts=(),
    programs=WITHOUT_MPI,
)
def address_given(case: Case) -> Hit | None:
    """The first rank listens on its own node, whichever Slurm gives it. An address of another node or of
    another job, or one that does not resolve leaves the ranks waiting.
    """
    found = address(case)
    if found is None or case.request.alone or not found.value or is_local(found.value):
        return None
    because = f"whether {found.value} is the first node of the job is not known before it starts"
    return Hit((found.evidence,), "unknown", because)


@rule(
    "port-given",
    "The port at which the ranks meet is fixed: two jobs on a node want the same",
    severity="warning",
    fix="leave it to toolkit: the job script takes a port that is free and differs from job to job",
    source=f"{_ENV}; tests/matrix/peers",
    facts=(),
    programs=("torch",),
)
def port_given(case: Case) -> Hit | None:
    """The second job that listens on a port of a node fails: 'address already in use'."""
    found = told(case, "MASTER_PORT")
    if found is None or starts_by_torchrun(case):
        return None
    if found.number is None or not 0 <= found.number <= _MOST_PORT:
        return Hit((found.evidence,), "init-failure", f"{found.value} is not a port")
    return Hit((found.evidence,), by_chance=("init-failure", "hang"))


@rule(
    "world-given",
    "Command or variables name another number of ranks than are started, or one number for all",
    severity="error",
    fix="leave count and number of a rank to toolkit, which sets them for each rank",
    source=f"{_ENV}; jax-ml/jax:jax/_src/distributed.py; tests/matrix/peers",
    facts=(),
    programs=("torch", "jax"),
)
def world_given(case: Case) -> Hit | None:
    """Ranks wait until as many have come as the count says; a rank whose number is not below the count is
    refused, and of two ranks with one number neither finds the other.
    """
    ranks = case.request.nodes * case.request.ranks_per_node
    count, number = _world(case)
    size = count.number if count and count.number is not None else ranks
    if ranks == 1 or (size == ranks and number is None):
        return None
    evidence = tuple(one.evidence for one in (count, number) if one)
    if number is not None:
        return Hit(evidence, _with_one_number(case, size), f"each rank is number {number.value} of {size}")
    if size > ranks:
        return Hit(evidence, "hang", f"{ranks} ranks wait for {size}")
    why = f"{ranks} ranks start, and the count is {size}: the first ranks train without the others"
    return Hit(evidence, "singletons" if size == 1 else "wrong-size", why, by_chance=("init-failure",))


def _world(case: Case) -> tuple[Given | None, Given | None]:
    """Return the count of ranks and the number of a rank, as far as they are given."""
    if case.plan.program == "jax" and is_explicit(case):
        return told(case, "num_processes", "JAX_NUM_PROCESSES"), told(case, "process_id", "JAX_PROCESS_ID")
    if case.plan.program == "jax":
        return told(case, "SLURM_NTASKS"), told(case, "SLURM_PROCID")
    if starts_by_torchrun(case):
        return None, None
    return told(case, "world_size", "WORLD_SIZE"), told(case, "rank", "RANK")


def _with_one_number(case: Case, size: int) -> Outcome:
    """Return the outcome of ranks that all have one number: on one node the second finds its port taken."""
    if case.request.ranks_per_node > 1:
        return "init-failure"
    return "singletons" if size == 1 else "hang"


@rule(
    "starter-counts-differ",
    "Options of torchrun name other counts than the job has",
    severity="error",
    fix="leave --nnodes, --nproc-per-node and --standalone out: toolkit sets them from the job",
    source="https://docs.pytorch.org/docs/stable/elastic/run.html; tests/matrix/peers",
    facts=(),
    programs=("torch",),
)
def starter_counts_differ(case: Case) -> Hit | None:
    """With ``--standalone`` or ``--nnodes=1`` each node trains alone, with exit status 0. With more nodes
    than the job has torchrun waits for them; another ``--nproc-per-node`` starts another number of ranks.
    """
    if not starts_by_torchrun(case) or not is_told_peers(case):
        return None
    given = [told(case, f"PET_{name}") for name in ("STANDALONE", "NNODES", "NPROC_PER_NODE")]
    alone, nnodes, nproc = given
    evidence = tuple(one.evidence for one in given if one)
    nodes, each = case.request.nodes, case.request.ranks_per_node
    local = nproc.number if nproc and nproc.number is not None else each
    span = (1, 1) if alone else nodes_of(nnodes, nodes)
    if span is None or (span[0] <= nodes <= span[1] and local == each):
        return None
    if span[0] > nodes:
        return Hit(evidence, "hang", f"torchrun waits for {span[0]} nodes, and the job has {nodes}")
    world = min(span[1], nodes) * local
    why = f"torchrun makes worlds of {world}, and the job has {nodes * each} ranks"
    return Hit(evidence, "singletons" if world == 1 else "wrong-size", why)


@rule(
    "spawns-own-ranks",
    "The script starts its ranks itself, on its own node, and each copy of it makes a world",
    severity="error",
    fix="start one rank for each process: torchrun SCRIPT, or read RANK and WORLD_SIZE in place of mp.spawn",
    source="https://docs.pytorch.org/docs/stable/multiprocessing.html; tests/matrix/peers",
    facts=(),
    programs=("torch",),
)
def spawns_own_ranks(case: Case) -> Hit | None:
    """``torch.multiprocessing.spawn`` starts processes on the node of its caller and numbers them from 0. The
    launcher starts the script once for each rank, so that there are as many worlds as ranks.
    """
    if "spawn" not in case.request.says or case.request.alone:
        return None
    evidence = ("command: torch.multiprocessing.spawn",)
    if case.request.ranks_per_node > 1 and told(case, "MASTER_PORT"):
        return Hit(evidence, "init-failure", "the worlds of one node share a port")
    single = case.request.says.get("spawn_nprocs", "1") == "1"
    return Hit(evidence, "singletons" if single else "wrong-size", "each rank starts its own world")


@rule(
    "interface-absent",
    "The interface for Gloo is absent, or leads to no other node",
    severity="error",
    fix="leave GLOO_SOCKET_IFNAME out, or name an interface of the compute nodes: toolkit probe lists them",
    source="pytorch/pytorch:torch/csrc/distributed/c10d/ProcessGroupGloo.cpp; tests/matrix/peers",
    facts=("host.interfaces",),
    programs=("torch",),
)
def interface_absent(case: Case) -> Hit | None:
    """Gloo listens at the address of the interface, and tells the others that address."""
    for found in interfaces(case):
        if found.value == "lo":
            if case.request.nodes > 1:
                why = "lo leads to no other node"
                return Hit((found.evidence,), "init-failure", why)
            continue
        case.ask("host.interfaces")
        if found.value not in (case.host.interfaces or ()):
            evidence = (found.evidence, *case.cite("host.interfaces"))
            return Hit(evidence, "init-failure", f"there is no interface {found.value}")
    return None


@rule(
    "jax-needs-its-launcher",
    "JAX does not find count and number of its processes under this launcher",
    severity="error",
    fix="pass coordinator_address, num_processes and process_id to the call that initializes it",
    instead=("jax",),
    source="jax-ml/jax:jax/_src/clusters, slurm_cluster.py and ompi_cluster.py; tests/matrix/peers",
    facts=(),
    programs=("jax",),
)
def jax_needs_its_launcher(case: Case) -> Hit | None:
    """``jax.distributed.initialize()`` reads the variables of a step of Slurm, or variables of the mpirun of
    Open MPI before release 5.
    """
    if is_explicit(case) or case.request.alone:
        return None
    removed = [name for name in JAX_BY_SLURM if name in case.plan.unset]
    if removed:
        return Hit((f"plan: {removed[0]} is removed",), "init-failure", f"JAX finds no {removed[0]}")
    if by_srun(case):
        return None
    because = "mpirun starts the ranks, and JAX reads a step of Slurm"
    return Hit((f"plan: {' '.join(case.plan.launcher)}",), "init-failure", because)


@rule(
    "tf-config-given",
    "TF_CONFIG is fixed, and every rank reads the same number in it",
    severity="error",
    fix="leave TF_CONFIG out: the job script sets it for each rank",
    source="TensorFlow guide, distributed training, TF_CONFIG; tests/matrix/peers",
    facts=(),
    programs=("tf-config",),
)
def tf_config_given(case: Case) -> Hit | None:
    """TF_CONFIG holds the list of workers and the number of one of them. With one value for all, each rank
    takes itself for the same worker: alone if the list has one, waiting if it has more.
    """
    found = told(case, "TF_CONFIG")
    if found is None or case.request.alone:
        return None
    workers = len(_WORKER.findall(found.value))
    if workers > 1:
        return Hit((found.evidence,), "hang", "every rank is the same worker, and the others never come")
    if workers == 1 and case.request.ranks_per_node > 1:
        return Hit((found.evidence,), "init-failure", "the ranks of a node share the port of one worker")
    return Hit((found.evidence,), "singletons", "every rank is the only worker")
