"""What surrounds a launch and changes it: variables, /tmp, namespaces, the shape that was asked for."""

import pytest

from tests.unit.engine.examples import (
    HOST,
    IMAGE,
    MPICH,
    OPEN_MPI_4,
    SLURM,
    image_with,
    unread,
    with_,
    without,
)
from toolkit.engine.predict import foresee, predict
from toolkit.model.facts import HostFacts
from toolkit.model.prediction import Request, Verdict


def outcomes(verdict: Verdict) -> dict[str, str]:
    return {p.mode: p.outcome for p in verdict.predictions}


def leaking(*names: str) -> HostFacts:
    host: HostFacts = with_(HOST, environment=dict.fromkeys(names, ""))
    return host


@pytest.mark.parametrize("name", ["APPTAINER_CLEANENV", "SINGULARITY_CONTAINALL"])
def test_a_variable_that_cleans_the_environment_is_taken_away_or_foretells_singletons(name: str):
    ours = predict(leaking(name), IMAGE, Request()).of("srun-pmix")
    assert ours.plan is not None
    assert ours.outcome == "ok"
    assert name in ours.plan.unset
    left = foresee(leaking(name), IMAGE, Request(), with_(ours.plan, unset=()))
    assert left.outcome == "singletons"


@pytest.mark.parametrize(
    "name", ["UCX_TLS", "FI_PROVIDER", "MPIR_CVAR_CH4_NETMOD", "PYTHONPATH", "I_MPI_PMI"]
)
def test_settings_of_the_host_without_a_value_are_taken_away_or_leave_the_outcome_unknown(name: str):
    ours = predict(leaking(name), IMAGE, Request()).of("srun-pmix")
    assert ours.plan is not None
    assert (ours.outcome, ours.plan.unset) == ("ok", (name,))
    assert foresee(leaking(name), IMAGE, Request(), with_(ours.plan, unset=())).outcome == "unknown"


def test_what_the_runtime_would_set_inside_is_taken_away_by_its_own_name():
    plan = (
        predict(leaking("APPTAINERENV_OMPI_MCA_pml", "APPTAINERENV_EPOCHS"), IMAGE, Request())
        .of("srun-pmix")
        .plan
    )
    assert plan is not None
    assert plan.unset == ("APPTAINERENV_OMPI_MCA_pml",)


def test_an_environment_that_could_not_be_read_is_not_an_empty_one():
    host = with_(HOST, unknown={"environment": "awk: not found"})
    prediction = predict(host, IMAGE, Request()).of("srun-pmix")
    assert prediction.outcome == "unknown"
    assert "awk: not found" in prediction.because


def test_a_private_tmp_of_slurm_gets_the_store_that_needs_none():
    image = with_(IMAGE, pmix="5.0.7")
    private = with_(HOST, slurm=with_(SLURM, settings={"JobContainerType": "job_container/tmpfs"}))
    ours = predict(private, image, Request()).of("srun-pmix")
    assert ours.plan is not None
    assert (ours.outcome, ours.plan.env) == ("ok", {"PMIX_MCA_gds": "hash"})
    assert foresee(private, image, Request(), with_(ours.plan, env={})).outcome == "init-failure"
    assert foresee(private, IMAGE, Request(), with_(ours.plan, env={})).outcome == "ok"


def test_tmp_cannot_be_bound_where_the_site_lets_nobody_bind():
    runtime = with_(HOST.runtime, settings={"mount tmp": "no", "user bind control": "no"})
    assert outcomes(predict(with_(HOST, runtime=runtime), IMAGE, Request()))["srun-pmix"] == "init-failure"


@pytest.mark.parametrize(
    ("setuid", "spaces", "outcome"),
    [
        (None, True, "ok"),
        (True, None, "ok"),
        (None, None, "unknown"),
        (False, None, "unknown"),
        (None, False, "unknown"),
    ],
)
def test_either_way_to_start_a_container_is_enough(setuid: bool | None, spaces: bool | None, outcome: str):
    host = with_(HOST, user_namespaces=spaces, runtime=with_(HOST.runtime, setuid=setuid))
    assert outcomes(predict(host, IMAGE, Request()))["srun-pmix"] == outcome


ONE = Request(nodes=1, ranks_per_node=1)


def test_one_rank_is_a_world_of_its_own_whatever_it_speaks():
    assert outcomes(predict(HOST, image_with(MPICH), ONE))["srun-pmix"] == "ok"
    assert outcomes(predict(HOST, image_with(MPICH), Request(nodes=1, ranks_per_node=2)))["srun-pmix"] != "ok"


def test_one_rank_needs_no_mpi_unless_a_launcher_in_the_image_starts_it():
    verdict = predict(HOST, without(IMAGE, "mpi"), ONE)
    assert verdict.chosen == "srun-pmix"
    assert outcomes(verdict)["mpirun-container"] == "loader-failure"
    assert outcomes(predict(HOST, without(IMAGE, "mpi"), Request()))["srun-pmix"] == "loader-failure"


def test_more_nodes_than_slurm_has_are_unavailable():
    prediction = predict(HOST, IMAGE, Request(nodes=3)).of("srun-pmix")
    assert prediction.outcome == "unavailable"
    assert "3 nodes were asked for; the largest partition has 2" in prediction.because


def test_what_a_person_sets_counts():
    six = image_with(with_(OPEN_MPI_4, version="6.0.0rc2", plugins=False), "7.0.0rc1")
    assert outcomes(predict(HOST, six, Request()))["srun-pmix"] == "comm-failure"
    given = predict(HOST, six, Request(env={"OMPI_MCA_btl_tcp_if_include": "eth0"})).of("srun-pmix")
    assert given.outcome == "ok"
    assert given.plan is not None
    assert given.plan.env == {"OMPI_MCA_btl_tcp_if_include": "eth0"}
    assert outcomes(predict(HOST, IMAGE, Request(env={"OMPI_MCA_btl": "openib"})))["srun-pmix"] == "unknown"


def test_an_earlier_doubt_makes_a_later_failure_uncertain():
    host = with_(HOST, mpis=(with_(HOST.mpis[0], leaks=None),))
    wheel = image_with(with_(OPEN_MPI_4, version="4.1.8", plugins=True), "3.2.5")
    prediction = predict(host, wheel, Request()).of("mpirun-host")
    assert prediction.outcome == "unknown"
    assert "could not be seen" in prediction.because


def test_advice_that_lacks_facts_changes_no_outcome():
    host = with_(HOST, slurm=with_(SLURM, mpi_default=None), unknown={"slurm.mpi_default": "no answer"})
    image = unread(IMAGE, "stack", "no JSON")
    verdict = predict(host, image, Request())
    assert verdict.chosen == "srun-pmix"
    assert {"mpi-default-none", "stack-disagrees"} <= {f.id for f in verdict.findings if f.undecided}
