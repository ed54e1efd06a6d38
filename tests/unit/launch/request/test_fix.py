"""Test that toolkit suggests a fix that the engine predicts to work, and no fix for a working launch."""

import msgspec

from tests.unit.engine.examples import HOST, IMAGE, MPICH, image_with, with_, without
from tests.unit.tables import every_row
from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import predict, predict_plan
from toolkit.launch.request import fix as fixes
from toolkit.launch.request.fix import find_fix, fix_of, plain_plan
from toolkit.model.fix import LaunchFix
from toolkit.model.prediction import Request

TWO = Request()
LEAKY = with_(HOST, environment={"OMPI_MCA_pml": "ucx"})


def test_what_works_as_it_is_needs_no_fix():
    found = find_fix(HOST, IMAGE, TWO)
    assert found
    assert found.is_empty
    assert found.fixed_plan == found.plan


def test_the_plain_launch_has_none_of_the_options_of_the_engine():
    assert plain_plan(LEAKY, IMAGE, TWO).launcher == ("srun",)
    assert plain_plan(LEAKY, IMAGE, TWO).unset == ()
    assert plain_plan(LEAKY, IMAGE, with_(TWO, mode="srun-pmi2")).launcher == ("srun", "--mpi=pmi2")


@every_row(("default", "mode"), [("pmix_v5", "srun-pmix"), ("pmi2", "srun-pmi2"), ("none", "srun-none")])
def test_srun_without_options_is_in_the_mode_of_mpi_default(default, mode):
    host = with_(HOST, slurm=with_(HOST.slurm, mpi_default=default))
    assert plain_plan(host, IMAGE, TWO).mode == mode
    assert plain_plan(without(HOST, "slurm"), IMAGE, TWO).mode == "mpirun-host"


def test_a_leaking_variable_is_taken_away():
    found = find_fix(LEAKY, IMAGE, TWO)
    assert found
    assert found.prediction.outcome != "ok"
    fix = fix_of(found, LEAKY, IMAGE, predict(LEAKY, IMAGE, TWO))
    assert "OMPI_MCA_pml" in fix.launch.unset
    assert fix.because[0].startswith("srun-pmix: ")


def test_another_mode_is_taken_where_the_one_that_was_asked_for_cannot_work():
    found = find_fix(HOST, IMAGE, with_(TWO, mode="srun-pmi2"))
    assert found
    assert (found.prediction.mode, found.fixed_plan.mode) == ("srun-pmi2", "srun-pmix")


def test_every_fix_is_predicted_to_work():
    for host, image in ((LEAKY, IMAGE), (HOST, image_with(MPICH))):
        found = find_fix(host, image, TWO)
        assert found
        assert predict_plan(host, image, TWO, found.fixed_plan).outcome == "ok"


def test_a_remedy_is_tried_where_no_plan_of_the_engine_works(monkeypatch):
    """No plan of the engine works here. The fix is the first change that the engine predicts to work."""
    tried = []

    def foreseen(host, image, request, plan):
        tried.append(plan)
        outcome = "ok" if plan.env.get("OMPI_MCA_btl_tcp_if_include") == "eth7" else "comm-failure"
        return msgspec.structs.replace(real.of("srun-pmix"), outcome=outcome, plan=plan, mode=plan.mode)

    real = predict(HOST, IMAGE, TWO)
    failing = tuple(with_(p, outcome="comm-failure") for p in real.predictions)
    monkeypatch.setattr(fixes, "predict", lambda *_: with_(real, predictions=failing, chosen=None))
    monkeypatch.setattr(fixes, "predict_plan", foreseen)
    monkeypatch.setattr(fixes, "will_work", lambda *asked: foreseen(*asked).outcome == "ok")
    found = find_fix(with_(HOST, interfaces=("eth7", "eth8")), IMAGE, TWO)
    assert found
    assert found.fixed_plan.env["OMPI_MCA_btl_tcp_if_include"] == "eth7"
    assert any("--sharens" in plan.container for plan in tried)
    tried.clear()
    assert find_fix(with_(HOST, interfaces=None, runtime=None), IMAGE, TWO) is None
    assert not any("--sharens" in plan.container for plan in tried)
    assert not any("{interface}" in str(plan.env) for plan in tried)


def test_nothing_helps_an_image_without_mpi():
    assert find_fix(HOST, without(IMAGE, "mpi"), TWO) is None


def a_fix(**launch: object) -> LaunchFix:
    return LaunchFix(mode="srun-pmix", **launch)


def test_a_fix_adds_to_a_plan_and_says_nothing_twice():
    before = plan(LEAKY, IMAGE, TWO, "srun-pmix")
    fix = a_fix(container=("--sharens",), env={"A": "1"}, unset=before.unset, binds=("/opt",))
    after = plan(LEAKY, IMAGE, TWO, "srun-pmix", fix=fix)
    added = ((*before.container, "--sharens"), "1", ("/opt",))
    assert (after.container, after.env["A"], after.binds) == added
    assert after.unset == before.unset
    assert plan(LEAKY, IMAGE, TWO, "srun-pmi2", fix=fix) == plan(LEAKY, IMAGE, TWO, "srun-pmi2")


def test_a_launch_with_a_fix_is_judged_with_it():
    chosen = predict(HOST, IMAGE, TWO, fix=a_fix(env={"A": "1"}))
    assert chosen.chosen == "srun-pmix"
    assert chosen.of("srun-pmix").plan.env["A"] == "1"
    broken = predict(HOST, IMAGE, TWO, fix=a_fix(container=("--cleanenv",)))
    assert broken.chosen is None
    assert broken.of("srun-pmix").outcome != "ok"


def test_what_could_not_be_judged_is_no_reason_for_a_change():
    found = find_fix(LEAKY, IMAGE, TWO)
    verdict = predict(LEAKY, IMAGE, TWO)
    doubted = tuple(with_(f, undecided=True) for f in verdict.findings)
    fix = fix_of(found, LEAKY, IMAGE, with_(verdict, findings=doubted))
    assert len(fix.because) == 1
