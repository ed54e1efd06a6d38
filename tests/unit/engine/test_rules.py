"""Every rule fires on one case and not on another; a rule without such a pair fails here."""

import pytest

from tests.unit.engine.examples import (
    APPTAINER,
    HOST,
    IMAGE,
    INTEL_MPI,
    MPICH,
    OPEN_MPI_4,
    OPEN_MPI_5,
    SLURM,
    case,
    image_with,
    with_,
    without,
)
from toolkit.engine.case import Case
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES
from toolkit.model.facts import ImageMpi
from toolkit.model.prediction import MODES

MPICH_5 = with_(MPICH, version="5.0.2", interfaces=("pmi1", "pmi2"), markers=("PMIX_RANK",))
OPEN_MPI_6 = with_(OPEN_MPI_4, version="6.0.0rc2", plugins=False)
WHEEL_4 = with_(OPEN_MPI_4, version="4.1.8", plugins=False, library="/opt/venv/lib/libmpi.so.40")
MVAPICH = ImageMpi(implementation="mvapich2", version="2.3.7", library="/x", interfaces=("pmi1", "pmix"))
ORTE_WHEEL = with_(OPEN_MPI_5, version="4.1.8", pmix="3.2.5", leaks=("OPAL_PREFIX", "PMIX_INSTALL_PREFIX"))
HYDRA = with_(OPEN_MPI_5, implementation="mpich", version="4.2.1", leaks=(), pmix=None)

PAIRS: dict[str, tuple[Case, Case]] = {
    "slurm-absent": (case("srun-pmix", without(HOST, "slurm")), case("srun-pmix")),
    "runtime-absent": (case("srun-pmix", without(HOST, "runtime")), case("srun-pmix")),
    "user-namespaces-off": (
        case("srun-pmix", with_(HOST, user_namespaces=False)),
        case("srun-pmix", with_(HOST, user_namespaces=False, runtime=with_(APPTAINER, setuid=True))),
    ),
    "slurm-lacks-pmix": (
        case("srun-pmix", with_(HOST, slurm=with_(SLURM, mpi_types=("none", "pmi2")))),
        case("srun-pmix", with_(HOST, slurm=with_(SLURM, mpi_types=("pmix_v4",)))),
    ),
    "slurm-lacks-pmi2": (
        case("srun-pmi2", with_(HOST, slurm=with_(SLURM, mpi_types=("none", "pmix")))),
        case("srun-pmi2"),
    ),
    "host-launcher-absent": (case("mpirun-host", with_(HOST, mpis=())), case("mpirun-host")),
    "container-launcher-absent": (
        case(
            "mpirun-container",
            image=with_(IMAGE, mpi=with_(OPEN_MPI_4, launcher=None), absent={"mpi.launcher": "none"}),
        ),
        case("mpirun-container"),
    ),
    "architecture-differs": (
        case("srun-pmix", image=with_(IMAGE, architecture="aarch64")),
        case("srun-pmix"),
    ),
    "image-lacks-mpi": (case("srun-pmix", image=without(IMAGE, "mpi")), case("srun-pmix")),
    "image-mpi-not-measured": (case("srun-pmix", image=image_with(MVAPICH, "4.2.2")), case("srun-pmix")),
    "environment-cleaned": (
        case("srun-pmix", container=("--containall",)),
        case("srun-pmix", container=("--no-home",)),
    ),
    "image-lacks-pmix": (case("srun-pmix", image=image_with(MPICH)), case("srun-pmix")),
    "image-lacks-pmi2": (case("srun-pmi2"), case("srun-pmi2", image=image_with(MPICH))),
    "host-launcher-other-family": (case("mpirun-host", image=image_with(MPICH)), case("mpirun-host")),
    "host-launcher-not-measured": (
        case("mpirun-host", with_(HOST, mpis=(HYDRA,)), image_with(MPICH)),
        case("mpirun-host"),
    ),
    "host-launcher-leaks": (case("mpirun-host", unset=()), case("mpirun-host")),
    "launcher-prefix-half-removed": (
        case(
            "mpirun-host",
            with_(HOST, mpis=(ORTE_WHEEL,)),
            image_with(WHEEL_4, "3.2.5"),
            unset=("OPAL_PREFIX",),
        ),
        case("mpirun-host", with_(HOST, mpis=(ORTE_WHEEL,)), image_with(WHEEL_4, "3.2.5")),
    ),
    "launcher-pmix-pair": (
        case("mpirun-host", image=image_with(WHEEL_4, "3.2.5")),
        case("mpirun-host"),
    ),
    "rank-outside-step": (case("mpirun-host", env={}), case("mpirun-host")),
    "container-launcher-fails": (case("mpirun-container"), case("mpirun-container", nodes=1)),
    "tmp-hidden": (
        case("srun-pmix", image=with_(IMAGE, pmix="5.0.7"), container=("--contain",)),
        case("srun-pmix", image=with_(IMAGE, pmix="5.0.7"), container=("--contain",), binds=("/tmp",)),
    ),
    "pmix-pair-fails": (case("srun-pmix", image=with_(IMAGE, pmix="1.2.5")), case("srun-pmix")),
    "libfabric-missing": (
        case("srun-pmi2", image=without(image_with(INTEL_MPI), "libfabric")),
        case("srun-pmi2", image=image_with(INTEL_MPI)),
    ),
    "namespaces-split-a-node": (
        case("srun-pmi2", image=image_with(MPICH), ranks_per_node=2, container=()),
        case("srun-pmi2", image=image_with(MPICH), ranks_per_node=2),
    ),
    "mpi-release-defect": (
        case("srun-pmix", image=image_with(OPEN_MPI_6, "7.0.0rc1")),
        case(
            "srun-pmix", image=image_with(OPEN_MPI_6, "7.0.0rc1"), env={"OMPI_MCA_btl_tcp_if_include": "eth0"}
        ),
    ),
    "pmix-client-needs-care": (case("srun-pmix", image=with_(IMAGE, pmix="5.0.9")), case("srun-pmix")),
    "host-settings-leak": (
        case("srun-pmix", with_(HOST, environment={"OMPI_MCA_btl": "openib"})),
        case("srun-pmix", with_(HOST, environment={"SLURM_MPI_TYPE": "pmix"})),
    ),
    "mpi-default-none": (
        case("srun-pmix", with_(HOST, slurm=with_(SLURM, mpi_default="none"))),
        case("srun-pmix"),
    ),
    "ranks-in-namespaces-of-their-own": (
        case("srun-pmix", ranks_per_node=2, container=("--ipc", "--pid")),
        case("srun-pmix", container=("--ipc", "--pid")),
    ),
    "too-few-nodes": (case("srun-pmix", nodes=3), case("srun-pmix", nodes=2)),
    "tmp-not-mounted": (
        case("srun-pmix", with_(HOST, runtime=with_(APPTAINER, settings={"mount tmp": "no"})), binds=()),
        case("srun-pmix", with_(HOST, runtime=with_(APPTAINER, settings={"mount tmp": "no"}))),
    ),
    "given-settings-not-measured": (
        case("srun-pmix", given={"OMPI_MCA_pml": "ucx"}),
        case("srun-pmix", given={"OMPI_MCA_btl_tcp_if_include": "eth0", "EPOCHS": "3"}),
    ),
    "stack-disagrees": (
        case(
            "srun-pmix",
            image=with_(IMAGE, stack={}, disagreements=("stack.json says pmix 5.0.7, found was 4.2.2",)),
        ),
        case("srun-pmix"),
    ),
}

OUTCOMES = {
    "slurm-absent": "unavailable",
    "runtime-absent": "unavailable",
    "user-namespaces-off": "unavailable",
    "slurm-lacks-pmix": "unavailable",
    "slurm-lacks-pmi2": "unavailable",
    "host-launcher-absent": "unavailable",
    "container-launcher-absent": "unavailable",
    "architecture-differs": "loader-failure",
    "image-lacks-mpi": "loader-failure",
    "image-mpi-not-measured": "unknown",
    "environment-cleaned": "singletons",
    "image-lacks-pmix": "singletons",
    "image-lacks-pmi2": "init-failure",
    "host-launcher-other-family": "singletons",
    "host-launcher-not-measured": "unknown",
    "host-launcher-leaks": "init-failure",
    "launcher-prefix-half-removed": "init-failure",
    "launcher-pmix-pair": "init-failure",
    "rank-outside-step": "hang",
    "container-launcher-fails": "init-failure",
    "tmp-hidden": "init-failure",
    "pmix-pair-fails": "init-failure",
    "libfabric-missing": "init-failure",
    "namespaces-split-a-node": "unknown",
    "mpi-release-defect": "comm-failure",
    "pmix-client-needs-care": "ok",
    "host-settings-leak": "ok",
    "mpi-default-none": "ok",
    "ranks-in-namespaces-of-their-own": "unknown",
    "too-few-nodes": "unavailable",
    "tmp-not-mounted": "init-failure",
    "given-settings-not-measured": "unknown",
    "stack-disagrees": "ok",
}


def fired(one: Case) -> set[str]:
    _, findings = judge(one, RULES)
    return {f.id for f in findings if not f.undecided}


def test_every_rule_has_a_case_that_fires_it_and_one_that_does_not():
    assert set(PAIRS) == {rule.id for rule in RULES} == set(OUTCOMES)


@pytest.mark.parametrize("name", PAIRS)
def test_a_rule_fires_where_it_should(name: str):
    assert name in fired(PAIRS[name][0])


@pytest.mark.parametrize("name", PAIRS)
def test_a_rule_does_not_fire_where_it_must_not(name: str):
    assert name not in fired(PAIRS[name][1])


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_rule_that_fires_leads_to_its_outcome(name: str):
    prediction, _ = judge(PAIRS[name][0], RULES)
    assert prediction.outcome == OUTCOMES[name], prediction.because


@pytest.mark.parametrize("name", PAIRS)
def test_a_finding_has_evidence_a_fix_and_a_source(name: str):
    _, findings = judge(PAIRS[name][0], RULES)
    finding = next(f for f in findings if f.id == name)
    assert all(finding.evidence)
    assert finding.evidence
    assert finding.fix
    assert finding.source


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_is_described_and_asks_for_facts_that_exist(rule):
    assert rule.check.__doc__
    assert set(rule.modes) <= set(MODES)
    probe = case(rule.modes[0])
    for need in rule.needs:
        assert probe.state(need) in {"known", "absent"}, need


def test_mpich_that_knows_pmix_variables_aborts_instead_of_running_alone():
    prediction, _ = judge(case("srun-pmix", image=image_with(MPICH_5)), RULES)
    assert prediction.outcome == "init-failure"


def test_a_rank_outside_a_step_runs_alone_where_there_is_one_node():
    prediction, _ = judge(case("mpirun-host", nodes=1, ranks_per_node=2, env={}), RULES)
    assert prediction.outcome == "singletons"


def test_a_launcher_whose_exports_were_not_seen_is_not_judged():
    host = with_(HOST, mpis=(with_(OPEN_MPI_5, leaks=None),))
    prediction, _ = judge(case("mpirun-host", host), RULES)
    assert prediction.outcome == "unknown"


def test_a_pmix_pair_that_nobody_measured_is_unknown():
    prediction, _ = judge(case("mpirun-host", image=with_(IMAGE, pmix="4.1.2")), RULES)
    assert prediction.outcome == "unknown"
    assert "not been measured" in prediction.because
