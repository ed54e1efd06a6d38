import msgspec
import pytest

from tests.unit.launch.examples import SRUN
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.launch.jobscript.choose import choose
from toolkit.model.finding import Finding
from toolkit.model.prediction import Plan, Prediction, Verdict

FINDING = Finding(
    id="no-pmi2",
    severity="error",
    title="no PMI-2",
    evidence=("libmpi speaks pmix",),
    fix="use pmix",
    source="s",
)
OK = Prediction(mode="srun-pmix", outcome="ok", because="PMIx fits", plan=SRUN)
BAD = Prediction(
    mode="srun-pmi2",
    outcome="init-failure",
    because="the image speaks no PMI-2",
    findings=("no-pmi2",),
    plan=Plan(mode="srun-pmi2", launcher=("srun", "--mpi=pmi2")),
)
GONE = Prediction(mode="mpirun-host", outcome="unavailable", because="no mpirun on the host")
VERDICT = Verdict(predictions=(OK, BAD, GONE), findings=(FINDING,), chosen="srun-pmix")


def test_the_engines_choice_is_taken():
    choice = choose(VERDICT, None, force=False)
    assert (choice.plan.mode, choice.forced, choice.because) == ("srun-pmix", False, "PMIx fits")


def test_where_the_engine_has_no_choice_another_way_that_serves_the_command_is_taken():
    gloo = Prediction(
        mode="gloo", outcome="ok", because="needs no MPI", plan=Plan(mode="gloo", launcher=("srun",))
    )
    none = Verdict(predictions=(BAD, GONE, gloo), findings=(FINDING,), chosen=None)
    assert choose(none, None, force=False, alternatives=("gloo",)).plan.mode == "gloo"
    with pytest.raises(CheckFailed, match="no launch mode is predicted to work"):
        choose(none, None, force=False)
    broken = msgspec.structs.replace(gloo, outcome="init-failure")
    with pytest.raises(CheckFailed, match="no launch mode is predicted to work"):
        choose(
            Verdict(predictions=(BAD, broken), findings=(), chosen=None),
            None,
            force=False,
            alternatives=("gloo",),
        )
    # The mode that the engine chose has priority over ``others``.
    assert choose(VERDICT, None, force=False, alternatives=("gloo",)).plan.mode == "srun-pmix"


def test_a_predicted_failure_is_refused_with_reason_evidence_and_fix():
    with pytest.raises(CheckFailed, match=r"init-failure.*speaks no PMI-2") as caught:
        choose(VERDICT, "srun-pmi2", force=False)
    assert any("libmpi speaks pmix" in line for line in caught.value.detail)
    assert "srun-pmix" in caught.value.fix


def test_force_overrides_and_says_so():
    choice = choose(VERDICT, "srun-pmi2", force=True)
    assert choice.forced
    assert "forced, although toolkit predicts 'init-failure'" in choice.because


def test_forcing_what_works_is_no_force():
    assert not choose(VERDICT, "srun-pmix", force=True).forced


def test_what_is_not_there_cannot_be_forced():
    with pytest.raises(CheckFailed, match="is not available"):
        choose(VERDICT, "mpirun-host", force=True)


def test_what_nobody_can_tell_may_be_tried_and_the_fix_says_how():
    open_one = msgspec.structs.replace(OK, outcome="unknown", because="unknown facts: x")
    verdict = Verdict(predictions=(open_one, GONE), findings=(FINDING,), chosen=None)
    with pytest.raises(CheckFailed, match="'unknown'") as caught:
        choose(verdict, "srun-pmix", force=False)
    assert "--live --mode srun-pmix" in caught.value.fix
    with pytest.raises(CheckFailed, match="no launch mode") as caught:
        choose(verdict, None, force=True)
    assert caught.value.fix.endswith("`toolkit doctor IMAGE --live --mode srun-pmix`")
    assert "--force" not in caught.value.fix
    assert choose(verdict, "srun-pmix", force=True).forced


@every_row("mode", ["srun-pmix", None])
def test_after_a_probe_without_answers_the_fix_is_to_ask_again(mode):
    because = "unknown facts: host.environment: env: no answer in time"
    late = msgspec.structs.replace(OK, outcome="unknown", because=because)
    verdict = Verdict(predictions=(late, GONE), findings=(FINDING,), chosen=None)
    with pytest.raises(CheckFailed) as caught:
        choose(verdict, mode, force=False)
    assert caught.value.fix == "the host did not answer in time: run the command again"


def test_a_mode_without_mpi_is_not_tried_by_a_trial_of_mpi():
    for mode in ("torch", "gloo"):
        open_one = msgspec.structs.replace(OK, mode=mode, outcome="unknown", because="unknown facts: x")
        with pytest.raises(CheckFailed, match="'unknown'") as caught:
            choose(Verdict(predictions=(open_one,), findings=(), chosen=None), mode, force=False)
        assert "--live" not in caught.value.fix
        assert f"toolkit launch --image IMAGE --mode {mode} --force" in caught.value.fix


def test_nothing_works_and_each_reason_is_told():
    verdict = Verdict(predictions=(BAD, GONE), findings=(FINDING,), chosen=None)
    with pytest.raises(CheckFailed, match="no launch mode") as caught:
        choose(verdict, None, force=False)
    assert len(caught.value.detail) == 2
    assert caught.value.fix == "use pmix"
