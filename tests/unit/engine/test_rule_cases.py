"""Test that each rule that decides an outcome has a recorded launch, a reported launch, or a reason for
neither.
"""

import msgspec

from tests.field.cases import read, typed
from tests.matrix.record import load
from tests.unit.engine.whole import (
    HOST,
    IMAGE,
    LAUNCHER,
    MPI,
    MPICH,
    SLURM,
    absent,
    case,
    host,
    image,
    runtime,
    with_,
)
from tests.unit.tables import every_row
from toolkit.engine.judge import ask_rules, judge
from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import case_of
from toolkit.engine.registry import RULES
from toolkit.knowledge.measured import measured_launches

STARTS = {
    # darshan315/flow_past_cylinder_by_DRL issue 14, 2020-10-21: singularity: command not found
    "runtime-absent": (case(absent(HOST, "runtime")), "unavailable"),
    # apptainer/singularity-userdocs issue 95, 2019-02-13: an image of xz on CentOS 6, whose kernel knows gzip
    "image-compression-too-new": (
        case(
            with_(runtime(name="singularity", version="3.0.3", setuid=True), kernel="2.6.32-754.el6.x86_64"),
            image(format="sif", compression="xz", glibc="2.17"),
        ),
        "unavailable",
    ),
    # apptainer/singularity issue 1689, 2018-07-03: mpiexec of the module openmpi without the module intel
    "host-launcher-broken": (
        case(host(mpis=(with_(LAUNCHER, lacks=("libimf.so",)),)), mode="mpirun-host"),
        "loader-failure",
    ),
    # chainguard-images/images issue 1658, 2023-10-17: 'Fatal glibc error: CPU does not support x86-64-v2'
    "image-needs-newer-processor": (
        case(host(cpu_level="x86-64-v1"), image(cpu_level="x86-64-v2")),
        "loader-failure",
    ),
    # horovod/horovod issue 1564, 2019-12: 'Gloo support has not been built'
    "horovod-lacks-gloo": (case(of=image(horovod_built=("mpi", "nccl")), mode="gloo"), "init-failure"),
    # ROCm/AMDMIGraphX issue 3965, 2025-04-23: GLIBCXX_3.4.32 not found in the image of PyTorch
    "loader-refuses-program": (
        case(
            of=image(
                programs={"/opt/test": MPI.library},
                refused={"/opt/test": "libstdc++.so.6: version `GLIBCXX_3.4.32' not found"},
            )
        ),
        "loader-failure",
    ),
}
"""Reported launches that failed before the first rank: the facts that the report states, and the outcome."""

TRIED = {
    # Apptainer 1.4.5: 'configuration disallows users from running sandbox containers'
    "image-kind-forbidden": (
        case(runtime(settings={"allow container dir": "no"}), image(format="sandbox")), "unavailable"
    ),
    # Apptainer 1.4.5 on two nodes without /dev/fuse, 2026-11-27: 'fuse: device not found'; with mode 600,
    # 'failed to open /dev/fuse: Permission denied'; with APPTAINER_UNSQUASH=1, the container started
    "fuse-device-closed": (case(host(fuse_device=False)), "unavailable"),
    # Apptainer 1.4.5: 'Ignoring /hostmpi bind mount: user bind control disabled by system administrator'
    "bind-not-allowed": (
        case(
            with_(
                runtime(settings={"user bind control": "no"}), mpis=(with_(LAUNCHER, prefix="/opt/mpi"),)
            ),
            mode="bind",
            binds=("/opt/mpi",),
        ),
        "unavailable",
    ),
    # Apptainer 1.4.5, a program below /tmp of the image: 'stat /tmp/mpi/prog: no such file or directory'
    "mount-hides-mpi": (
        case(of=image(programs={}, hidden={"/tmp/mpi/lib/libmpi.so.40": "/tmp"})), "loader-failure"
    ),
    # Apptainer 1.4.5: 'error while loading shared libraries: libmpi_x.so.40: cannot open shared object file'
    "programs-find-no-mpi": (case(of=image(programs={"/opt/prog": ""})), "loader-failure"),
    # Slurm 24.11.5: "Invalid MPI type 'pspmix'"; the same for pmi2 without its plugin
    "mpi-type-not-offered": (case(launcher=("srun", "--mpi=pspmix")), "unavailable"),
    "slurm-lacks-pmi2": (
        case(
            host(slurm=with_(SLURM, mpi_types=("none", "pmix", "pmix_v5"))), with_(IMAGE, mpi=MPICH),
            mode="srun-pmi2",
        ),
        "unavailable",
    ),
    # accelerate 1.15.0 on two nodes: 'process 0 of 1' from each node
    "accelerate-on-cpu": (
        case(
            of=with_(absent(IMAGE, "mpi", "pmix"), pytorch="2.13.0"), mode="torch", program="torch",
            wrapper=("sh", "toolkit-ranks.sh"), starter="accelerate",
            asked={"command": ("accelerate", "launch", "--cpu", "a.py"), "says": {"accelerate_cpu": "1"}},
        ),
        "singletons",
    ),
}  # fmt: skip
"""Launches that the authors tried once and that failed before the first rank: the facts and the outcome. Each
comment shows the printed message.
"""

MEASURED_APART = {
    "image-launcher-interface", "image-launcher-without-pmix", "image-sets-rank",
    "libfabric-lacks-providers", "mpi-lacks-plugins", "ranks-in-namespaces-of-their-own",
    "slurm-pmi-unreachable", "user-site-mpi",
}  # fmt: skip
"""Rules whose sources are launches that tests/matrix does not record."""
OF_PEERS = {
    "address-given", "jax-needs-its-launcher",
    "loader-shared-memory-small", "peers-not-told", "port-given", "spawns-own-ranks", "starter-counts-differ",
    "tf-config-given",
}  # fmt: skip
"""Rules about programs without MPI, whose launches are recorded in tests/matrix/peers."""
ASKS = {
    "host-launcher-not-known", "launcher-in-ranks", "oci-mode", "programs-disagree",
}  # fmt: skip
"""Rules that predict no failure, but give the reason for an unknown outcome."""
CHANCES = {"nccl-shared-memory-small"}
"""Rules whose sources are public reports, and which predict only that a launch may fail."""
BY_DEFINITION = {
    "bind-nothing-to-mount", "gloo-lacks-horovod", "program-fails", "too-few-nodes",
}  # fmt: skip
"""Rules that need no record: the launch needs something that the host or image does not have."""


def field_rules() -> set[str]:
    found = set()
    for one in read():
        planned = plan(one.host, one.image, one.request, one.mode)
        found |= {ask_rules(case_of(one.host, one.image, one.request, words), RULES).decided_by
                  for words in (planned, typed(one, planned))}  # fmt: skip
    return found


def test_every_rule_that_decides_has_a_case_or_a_reason():
    deciding = {rule.id for rule in RULES if not rule.advice}
    apart = set(STARTS) | set(TRIED) | MEASURED_APART | OF_PEERS | ASKS | CHANCES | BY_DEFINITION
    assert deciding - measured_launches().rules - field_rules() == apart


@every_row("name", {**STARTS, **TRIED})
def test_a_failure_before_the_first_rank_is_decided_by_its_rule(name):
    of, outcome = {**STARTS, **TRIED}[name]
    prediction, findings = judge(of, RULES)
    assert prediction.outcome == outcome, prediction.because
    assert name in {finding.id for finding in findings}


def test_a_rule_that_no_record_has_seen_is_not_measured():
    truth = load()
    cell = next(one for one in truth.cells if one.outcome == "ok" and one.request.nodes > 1)
    facts = truth.images[cell.image].facts
    on = truth.hosts[cell.flavour]
    assert judge(case_of(on, facts, cell.request, cell.plan), RULES)[0].basis == "measured"
    few = msgspec.structs.replace(on, slurm=msgspec.structs.replace(on.slurm, nodes=1))
    prediction, (finding, *_) = judge(case_of(few, facts, cell.request, cell.plan), RULES)
    assert (finding.id, prediction.basis) == ("too-few-nodes", "derived")
