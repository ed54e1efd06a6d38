"""Each rule that decides has decided a recorded or a reported launch; for the others there is a reason."""

import msgspec

from tests.field.cases import read, typed
from tests.matrix.record import load
from tests.unit.engine.whole import HOST, absent, case, host, image, runtime, with_
from tests.unit.tables import every_row
from toolkit.engine.judge import ask_rules, judge
from toolkit.engine.plan import plan
from toolkit.engine.predict import case_of
from toolkit.engine.registry import RULES
from toolkit.knowledge.measured import measured

STARTS = {
    # darshan315/flow_past_cylinder_by_DRL issue 14, 2020-10-21: singularity: command not found
    "runtime-absent": (case(absent(HOST, "runtime")), "unavailable"),
    # apptainer/singularity issue 6341, 2021-12-14: singularity of conda on CentOS 7, without setuid
    "user-namespaces-off": (
        case(
            with_(
                runtime(name="singularity", version="3.8.5", setuid=False),
                kernel="3.10.0-1160.el7.x86_64",
                user_namespaces=False,
            )
        ),
        "unavailable",
    ),
    # apptainer/singularity issue 1488, 2018-04-27: an image of x86_64 on ppc64le: Exec format error
    "architecture-differs": (
        case(host(architecture="ppc64le"), image(architecture="x86_64")),
        "loader-failure",
    ),
    # conda-archive/conda-docker issue 11, 2019-08-27: Debian 10 on CentOS 6: FATAL: kernel too old
    "kernel-too-old": (
        case(host(kernel="2.6.32-754.el6.x86_64"), image(format="sandbox", glibc="2.28")),
        "loader-failure",
    ),
    # apptainer/singularity-userdocs issue 95, 2019-02-13: an image of xz on CentOS 6, whose kernel knows gzip
    "image-compression-too-new": (
        case(
            with_(runtime(name="singularity", version="3.0.3", setuid=True), kernel="2.6.32-754.el6.x86_64"),
            image(format="sif", compression="xz", glibc="2.17"),
        ),
        "unavailable",
    ),
}
"""Containers that did not start, for whatever program: the report, what it states, and the outcome."""

MEASURED_APART = {
    "bind-source-missing", "image-launcher-interface", "image-sets-rank", "image-tmpdir-not-writable",
    "libfabric-lacks-providers", "mpi-moved", "ranks-in-namespaces-of-their-own", "slurm-pmi-unreachable",
    "user-site-mpi",
}  # fmt: skip
"""Their sources name launches that were measured and not kept in the record."""
OF_PEERS = {
    "address-given", "address-is-local", "interface-absent", "jax-needs-its-launcher",
    "loader-shared-memory-small", "peers-not-told", "port-given", "spawns-own-ranks", "starter-counts-differ",
    "tf-config-given", "world-given",
}  # fmt: skip
"""They are about programs without MPI, whose launches are recorded in tests/matrix/peers."""
ASKS = {"host-launcher-not-known", "image-mpi-not-measured", "oci-mode", "programs-disagree"}
"""They predict no failure: the answer is unknown, and they name why."""
ONLY_READ = {
    "bind-not-allowed", "horovod-lacks-gloo", "host-launcher-broken", "image-kind-forbidden",
    "image-needs-newer-processor", "loader-refuses-program", "mount-hides-mpi", "mpi-type-not-offered",
    "programs-find-no-mpi", "ranks-not-told", "runtime-cannot-read-image", "slurm-lacks-pmi2",
    "squashfuse-refused", "too-few-nodes",
}  # fmt: skip
"""They follow from documentation or source of the program that refuses; no launch of that kind was met."""


BY_DEFINITION = {"bind-nothing-to-mount", "gloo-lacks-horovod", "image-lacks-mpi"}
"""The launch mode needs what is not there."""


def field_rules() -> set[str]:
    """Return the rules that decide a reported launch."""
    found = set()
    for one in read():
        planned = plan(one.host, one.image, one.request, one.mode)
        found |= {ask_rules(case_of(one.host, one.image, one.request, words), RULES).decided_by
                  for words in (planned, typed(one, planned))}  # fmt: skip
    return found


def test_every_rule_that_decides_has_a_case_or_a_reason():
    deciding = {rule.id for rule in RULES if not rule.advice}
    apart = set(STARTS) | MEASURED_APART | OF_PEERS | ASKS | ONLY_READ | BY_DEFINITION
    assert deciding - measured().rules - field_rules() == apart


@every_row("name", STARTS)
def test_a_reported_start_is_decided_by_its_rule(name):
    of, outcome = STARTS[name]
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
