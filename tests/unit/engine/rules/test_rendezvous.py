"""Test the rules about ranks that connect without MPI: Horovod over Gloo, PyTorch, JAX and TensorFlow."""

import json

from tests.unit.engine.whole import HOST, IMAGE, absent, case, host, image, unread

WRAPPED = {"wrapper": ("sh", "toolkit-ranks.sh")}
TORCH = {"mode": "torch", "program": "torch"}
JAX = {"mode": "jax", "program": "jax"}
TENSORFLOW = {"mode": "tf-config", "program": "tf-config"}
LOADER = {"loader": "$", "loader_num_workers": "4"}
EXPLICIT = {"coordinator_address": "$", "num_processes": "$", "process_id": "$"}


def torch(says=None, command=("python", "train.py"), **more):
    """Return a launch of PyTorch whose job script sets rank 0's address for each rank."""
    return case(asked={"says": says or {}, "command": command}, **{**TORCH, **WRAPPED, **more})


def gpus(**more):
    return case(asked={"gpus": True}, **{**TORCH, **WRAPPED, **more})


def run(says=None, **more):
    return torch(says, ("torchrun", "train.py"), **{"starter": "torchrun", **more})


def jax(says=None, **more):
    return case(asked={"says": says or {}}, **{**JAX, **WRAPPED, **more})


def workers(*names):
    return {"TF_CONFIG": json.dumps({"cluster": {"worker": names}, "task": {"type": "worker", "index": 0}})}


def tensorflow(**more):
    return case(**TENSORFLOW, **WRAPPED, **more)


def fit(says=None, **more):
    return torch(says, ("accelerate", "launch", "fit.py"), **{"starter": "accelerate", **more})


FIRES = {
    "gloo-lacks-horovod": [case(of=absent(IMAGE, "horovod"), mode="gloo")],
    "horovod-lacks-gloo": [case(of=image(horovod_built=("mpi",)), mode="gloo")],
    "peers-not-told": [
        torch(wrapper=()),
        torch(wrapper=(), given={"MASTER_ADDR": "node1", "RANK": "0"}),
        run(wrapper=(), starter=""),
        run(wrapper=(), starter="", ranks_per_node=2),
        jax(EXPLICIT, wrapper=()),
        case(**TENSORFLOW),
    ],
    "address-is-local": [
        torch(given={"MASTER_ADDR": "localhost"}),
        torch({"MASTER_ADDR": "127.0.0.1"}, ranks_per_node=2),
        torch({"init_method": "tcp://[::1]:29500"}),
        torch({"init_method": "env://"}, given={"MASTER_ADDR": ""}),
        run({"PET_RDZV_ENDPOINT": "localhost:29500"}),
        torch(given={"MASTER_ADDR": ""}, nodes=1, ranks_per_node=2),
        jax(given={"JAX_COORDINATOR_ADDRESS": "localhost:29500"}),
        jax({**EXPLICIT, "coordinator_address": "127.0.0.1:29500"}),
    ],
    "address-given": [
        torch(given={"MASTER_ADDR": "node7"}),
        torch({"init_method": "tcp://10.0.0.7:29500"}, nodes=1, ranks_per_node=2),
        run({"PET_RDZV_ENDPOINT": "node7"}),
        jax(given={"JAX_COORDINATOR_ADDRESS": "node7:29500"}),
    ],
    "port-given": [
        torch({"MASTER_PORT": "70000"}),
        torch(given={"MASTER_PORT": "29500"}),
        torch({"MASTER_PORT": "http"}),
    ],
    "world-given": [
        torch(given={"WORLD_SIZE": "3"}),
        torch(given={"WORLD_SIZE": "8"}, nodes=1),
        torch({"world_size": "1"}),
        torch(given={"RANK": "0"}),
        torch(given={"RANK": "0"}, ranks_per_node=2),
        torch(given={"RANK": "0", "WORLD_SIZE": "1"}),
        jax(EXPLICIT, given={"JAX_NUM_PROCESSES": "3"}),
        jax(given={"SLURM_NTASKS": "1"}),
    ],
    "starter-counts-differ": [
        run({"PET_NNODES": "1"}),
        run({"PET_NNODES": "3:4"}),
        run({"PET_STANDALONE": "1"}, ranks_per_node=2),
        run({"PET_NPROC_PER_NODE": "1"}, ranks_per_node=2),
        run(given={"PET_NNODES": "1"}, ranks_per_node=2),
        fit({"accelerate_processes": "4"}),
        fit({"accelerate_processes": "1"}),
    ],
    "accelerate-on-cpu": [
        fit({"accelerate_cpu": "1"}),
        fit({"accelerate_cpu": "1"}, nodes=1, ranks_per_node=2),
    ],
    "spawns-own-ranks": [
        torch({"spawn": "$"}),
        torch({"spawn": "$", "spawn_nprocs": "$"}),
        torch({"spawn": "$", "MASTER_PORT": "12355"}, nodes=1, ranks_per_node=2),
    ],
    "interface-absent": [
        torch(given={"GLOO_SOCKET_IFNAME": "ib7"}),
        torch({"GLOO_SOCKET_IFNAME": "eth0,hsn0"}),
        torch(given={"GLOO_SOCKET_IFNAME": "lo"}),
    ],
    "jax-needs-its-launcher": [
        jax(mode="mpirun-host"),
        jax(unset=("SLURM_STEP_NODELIST",)),
        jax(mode="mpirun-container"),
    ],
    "loader-shared-memory-small": [
        torch(LOADER, on=host(shm=1 << 20)),
        torch(LOADER, container=("--contain",)),
    ],
    "nccl-shared-memory-small": [
        gpus(container=("--contain",), ranks_per_node=2, starter="torchrun"),
        case(container=("--contain",), mode="mpirun-container", ranks_per_node=4, program="horovod"),
    ],
    "ranks-more-than-gpus": [gpus(ranks_per_node=8), gpus(mode="jax", program="jax", ranks_per_node=5)],
    "gpus-numbered-per-rank": [
        torch(launcher=("srun", "--gpus-per-task=1"), ranks_per_node=2),
        jax(launcher=("srun", "--gpus-per-task=1"), ranks_per_node=2),
    ],
    "tf-config-given": [
        tensorflow(given=workers("node1:2222", "node2:2222")),
        tensorflow(given=workers("localhost:2222")),
        tensorflow(given=workers("localhost:2222"), ranks_per_node=2),
        tensorflow(given={"TF_CONFIG": "{}"}),
    ],
}
QUIET = {
    "gloo-lacks-horovod": [case(mode="gloo")],
    "horovod-lacks-gloo": [case(mode="gloo"), case(of=absent(IMAGE, "horovod"), mode="gloo")],
    "peers-not-told": [
        torch(),
        torch(wrapper=(), nodes=1),
        torch({"spawn": "$"}, wrapper=()),
        torch(wrapper=(), given={"MASTER_ADDR": "node1", "RANK": "0", "WORLD_SIZE": "2"}),
        jax(wrapper=()),
        case(**TENSORFLOW, given={"TF_CONFIG": "{}"}),
    ],
    "address-is-local": [
        torch(),
        torch({"init_method": "file:///scratch/meet"}, given={"MASTER_ADDR": "localhost"}),
        torch(given={"MASTER_ADDR": "localhost"}, nodes=1, ranks_per_node=2),
        torch({"init_method": "tcp://node7:29500"}),
        run(given={"MASTER_ADDR": "localhost"}),
        jax(given={"JAX_COORDINATOR_ADDRESS": ""}),
        torch(given={"MASTER_ADDR": "localhost"}, nodes=1),
        run({"PET_STANDALONE": "1", "PET_RDZV_ENDPOINT": "localhost:29500"}),
        tensorflow(),
    ],
    "address-given": [
        *(torch(), torch(given={"MASTER_ADDR": "node7"}, nodes=1), jax(), tensorflow()),
        run({"PET_RDZV_ENDPOINT": "$head_node_ip:29500"}),
    ],
    "port-given": [torch(), run(given={"MASTER_PORT": "29500"})],
    "world-given": [
        torch(given={"WORLD_SIZE": "2"}),
        torch(given={"WORLD_SIZE": "many"}),
        torch(given={"RANK": "0"}, nodes=1),
        run(given={"WORLD_SIZE": "1"}),
        jax(given={"JAX_NUM_PROCESSES": "3"}),
    ],
    "starter-counts-differ": [
        run(),
        torch({"PET_NNODES": "1"}),
        run({"PET_NNODES": "1"}, wrapper=()),
        run({"PET_NNODES": "1:2", "PET_NPROC_PER_NODE": "gpu"}),
        run({"PET_NNODES": "all"}),
        run({"PET_STANDALONE": "1"}, nodes=1, ranks_per_node=2),
        fit({"accelerate_processes": "2"}),
        fit({"accelerate_processes": "many"}),
        fit(),
    ],
    "accelerate-on-cpu": [fit(), fit({"accelerate_cpu": "1"}, nodes=1), run({"accelerate_cpu": "1"})],
    "spawns-own-ranks": [torch(), torch({"spawn": "$"}, nodes=1)],
    "interface-absent": [
        torch(),
        torch(given={"GLOO_SOCKET_IFNAME": "eth0"}),
        torch(given={"GLOO_SOCKET_IFNAME": "lo"}, nodes=1, ranks_per_node=2),
    ],
    "jax-needs-its-launcher": [
        jax(),
        jax(EXPLICIT, mode="mpirun-host"),
        jax(mode="mpirun-host", nodes=1),
    ],
    "loader-shared-memory-small": [
        torch(LOADER),
        torch({"loader": "$", "loader_num_workers": "0"}, on=host(shm=1 << 20)),
        torch({"loader": "$"}, on=host(shm=1 << 20)),
    ],
    "nccl-shared-memory-small": [
        gpus(ranks_per_node=2, starter="torchrun"),
        gpus(container=("--contain",), ranks_per_node=2),
        gpus(container=("--contain",), starter="torchrun"),
        gpus(container=("--contain", "--shm-size=1g"), ranks_per_node=2, starter="torchrun"),
        gpus(container=("--contain",), env={"NCCL_SHM_DISABLE": "1"}, ranks_per_node=2, starter="torchrun"),
        gpus(of=absent(IMAGE, "nccl"), container=("--contain",), ranks_per_node=2, starter="torchrun"),
    ],
    "ranks-more-than-gpus": [
        gpus(ranks_per_node=4),
        torch(ranks_per_node=8),
        gpus(ranks_per_node=8, starter="torchrun"),
    ],
    "gpus-numbered-per-rank": [
        torch(launcher=("srun", "--gpus-per-task=1")),
        torch(launcher=("srun", "--gpu-bind=closest"), ranks_per_node=2),
    ],
    "tf-config-given": [tensorflow(), tensorflow(given={"TF_CONFIG": "{}"}, nodes=1)],
}
UNDECIDED = {
    "gloo-lacks-horovod": [case(of=unread(IMAGE, "horovod"), mode="gloo")],
    "horovod-lacks-gloo": [case(of=image(horovod_built=None), mode="gloo")],
    "loader-shared-memory-small": [torch(LOADER, on=unread(HOST, "shm"))],
    "nccl-shared-memory-small": [
        gpus(of=unread(IMAGE, "nccl"), container=("--contain",), ranks_per_node=2, starter="torchrun")
    ],
    "ranks-more-than-gpus": [gpus(on=unread(HOST, "gpus"), ranks_per_node=8)],
    "interface-absent": [torch(on=unread(HOST, "interfaces"), given={"GLOO_SOCKET_IFNAME": "ib0"})],
}
OUTCOMES = {
    "gloo-lacks-horovod": "unavailable",
    "horovod-lacks-gloo": "init-failure",
    "peers-not-told": "init-failure",
    "address-is-local": "hang",
    "address-given": "unknown",
    "port-given": "init-failure",
    "world-given": "hang",
    "starter-counts-differ": "singletons",
    "accelerate-on-cpu": "singletons",
    "spawns-own-ranks": "singletons",
    "interface-absent": "init-failure",
    "jax-needs-its-launcher": "init-failure",
    "tf-config-given": "init-failure",
    "loader-shared-memory-small": "ok",
    "nccl-shared-memory-small": "ok",
}


def test_a_node_with_the_interface_that_is_named_is_no_fault():
    of = torch(on=host(interfaces=("hsn0",)), given={"GLOO_SOCKET_IFNAME": "hsn0"})
    assert of.state("host.interfaces") == "known"
