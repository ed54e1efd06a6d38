"""Test that the fix of a finding never recommends a launch that the same verdict predicts to fail."""

import re
from functools import cache

from tests.matrix.record import Truth, load
from tests.unit.engine.examples import HOST, IMAGE, INTEL_MPI, MPICH, SLURM, image_with, with_
from tests.unit.tables import every_row
from tests.unit.thorough import share
from toolkit.engine.predict import predict
from toolkit.engine.registry import RULES
from toolkit.model.finding import Finding
from toolkit.model.prediction import MODES, Request, Verdict
from toolkit.report.rules import general_fix

NAMED = re.compile(rf"(?<![\w-])({'|'.join(sorted(MODES, key=len, reverse=True))})(?![\w-])")
BIND = re.compile(r"\bmode bind\b")
"""The word ``bind`` alone names no mode: it is also part of `--bind /tmp`."""
BY_SRUN = {"--mpi=pmix": "srun-pmix", "--mpi=pmi2": "srun-pmi2", "--mpi=none": "srun-none"}


def named(text: str) -> set[str]:
    """Return the launch modes that a text names directly or by an option of srun."""
    by_name = set(NAMED.findall(text)) - {"bind"} | ({"bind"} if BIND.search(text) else set())
    return by_name | {mode for word, mode in BY_SRUN.items() if word in text}


def outcomes(verdict: Verdict) -> dict[str, str]:
    return {p.mode: p.outcome for p in verdict.predictions}


@cache
def truth() -> Truth:
    return load()


@every_row("place", sorted(load().hosts))
@every_row("nodes", [1, 2])
def test_no_fix_names_a_way_that_fails_in_the_same_verdict(place: str, nodes: int):
    for name in share(sorted(truth().images), sorted(truth().hosts).index(place) + nodes, 5):
        facts = truth().images[name].facts
        verdict = predict(truth().hosts[place], facts, Request(nodes=nodes, ranks_per_node=2))
        becomes = outcomes(verdict)
        wrong = [(f.id, m, becomes[m]) for f in verdict.findings for m in named(f.fix) if becomes[m] != "ok"]
        assert not wrong, f"{name} on {place}: {wrong}"


@every_row("rule", RULES, ids=lambda r: r.id)
def test_a_rule_that_knows_no_launch_names_no_way_but_as_one_that_may_work(rule):
    assert not named(rule.fix)
    assert set(rule.instead) <= set(MODES)
    assert named(general_fix(rule)) <= set(rule.instead)


def the(verdict: Verdict, name: str) -> Finding:
    (found,) = [f for f in verdict.findings if f.id == name]
    return found


def test_the_best_way_that_works_is_named_first():
    verdict = predict(HOST, IMAGE, Request())
    assert the(verdict, "image-lacks-pmi2").fix.startswith("use mode srun-pmix; or rebuild the image")
    without_srun = with_(HOST, slurm=with_(SLURM, mpi_types=("none",)))
    other = predict(without_srun, IMAGE, Request(nodes=1))
    assert the(other, "slurm-lacks-pmix").fix.startswith("use mode mpirun-host; or ask the administrator")


def test_where_no_way_works_none_is_named():
    verdict = predict(
        HOST, with_(image_with(INTEL_MPI), libfabric=None, absent={"libfabric": "x"}), Request()
    )
    assert "ok" not in outcomes(verdict).values()
    assert the(verdict, "image-lacks-pmix").fix == "rebuild the image with an MPI that supports PMIx"
    assert not {m for f in verdict.findings for m in named(f.fix)}


def test_a_pair_that_nobody_measured_is_no_fault_and_is_not_mended():
    verdict = predict(with_(HOST, pmix="9.0.1"), IMAGE, Request())
    found = the(verdict, "pmix-pair-fails")
    assert (found.severity, found.undecided, outcomes(verdict)["srun-pmix"]) == ("warning", True, "unknown")
    assert (
        found.title
        == "Not decided: toolkit's developers have not tested a PMIx 9.0.1 server with a PMIx 4.2.2 client"
    )
    assert found.fix == "use mode mpirun-host; or try the launch: `toolkit doctor IMAGE --live --mode MODE`"


def test_a_mode_that_was_asked_for_keeps_the_others_in_the_fixes():
    verdict = predict(HOST, image_with(MPICH), Request(mode="srun-pmix"))
    assert verdict.chosen is None
    assert the(verdict, "image-lacks-pmix").fix.startswith("use mode srun-pmi2; or ")
