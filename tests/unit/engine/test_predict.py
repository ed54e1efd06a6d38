"""Test the complete verdict of the engine: the chosen launch mode, the plans, and the unknown facts."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.engine import whole
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
from tests.unit.engine.fixtures import tables
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.engine.predict import judge_host, predict, predict_plan, will_work
from toolkit.engine.traits import pmix_type
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.prediction import MPI_MODES, Prediction, Request, Verdict


def outcomes(verdict: Verdict) -> dict[str, str]:
    return {p.mode: p.outcome for p in verdict.predictions}


def test_the_training_image_on_the_virtual_cluster_as_it_was_measured():
    verdict = predict(HOST, IMAGE, Request(nodes=2))
    assert verdict.chosen == "srun-pmix"
    assert outcomes(verdict) == {
        "srun-pmix": "ok",
        "srun-pmi2": "init-failure",
        "srun-none": "init-failure",
        "mpirun-host": "ok",
        "mpirun-container": "ok",
        "bind": "unknown",
        "gloo": "unknown",
    }


def test_on_one_node_a_launcher_inside_works_too():
    assert outcomes(predict(HOST, IMAGE, Request(nodes=1)))["mpirun-container"] == "ok"


def test_over_nodes_a_launcher_inside_has_its_daemons_started_by_the_script():
    for version, option in (("4.1.4", "--mca"), ("5.0.11", "--prtemca")):
        image = image_with(with_(OPEN_MPI_4, version=version), version)
        inside = predict(HOST, image, Request(nodes=2)).of("mpirun-container")
        assert inside.plan is not None
        assert inside.plan.launcher[1:3] == (option, "plm")
        assert "toolkit-agent" in inside.plan.launcher
        assert (inside.outcome, "uses srun" in inside.because) == ("ok", True)


def test_without_slurm_or_a_word_for_it_a_launcher_inside_has_nobody_to_start_its_daemons():
    no_slurm = without(HOST, "slurm")
    old = image_with(with_(OPEN_MPI_4, version="3.1.6"))
    outside = Request(nodes=2, allocation=False)
    for host, image, request in (
        (no_slurm, IMAGE, Request()),
        (HOST, old, Request()),
        (HOST, IMAGE, outside),
    ):
        inside = predict(host, image, request).of("mpirun-container")
        assert inside.outcome != "ok"
        assert inside.plan is None or len(inside.plan.launcher) == 1


def test_a_launcher_inside_gives_its_ranks_the_path_of_the_image():
    with_path = with_(IMAGE, environment={"PATH": "/opt/venv/bin:/usr/bin"})
    plan = predict(HOST, with_path, Request(nodes=1)).of("mpirun-container").plan
    assert plan is not None
    assert plan.env == {"PATH": "/opt/venv/bin:/usr/bin", "PYTHONNOUSERSITE": "1"}


def test_an_mpich_image_is_launched_by_pmi2():
    verdict = predict(HOST, image_with(MPICH), Request(nodes=2))
    assert verdict.chosen == "srun-pmi2"
    assert outcomes(verdict)["srun-pmix"] == "singletons"


def test_srun_comes_before_mpirun_and_the_host_before_the_container():
    no_pmix = with_(HOST, slurm=with_(SLURM, mpi_types=("none",)))
    assert predict(no_pmix, IMAGE, Request(nodes=1)).chosen == "mpirun-host"
    no_mpirun = with_(no_pmix, mpis=())
    assert predict(no_mpirun, IMAGE, Request(nodes=1)).chosen == "mpirun-container"


def test_a_mode_that_is_asked_for_is_chosen_or_none():
    assert predict(HOST, IMAGE, Request(mode="mpirun-host")).chosen == "mpirun-host"
    assert predict(HOST, IMAGE, Request(mode="srun-pmi2")).chosen is None


def test_an_unavailable_mode_has_no_plan_and_a_failing_one_has():
    verdict = predict(with_(HOST, mpis=()), IMAGE, Request())
    assert verdict.of("mpirun-host").plan is None
    assert verdict.of("srun-pmi2").plan is not None


def test_the_plan_of_srun_pmix_names_its_interface():
    plan = predict(HOST, IMAGE, Request()).of("srun-pmix").plan
    assert plan is not None
    assert plan.launcher == ("srun", "--mpi=pmix")
    assert not plan.inside


def test_the_plan_takes_the_newest_pmix_where_there_is_no_plain_one():
    host = with_(HOST, slurm=with_(SLURM, mpi_types=("pmix_v3", "pmix_v4")))
    plan = predict(host, IMAGE, Request()).of("srun-pmix").plan
    assert plan is not None
    assert plan.launcher == ("srun", "--mpi=pmix_v4")


def test_the_plugin_of_parastation_serves_pmix_of_a_release_that_is_not_known():
    slurm = with_(SLURM, mpi_types=("none", "pspmi", "pspmix"), mpi_default="pspmix")
    verdict = predict(unread(with_(HOST, slurm=slurm), "pmix", "not told"), IMAGE, Request(nodes=2))
    found = verdict.of("srun-pmix")
    assert (found.outcome, found.because) == ("unknown", "unknown facts: host.pmix: not told")
    assert found.plan is not None
    assert found.plan.launcher == ("srun", "--mpi=pspmix")
    assert predict(with_(HOST, slurm=slurm), IMAGE, Request(nodes=2)).chosen == "srun-pmix"
    both = with_(HOST, slurm=with_(SLURM, mpi_types=("pspmix", "pmix_v4")))
    assert pmix_type(both) == "pmix_v4"


def test_the_plan_takes_away_what_the_hosts_launcher_exports():
    plan = predict(HOST, IMAGE, Request()).of("mpirun-host").plan
    assert plan is not None
    assert plan.unset == ("OMPI_MCA_mca_base_component_path",)
    assert plan.env == {"SLURM_STEP_ID": "0", "PYTHONNOUSERSITE": "1"}


def test_an_mpi_in_one_piece_keeps_what_the_launcher_exports():
    image = image_with(with_(OPEN_MPI_4, version="5.0.8", plugins=False), "5.0.8")
    plan = predict(HOST, image, Request()).of("mpirun-host").plan
    assert plan is not None
    assert plan.unset == ()


def test_settings_of_the_host_are_taken_away_in_every_mode():
    host = with_(HOST, environment={"OPAL_PREFIX": "/opt/ompi", "OMPI_MCA_btl": "openib"})
    for prediction in predict(host, IMAGE, Request(nodes=1)).predictions:
        assert prediction.plan is not None
        assert {"OPAL_PREFIX", "OMPI_MCA_btl"} <= set(prediction.plan.unset)


def test_ranks_of_mpich_on_one_node_share_a_namespace():
    plan = predict(HOST, image_with(MPICH), Request(ranks_per_node=2)).of("srun-pmi2").plan
    assert plan is not None
    assert plan.container == ("--sharens",)


def test_hydra_inside_is_told_to_fork_on_one_node_only():
    one = predict(HOST, image_with(MPICH), Request(nodes=1)).of("mpirun-container")
    two = predict(HOST, image_with(MPICH), Request(nodes=2)).of("mpirun-container")
    assert one.plan is not None
    assert one.plan.launcher == ("/usr/bin/mpirun", "-launcher", "fork")
    assert (one.outcome, two.outcome) == ("ok", "hang")


def test_tmp_is_bound_where_the_site_does_not_mount_it():
    host = with_(HOST, runtime=with_(HOST.runtime, settings={"mount tmp": "no"}))
    plan = predict(host, IMAGE, Request()).of("srun-pmix").plan
    assert plan is not None
    assert plan.binds == ("/tmp",)


def test_an_old_pmix_5_client_gets_the_store_that_every_server_has():
    plan = predict(HOST, with_(IMAGE, pmix="5.0.1"), Request()).of("srun-pmix").plan
    assert plan is not None
    assert plan.env == {"PMIX_MCA_gds": "hash", "PYTHONNOUSERSITE": "1"}


@every_row(
    ("ways", "munge", "env"),
    [
        (("native", "none"), True, {"PMIX_SECURITY_MODE": "native"}),
        (("munge", "native"), True, {}),
        (("none",), True, {}),
        (("native", "none"), False, {}),
    ],
)
def test_a_client_without_munge_is_not_asked_for_it(ways, munge, env):
    plan = predict(
        with_(HOST, munge=munge), with_(IMAGE, pmix_components={"psec": ways}), Request(nodes=2)
    ).of("srun-pmix")
    assert plan.plan is not None
    assert {k: v for k, v in plan.plan.env.items() if k == "PMIX_SECURITY_MODE"} == env


def test_a_missing_fact_makes_the_outcome_unknown_and_says_which():
    untold = with_(HOST, slurm=with_(SLURM, mpi_types=("none", "pmix", "pmi2")))
    verdict = predict(unread(untold, "pmix", "ldconfig: no answer in time"), IMAGE, Request())
    prediction = verdict.of("srun-pmix")
    assert prediction.outcome == "unknown"
    assert "host.pmix" in prediction.missing
    assert "no answer in time" in prediction.because
    undecided = next(f for f in verdict.findings if f.undecided)
    assert undecided.severity == "info"
    assert undecided.evidence


def test_a_fact_that_concerns_other_modes_does_not_disturb():
    assert predict(unread(HOST, "mpis"), IMAGE, Request()).chosen == "srun-pmix"


def test_a_certain_failure_is_not_certain_where_something_earlier_is_unknown():
    verdict = predict(unread(HOST, "architecture"), IMAGE, Request())
    assert outcomes(verdict)["srun-pmi2"] == "unknown"


def test_a_failure_before_the_unknown_is_certain():
    host = unread(with_(HOST, slurm=with_(SLURM, mpi_types=("pmix",))), "architecture")
    assert outcomes(predict(host, IMAGE, Request()))["srun-pmi2"] == "unavailable"


def test_a_part_of_something_absent_is_not_missing():
    assert "slurm.mpi_types" not in str(predict(without(HOST, "slurm"), IMAGE, Request()).predictions)


def test_findings_are_joined_over_modes_and_sorted_by_severity():
    verdict = predict(without(HOST, "runtime"), with_(IMAGE, stack={}, disagreements=("x",)), Request())
    ids = [f.id for f in verdict.findings]
    assert len(ids) == len(set(ids))
    assert next(f for f in verdict.findings if f.id == "runtime-absent").modes == ()
    severities = [f.severity for f in verdict.findings]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)


def test_a_host_alone_is_judged_by_the_rules_that_ask_nothing_else():
    assert judge_host(HOST) == ()
    assert [f.id for f in judge_host(without(HOST, "runtime"))] == ["runtime-absent"]


words = st.none() | st.text(max_size=8) | st.sampled_from(["pmix", "4.1.4", "5.0.7", "openmpi", "mpich"])
names = st.tuples() | st.tuples(st.sampled_from(["pmix", "pmi1", "pmi2", "pmix_v5", "?"]))


@st.composite
def hosts(draw: st.DrawFn) -> HostFacts:
    raw = msgspec.to_builtins(HOST)
    for name in draw(st.sets(st.sampled_from(sorted(raw)), max_size=6)):
        raw[name] = None if name in {"slurm", "pmix", "mpis", "runtime", "user_namespaces"} else raw[name]
    for name in ("pmix", "architecture", "glibc"):
        raw[name] = draw(words)
    raw["absent"] = dict.fromkeys(draw(st.sets(st.sampled_from(["slurm", "pmix", "mpis", "runtime"]))), "x")
    raw["environment"] = draw(st.dictionaries(st.text(max_size=12), st.text(max_size=5), max_size=3))
    return msgspec.convert(raw, HostFacts)


@st.composite
def images(draw: st.DrawFn) -> ImageFacts:
    mpi = draw(
        st.none()
        | st.builds(
            ImageMpi,
            implementation=st.sampled_from(["openmpi", "mpich", "intelmpi", "mvapich2", ""]),
            version=words,
            library=st.text(max_size=5),
            interfaces=st.none() | names,
            launcher=words,
            plugins=st.none() | st.booleans(),
            markers=names,
        )
    )
    return ImageFacts(
        path="x", format="sif", mpi=mpi, pmix=draw(words), architecture=draw(words), ssh=draw(words)
    )


@settings(max_examples=count(15, 600), deadline=None)
@given(hosts(), images(), st.integers(1, 4), st.integers(1, 4))
def test_the_engine_never_raises_and_never_leaves_a_finding_without_evidence(
    host: HostFacts, image: ImageFacts, nodes: int, ranks: int
):
    verdict = predict(host, image, Request(nodes=nodes, ranks_per_node=ranks))
    assert [p.mode for p in verdict.predictions] == [*MPI_MODES, "gloo"]
    assert all(f.evidence and all(f.evidence) for f in verdict.findings)
    assert all(p.because for p in verdict.predictions)


@every_row("name", ["architecture", "mpi", "pmix"])
def test_an_image_that_could_not_be_read_is_never_called_ok(name: str):
    assert outcomes(predict(HOST, unread(IMAGE, name), Request()))["srun-pmix"] == "unknown"


def of_major(*types: str, client: str = "4.2.9") -> Prediction:
    """Return the prediction for srun-pmix if only the names of Slurm's PMIx plugins are known."""
    slurm = whole.with_(whole.HOST.slurm, mpi_types=("none", *types))
    host = whole.unread(whole.with_(whole.HOST, slurm=slurm), "pmix")
    return predict(host, whole.with_(whole.IMAGE, pmix=client), Request(nodes=2)).of("srun-pmix")


@every_row(
    ("types", "client", "outcome"),
    [
        (("pmix_v4",), "4.2.9", "ok"),
        (("pmix", "pmix_v5"), "4.2.9", "ok"),
        # The type `pmix` can be any listed plugin. Some plugins are not compatible with a client of PMIx 3.1.
        (("pmix", "pmix_v3", "pmix_v5"), "4.2.9", "ok"),
        (("pmix", "pmix_v4", "pmix_v5"), "3.1.5", "unknown"),
        (("pmix", "pmix_v3", "pmix_v4"), "1.2.5", "unknown"),
        (("pmix_v3", "pmix_v5"), "4.2.9", "ok"),
        (("pspmix",), "4.2.9", "unknown"),
        (("pmix",), "4.2.9", "unknown"),
        (("pmix_v4",), "3.1.5", "unknown"),
        (("pmix_v4",), "1.2.5", "init-failure"),
    ],
)
def test_all_releases_of_one_major_may_decide(types: tuple[str, ...], client: str, outcome: str):
    """PMIx 4.0 and 4.2 differ only for clients of PMIx 3.1."""
    found = of_major(*types, client=client)
    assert found.outcome == outcome
    assert ("host.pmix" in found.missing) is (outcome == "unknown")


def test_a_server_of_which_only_the_major_release_is_known_is_called_by_that():
    assert of_major("pmix_v4").because.endswith("compatible with Slurm's PMIx 4")
    assert "pmix-store-of-early-5" not in of_major("pmix_v5", client="5.0.7").findings


CASES = [
    (f"{name}-{number}", of)
    for table in tables()
    for name, cases in table.items()
    for number, of in enumerate(cases)
]


@every_row("of", [of for _, of in CASES], ids=[name for name, _ in CASES])
def test_whether_a_launch_will_work_is_what_its_prediction_says(of):
    asked = of.host_facts, of.image_facts, of.request, of.plan
    assert will_work(*asked) == (predict_plan(*asked).outcome == "ok")


@every_row("types", [("pmix_v3", "pmix_v4"), ("pmix_v3",), ("pmix",), ("none",)])
def test_it_is_so_where_the_release_of_slurms_pmix_is_unknown(types):
    slurm = with_(HOST.slurm, mpi_types=types, mpi_default=types[0])
    host = with_(HOST, slurm=slurm, pmix=None, unknown={"pmix": "no file was found"})
    for prediction in predict(host, IMAGE, Request(nodes=2)).predictions:
        if prediction.plan:
            assert will_work(host, IMAGE, Request(nodes=2), prediction.plan) == (prediction.outcome == "ok")
