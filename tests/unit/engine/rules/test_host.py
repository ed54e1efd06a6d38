"""Test the rules about things that a host needs before any rank starts."""

from dataclasses import replace

import msgspec

from tests.unit.engine.whole import (
    HOST,
    IMAGE,
    MPICH,
    SLURM,
    absent,
    case,
    host,
    image,
    mpi,
    runtime,
    unread,
    with_,
)
from tests.unit.tables import every_row
from toolkit.engine.predict import judge_host, predict
from toolkit.engine.traits import pmix_type
from toolkit.model.facts import ContainerRuntime
from toolkit.model.mpifacts import HostMpi
from toolkit.model.prediction import Request


def slurm(**changes):
    return host(slurm=msgspec.structs.replace(SLURM, **changes))


NO_SPACES = host(user_namespaces=False)
SETUID = runtime(setuid=True).runtime
PYXIS = ContainerRuntime(name="pyxis", version="0.20.0", path="/usr/bin/srun")
SHIFTER = ContainerRuntime(name="shifter", version="23.02", path="/usr/bin/shifter")

IN_PYXIS = host(runtime=PYXIS)
BARE = absent(image(environment={"PATH": "/usr/bin"}, pytorch="2.4.0"), "cuda")

BROKEN = HostMpi(
    implementation="unknown",
    version=None,
    launcher="/opt/openmpi/bin/mpirun",
    lacks=("libopen-rte.so.40",),
)
OTHER_TYPE = replace(case(), plan=with_(case().plan, launcher=("srun", "--mpi=pspmix")))
"""A launch with the `--mpi` type of a site profile, on a host that does not offer the type."""

FIRES = {
    "gpu-hook-lacks-program": [
        case(absent(IN_PYXIS, "gpu_container_cli"), mode="torch"),
        case(absent(IN_PYXIS, "gpu_container_cli"), BARE, "torch", env={"NVIDIA_VISIBLE_DEVICES": "all"}),
    ],
    "slurm-absent": [
        case(absent(HOST, "slurm")),
        case(absent(HOST, "slurm"), nodes=1, ranks_per_node=2, allocation=False),
        case(absent(host(schedulers=("pbs",)), "slurm")),
        case(absent(HOST, "slurm"), mode="mpirun-host", launcher=("mpirun", "-n", "4")),
    ],
    "runtime-absent": [case(absent(HOST, "runtime"))],
    "user-namespaces-off": [
        case(NO_SPACES),
        case(with_(NO_SPACES, runtime=PYXIS)),
        case(host(user_namespaces=False, runtime=SETUID), container=("--userns",)),
    ],
    "user-namespaces-few": [
        case(host(user_namespaces_limit=1), ranks_per_node=2),
        case(host(user_namespaces_limit=10), ranks_per_node=4),
        case(host(user_namespaces_limit=4, runtime=PYXIS), ranks_per_node=8),
        case(host(user_namespaces_limit=1, runtime=SETUID), ranks_per_node=2, container=("--userns",)),
    ],
    "too-few-nodes": [case(nodes=9)],
    "architecture-differs": [case(of=image(architecture="aarch64"))],
    "slurm-lacks-pmix": [case(slurm(mpi_types=("none", "pmi2")))],
    "slurm-lacks-pmi2": [case(slurm(mpi_types=("none", "pmix")), mode="srun-pmi2")],
    "mpi-type-not-offered": [OTHER_TYPE],
    "host-launcher-absent": [case(host(mpis=()), mode="mpirun-host")],
    "host-launcher-broken": [case(host(mpis=(BROKEN,)), mode="mpirun-host")],
    "mpi-default-none": [case(slurm(mpi_default="none"))],
}
QUIET = {
    "gpu-hook-lacks-program": [
        case(absent(IN_PYXIS, "gpus"), mode="torch"),
        case(),
        case(absent(HOST, "gpu_container_cli")),
        case(IN_PYXIS, mode="torch"),
        case(with_(IN_PYXIS, gpu_container_cli="/usr/bin/nvidia-container-cli"), mode="torch"),
        case(absent(IN_PYXIS, "gpu_container_cli"), BARE, "torch"),
        case(absent(IN_PYXIS, "gpu_container_cli"), mode="torch", env={"NVIDIA_VISIBLE_DEVICES": "void"}),
    ],
    "slurm-absent": [
        case(),
        case(absent(HOST, "slurm"), mode="mpirun-container", nodes=1, allocation=False),
        case(absent(HOST, "slurm"), mode="srun-none", nodes=1, ranks_per_node=1, allocation=False),
        case(absent(host(schedulers=("pbs",)), "slurm"), mode="mpirun-host"),
        case(absent(host(schedulers=("lsf",)), "slurm"), mode="bind", launcher=("jsrun", "-n2")),
        case(absent(HOST, "slurm"), mode="mpirun-host", launcher=("mpirun", "--hosts=a,b")),
        case(absent(HOST, "slurm"), mode="mpirun-host", launcher=("mpirun", "-machinefile", "nodes")),
    ],
    "runtime-absent": [case()],
    "user-namespaces-off": [
        case(),
        case(host(user_namespaces=False, runtime=SETUID)),
        case(absent(NO_SPACES, "runtime")),
        case(with_(NO_SPACES, runtime=SHIFTER)),
    ],
    "user-namespaces-few": [
        case(),
        case(host(user_namespaces_limit=10), ranks_per_node=3),
        case(host(user_namespaces_limit=1, runtime=SETUID), ranks_per_node=2),
        case(host(user_namespaces_limit=1), ranks_per_node=2, container=("--sharens",)),
        case(host(user_namespaces_limit=1), ranks_per_node=2, mode="mpirun-container", nodes=1),
    ],
    "too-few-nodes": [case(), case(nodes=8), case(absent(HOST, "slurm")), case(slurm(nodes=None))],
    "architecture-differs": [case()],
    "slurm-lacks-pmix": [case(), case(slurm(mpi_types=("pmix_v4",)))],
    "slurm-lacks-pmi2": [case(mode="srun-pmi2"), case(absent(HOST, "slurm"), mode="srun-pmi2")],
    "mpi-type-not-offered": [
        case(),
        case(mode="srun-pmi2"),
        replace(OTHER_TYPE, host_facts=slurm(mpi_types=("none", "pmi2"))),
        replace(OTHER_TYPE, host_facts=slurm(mpi_types=("none", "pmix", "pspmix"))),
    ],
    "host-launcher-absent": [case(mode="mpirun-host")],
    "host-launcher-broken": [case(mode="mpirun-host"), case(host(mpis=()), mode="mpirun-host")],
    "mpi-default-none": [case()],
}
UNDECIDED = {
    "gpu-hook-lacks-program": [case(unread(IN_PYXIS, "gpu_container_cli"), mode="torch")],
    "slurm-absent": [case(unread(HOST, "slurm"))],
    "user-namespaces-off": [
        case(unread(HOST, "user_namespaces")),
        case(unread(runtime(setuid=None), "user_namespaces")),
        case(with_(runtime(setuid=None), user_namespaces=False)),
    ],
    "user-namespaces-few": [
        case(with_(runtime(setuid=None), user_namespaces_limit=1), ranks_per_node=2),
        case(unread(HOST, "user_namespaces_limit"), ranks_per_node=2),
    ],
}
OUTCOMES = {
    "gpu-hook-lacks-program": "unavailable",
    "slurm-absent": "unavailable",
    "runtime-absent": "unavailable",
    "user-namespaces-off": "unavailable",
    "user-namespaces-few": "unavailable",
    "too-few-nodes": "unavailable",
    "architecture-differs": "loader-failure",
    "slurm-lacks-pmix": "unavailable",
    "slurm-lacks-pmi2": "unavailable",
    "mpi-type-not-offered": "unavailable",
    "host-launcher-absent": "unavailable",
    "host-launcher-broken": "loader-failure",
}


MODULE = "load the module of an MPI before you launch the job"
LAUNCHES_NOTHING = with_(mpi(launcher=None), absent={**IMAGE.absent, "mpi.launcher": "none"})


@every_row(
    ("types", "of", "fix"),
    [
        (("none", "pmix", "pmi2"), image(), f"use mode srun-pmix; or {MODULE}"),
        (("none", "cray_shasta", "pmi2"), absent(image(), "ssh"), f"use mode mpirun-container; or {MODULE}"),
        (("none", "cray_shasta", "pmi2"), LAUNCHES_NOTHING, MODULE),
        (("none", "cray_shasta", "pmi2"), image(mpi=MPICH), f"use mode srun-pmi2; or {MODULE}"),
        (("pmix_v5", "pmi2"), None, f"use mode srun-pmix; or {MODULE}"),
        (("none", "pmi2"), None, f"use mode srun-pmi2; or {MODULE}"),
        (("none",), None, MODULE),
        (None, None, MODULE),
    ],
)
def test_a_host_without_mpirun_is_told_a_way_that_it_has(types, of, fix):
    """A Cray EX usually has neither a PMIx plugin nor mpirun."""
    without = host(mpis=(), slurm=msgspec.structs.replace(SLURM, mpi_types=types))
    findings = (
        predict(without, of, Request(nodes=1, ranks_per_node=2)).findings if of else judge_host(without)
    )
    (found,) = [f for f in findings if f.id == "host-launcher-absent"]
    assert found.fix == fix


@every_row(
    ("types", "chosen"),
    [
        (("none", "pmix_v5", "pmix_v10"), "pmix_v10"),
        (("pmix_v10", "pmix", "pmix_v5"), "pmix"),
        (("pspmix", "pmix_v4"), "pmix_v4"),
        (("pspmix",), "pspmix"),
        (("pmi2", "none"), None),
    ],
)
def test_the_newest_plugin_is_that_of_the_greatest_number(types, chosen):
    assert pmix_type(slurm(mpi_types=types)) == chosen
