"""Rules about ranks that find each other without MPI: Horovod with Gloo, PyTorch, JAX and TensorFlow."""

import re

from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.rendezvous_facts import (
    JAX_BY_SLURM,
    RankSetting,
    find_setting,
    gloo_interfaces,
    is_local,
    node_range,
    passes_process_count,
    rendezvous_address,
    sets_peers,
    starts_by_srun,
    starts_by_torchrun,
)
from toolkit.engine.rule import MPI_MODES, Hit, rule
from toolkit.engine.rules.program import WITHOUT_MPI
from toolkit.model.prediction import Outcome

_SOURCE = "horovod/horovod:docs/gloo.rst"


@rule(
    "gloo-lacks-horovod",
    "The launch mode `gloo` needs Horovod, which the image does not have",
    severity="error",
    fix="use an image with Horovod",
    instead=MPI_MODES,
    source=_SOURCE,
    facts=("image.horovod",),
    modes=("gloo",),
)
def gloo_lacks_horovod(case: Case) -> Hit | None:
    """In the launch mode ``gloo``, ranks find each other through a server that only Horovod contacts."""
    if case.image.horovod:
        return None
    return Hit(case.cite("image.horovod"), "unavailable")


@rule(
    "horovod-lacks-gloo",
    "Horovod in the image was built without Gloo",
    severity="error",
    fix="build Horovod with HOROVOD_WITH_GLOO=1 (`toolkit image build` does)",
    instead=MPI_MODES,
    source=_SOURCE,
    facts=("image.horovod", "image.horovod_built"),
    modes=("gloo",),
)
def horovod_lacks_gloo(case: Case) -> Hit | None:
    """With HOROVOD_CONTROLLER=gloo, a Horovod without Gloo aborts in ``hvd.init()``."""
    if not case.image.horovod:
        return None
    built = case.image_facts.horovod_built
    if built is None:  # Horovod's libraries do not show whether they were built with Gloo
        raise Undecided("image.horovod_built")
    if "gloo" in built:
        return None
    return Hit(case.cite("image.horovod_built"), "init-failure", "Horovod has no Gloo to connect its ranks")


_ENV = "PyTorch documentation, torch.distributed, environment variable initialization"
_LEAVE = "do not set the address: the job script sets it from the nodes of the job"
_MOST_PORT = 65535
_WORKER = re.compile(r"[\w.\]-]+:\d+")


@rule(
    "peers-not-told",
    "The launch does not give each rank the addresses of the other ranks",
    severity="error",
    fix=(
        "launch the program with `toolkit launch`: the job script gives each rank the addresses of the "
        "other ranks"
    ),
    source=f"{_ENV}; TensorFlow guide, distributed training, TF_CONFIG; tests/matrix/peers",
    facts=(),
    programs=WITHOUT_MPI,
)
def peers_not_told(case: Case) -> Hit | None:
    """srun and mpirun each use their own variables to pass a rank its number and the number of ranks. PyTorch
    needs MASTER_ADDR, RANK and WORLD_SIZE, which neither srun nor mpirun sets. Without TF_CONFIG, each rank
    of TensorFlow starts as the only worker. JAX reads Slurm's variables, unless the program itself passes the
    number of processes.
    """
    if sets_peers(case) or case.request.has_one_rank or "spawn" in case.request.says:
        return None
    evidence = (f"plan: {' '.join(case.plan.launcher)} sets neither MASTER_ADDR nor TF_CONFIG",)
    if case.plan.program == "tf-config" and find_setting(case, "TF_CONFIG") is None:
        return Hit(evidence, "singletons", "TensorFlow without TF_CONFIG starts as the only worker")
    if case.plan.program == "jax" and passes_process_count(case):
        return Hit(evidence, "init-failure", "the launch does not set the variables that the program reads")
    if case.plan.program != "torch":
        return None
    if starts_by_torchrun(case):
        return _torchrun_alone(case, evidence)
    if all(find_setting(case, name) for name in ("MASTER_ADDR", "WORLD_SIZE", "RANK")):
        return None
    return Hit(evidence, "init-failure", "the launch does not set all of MASTER_ADDR, RANK and WORLD_SIZE")


def _torchrun_alone(case: Case, evidence: tuple[str, ...]) -> Hit:
    """Return the finding about torchrun without options: each torchrun creates a separate world. A second
    torchrun on a node may fail because the port is in use. In PyTorch 2.13, torchrun chooses a free port.
    """
    because = "torchrun without --nnodes uses only its own node"
    if case.request.ranks_per_node > 1:
        because = "each rank starts its own torchrun, and each torchrun creates a separate world"
    return Hit(evidence, "singletons", because, by_chance=_if_port_taken(case))


@rule(
    "address-is-local",
    "On every node, the rendezvous address names the node itself",
    severity="error",
    fix=_LEAVE,
    source=f"{_ENV}; tests/matrix/peers",
    facts=(),
    programs=WITHOUT_MPI,
)
def address_is_local(case: Case) -> Hit | None:
    """The first rank waits on its own node for connections from the other ranks. With the address
    ``localhost``, ranks on other nodes connect to their own node instead, and fail after minutes.
    """
    found = rendezvous_address(case)
    if found is None or case.request.has_one_rank:
        return None
    if not found.value:
        return Hit((found.evidence,), "init-failure", f"{found.name} is empty")
    if case.request.nodes == 1 or not is_local(found.value):
        return None
    because = f"{found.name} is {found.value} on every node"
    return Hit((found.evidence,), "hang", because, by_chance=("init-failure",))


@rule(
    "address-given",
    "The rendezvous address is fixed, but Slurm chooses the nodes of the job",
    severity="warning",
    fix=_LEAVE,
    source=_ENV,
    facts=(),
    programs=WITHOUT_MPI,
)
def address_given(case: Case) -> Hit | None:
    """The first rank waits on its node, which Slurm chooses, for connections from the other ranks. If the
    address does not resolve, or names a node without the first rank, the other ranks cannot join. The rule
    accepts an address with a shell variable, because the script can set the variable for each job.
    """
    found = rendezvous_address(case)
    if found is None or case.request.has_one_rank or not found.value:
        return None
    if is_local(found.value) or "$" in found.value:
        return None
    because = f"toolkit cannot know before the start whether {found.value} is the first node of the job"
    return Hit((found.evidence,), "unknown", because)


@rule(
    "port-given",
    "The rendezvous port is fixed, so two jobs on one node conflict",
    severity="warning",
    fix="do not set the port: the job script chooses a free port for each job",
    source=f"{_ENV}; tests/matrix/peers",
    facts=(),
    programs=("torch",),
)
def port_given(case: Case) -> Hit | None:
    """If two jobs on a node use the same port, the second job fails with 'address already in use'."""
    found = find_setting(case, "MASTER_PORT")
    if found is None or starts_by_torchrun(case):
        return None
    if found.number is None or not 0 <= found.number <= _MOST_PORT:
        because = f"{found.name} is {found.value}, not a number from 0 to {_MOST_PORT}"
        return Hit((found.evidence,), "init-failure", because)
    return Hit((found.evidence,), by_chance=("init-failure", "hang"))


@rule(
    "world-given",
    "The command or a variable sets a wrong number of ranks, or the same rank number for all ranks",
    severity="error",
    fix="do not set the number of ranks or the rank number: toolkit sets these two values for each rank",
    source=f"{_ENV}; jax-ml/jax:jax/_src/distributed.py; tests/matrix/peers",
    facts=(),
    programs=("torch", "jax"),
)
def world_given(case: Case) -> Hit | None:
    """Ranks wait until the given number of ranks has joined. PyTorch and JAX reject a rank whose number is
    not below the number of ranks. If two ranks have the same number, PyTorch's ranks wait for a rank with the
    missing number, and JAX's coordinator rejects the second rank.
    """
    ranks = case.request.nodes * case.request.ranks_per_node
    count, number = _count_and_rank(case)
    size = count.number if count and count.number is not None else ranks
    if size == ranks and (number is None or ranks == 1):
        return None
    evidence = tuple(one.evidence for one in (count, number) if one)
    if number is not None:
        why = f"each rank has the same rank number {number.value} in a world of size {size}"
        chance = _if_port_taken(case)
        if size == 1:
            return Hit(evidence, "singletons", why, by_chance=chance)
        return Hit(evidence, "init-failure" if chance or case.plan.program == "jax" else "hang", why)
    if size > ranks:
        return Hit(evidence, "hang", f"{ranks} ranks start and wait for {size} ranks")
    why = (
        f"{ranks} ranks start, but the command or a variable sets the number of ranks to {size}: the first "
        f"{size} ranks train without the other ranks"
    )
    return Hit(evidence, "singletons" if size == 1 else "wrong-size", why, by_chance=("init-failure",))


def _count_and_rank(case: Case) -> tuple[RankSetting | None, RankSetting | None]:
    """Return the number of ranks and the rank number that the user set; ``None`` for each unset value."""
    if case.plan.program == "jax" and passes_process_count(case):
        return find_setting(case, "num_processes", "JAX_NUM_PROCESSES"), find_setting(
            case, "process_id", "JAX_PROCESS_ID"
        )
    if case.plan.program == "jax":
        return find_setting(case, "SLURM_NTASKS"), find_setting(case, "SLURM_PROCID")
    if starts_by_torchrun(case):
        return None, None
    return find_setting(case, "world_size", "WORLD_SIZE"), find_setting(case, "rank", "RANK")


def _if_port_taken(case: Case) -> tuple[Outcome, ...]:
    """Return how a rank may fail if several worlds on a node use one port; empty for one rank per node."""
    return ("init-failure",) if case.request.ranks_per_node > 1 else ()


@rule(
    "starter-counts-differ",
    "The node or process counts given to torchrun or accelerate do not match the job",
    severity="error",
    fix="give toolkit the same counts (`--nodes`, `--ranks-per-node`) as the command; or leave out "
    "`--nnodes`, `--nproc-per-node`, `--num_processes` and `--standalone`: toolkit sets these options",
    source="https://docs.pytorch.org/docs/stable/elastic/run.html; tests/matrix/peers",
    facts=(),
    programs=("torch",),
)
def starter_counts_differ(case: Case) -> Hit | None:
    """With ``--nnodes=1``, each node trains alone, and the job exits with status 0. With ``--standalone`` but
    no ``--nnodes``, each torchrun waits for all nodes, but no other node can join. If ``--nnodes`` is larger
    than the job's number of nodes, torchrun waits for nodes that never join. If ``--nproc-per-node`` differs
    from the job's ranks per node, torchrun starts more or fewer ranks than the job requested.
    """
    if not sets_peers(case):
        return None
    if case.plan.starter == "accelerate":
        return _of_accelerate(case)
    if not starts_by_torchrun(case):
        return None
    given = [find_setting(case, f"PET_{name}") for name in ("STANDALONE", "NNODES", "NPROC_PER_NODE")]
    alone, nnodes, nproc = given
    evidence = tuple(one.evidence for one in given if one)
    nodes, each = case.request.nodes, case.request.ranks_per_node
    local = nproc.number if nproc and nproc.number is not None else each
    if alone and nodes > 1 and nnodes is None:
        why = f"each torchrun waits for {nodes} nodes, but no other node can join"
        return Hit(evidence, "init-failure", why, by_chance=("hang",))
    span = (1, 1) if alone else node_range(nnodes, nodes)
    if span is None or (span[0] <= nodes <= span[1] and local == each):
        return None
    if span[0] > nodes:
        return Hit(evidence, "hang", f"torchrun waits for {span[0]} nodes, but the job has {nodes}")
    world = min(span[1], nodes) * local
    why = f"torchrun creates worlds of size {world}, but the job has {nodes * each} ranks"
    return Hit(evidence, "singletons" if world == 1 else "wrong-size", why)


def _of_accelerate(case: Case) -> Hit | None:
    """Return the finding about accelerate's ``--num_processes``, which counts the ranks of all nodes."""
    found = find_setting(case, "accelerate_processes")
    ranks = case.request.nodes * case.request.ranks_per_node
    if found is None or found.number is None or found.number == ranks:
        return None
    why = f"accelerate creates a world of size {found.number}, but the job has {ranks} ranks"
    return Hit((found.evidence,), "singletons" if found.number == 1 else "wrong-size", why)


@rule(
    "accelerate-on-cpu",
    "accelerate with `--cpu` starts one process on each node, and each process is a world of size 1",
    severity="error",
    fix="leave out `--cpu`: on nodes without GPUs, toolkit itself selects the CPU for all ranks",
    source="huggingface/accelerate:src/accelerate/commands/launch.py; accelerate 1.15.0 on two nodes",
    facts=(),
    programs=("torch",),
)
def accelerate_on_cpu(case: Case) -> Hit | None:
    """With ``--cpu``, ``accelerate launch`` starts the script as a single process, even if options request
    several machines or processes.
    """
    found = find_setting(case, "accelerate_cpu")
    if found is None or case.plan.starter != "accelerate" or case.request.has_one_rank:
        return None
    return Hit(("command: accelerate launch --cpu",), "singletons", "each process is a world of size 1")


@rule(
    "spawns-own-ranks",
    "The script starts its own ranks, and each copy of the script creates a separate world",
    severity="error",
    fix="remove mp.spawn from the script, and read RANK and WORLD_SIZE, which toolkit sets for each rank",
    source="https://docs.pytorch.org/docs/stable/multiprocessing.html; tests/matrix/peers",
    facts=(),
    programs=("torch",),
)
def spawns_own_ranks(case: Case) -> Hit | None:
    """``torch.multiprocessing.spawn`` starts processes on the node of the script, and numbers these processes
    from 0. The launcher starts the script once for each rank, and each copy creates a world: the job has as
    many worlds as ranks.
    """
    if "spawn" not in case.request.says or case.request.has_one_rank:
        return None
    evidence = ("command: torch.multiprocessing.spawn",)
    outcome: Outcome = "singletons" if case.request.says.get("spawn_nprocs", "1") == "1" else "wrong-size"
    return Hit(evidence, outcome, "each rank starts its own world", by_chance=_if_port_taken(case))


@rule(
    "interface-absent",
    "The network interface in GLOO_SOCKET_IFNAME is missing, or does not reach other nodes",
    severity="error",
    fix="do not set GLOO_SOCKET_IFNAME, or name an interface of the compute "
    "nodes: `toolkit probe` lists the interfaces of a node",
    source="pytorch/pytorch:torch/csrc/distributed/c10d/ProcessGroupGloo.cpp; tests/matrix/peers",
    facts=("host.interfaces",),
    programs=("torch",),
)
def interface_absent(case: Case) -> Hit | None:
    """Gloo listens at the address of the named interface and sends this address to the other ranks, so the
    interface must exist and reach the other nodes.
    """
    for found in gloo_interfaces(case):
        if found.value == "lo":
            if case.request.nodes > 1:
                why = "the interface lo does not reach other nodes"
                return Hit((found.evidence,), "init-failure", why)
            continue
        case.ask("host.interfaces")
        if found.value not in (case.host.interfaces or ()):
            evidence = (found.evidence, *case.cite("host.interfaces"))
            return Hit(evidence, "init-failure", f"the host has no interface {found.value}")
    return None


@rule(
    "jax-needs-its-launcher",
    "JAX does not find the number of processes under this launcher",
    severity="error",
    fix="pass coordinator_address, num_processes and process_id to the call that initializes JAX",
    instead=("jax",),
    source="jax-ml/jax:jax/_src/clusters, slurm_cluster.py and ompi_cluster.py; tests/matrix/peers",
    facts=(),
    programs=("jax",),
)
def jax_needs_its_launcher(case: Case) -> Hit | None:
    """Without arguments, ``jax.distributed.initialize()`` reads the variables of a Slurm step, or the
    variables that mpirun of Open MPI 4 or earlier sets. The rule reports every mpirun, even of Open MPI 4.
    """
    if passes_process_count(case) or case.request.has_one_rank:
        return None
    removed = [name for name in JAX_BY_SLURM if name in case.plan.unset]
    if removed:
        return Hit((f"plan: {removed[0]} is removed",), "init-failure", f"JAX finds no {removed[0]}")
    if starts_by_srun(case):
        return None
    because = "mpirun starts the ranks, but JAX reads variables of a Slurm step"
    return Hit((f"plan: {' '.join(case.plan.launcher)}",), "init-failure", because)


@rule(
    "tf-config-given",
    "TF_CONFIG is fixed, so every rank reads the same worker number",
    severity="error",
    fix="do not set TF_CONFIG: the job script sets it for each rank",
    source="TensorFlow guide, distributed training, TF_CONFIG; tests/matrix/peers",
    facts=(),
    programs=("tf-config",),
)
def tf_config_given(case: Case) -> Hit | None:
    """TF_CONFIG contains the list of all workers, and the worker number of the rank that reads TF_CONFIG. If
    all ranks read the same TF_CONFIG, each rank acts as the same worker. If the list has one worker, each
    rank starts as a world of size 1. If the list has several workers, TensorFlow rejects the second rank.
    """
    found = find_setting(case, "TF_CONFIG")
    if found is None or case.request.has_one_rank:
        return None
    workers = len(_WORKER.findall(found.value))
    if workers > 1:
        because = "every rank is the same worker, and the coordinator rejects the second rank"
        return Hit((found.evidence,), "init-failure", because)
    because = "TF_CONFIG lists at most one worker, so each rank trains alone"
    return Hit((found.evidence,), "singletons", because, by_chance=_if_port_taken(case) if workers else ())
