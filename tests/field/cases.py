"""Read the reported launches (cases), and grade the engine's answers about them."""

from pathlib import Path
from typing import Literal, get_args

import msgspec

from toolkit.engine.conditional import TicketAnswer, answer_ticket
from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import predict, predict_plan
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import Finding
from toolkit.model.prediction import Basis, Mode, Outcome, Plan, Prediction, Request
from toolkit.program import program_of_name
from toolkit.program.choose import modes_of

FILE = Path(__file__).parent / "doctor.jsonl"

Grade = Literal["right", "undecided", "useless", "safe", "dangerous", "no-words", "not-gradable"]
"""Grades of the engine's answer to a report.

``undecided``: the answer leaves the outcome open, and names the deciding fact. ``useless``: the answer leaves
the outcome open, and names no deciding fact. ``safe``: the answer predicts the wrong failure, or a failure of
a launch that worked. ``dangerous``: the answer predicts ``ok``, but the launch failed or was slow.
``no-words`` means that toolkit cannot express the facts.
"""

GRADES: tuple[Grade, ...] = (
    "right",
    "undecided",
    "useless",
    "safe",
    "dangerous",
    "no-words",
    "not-gradable",
)
_ALONE = {"singletons", "wrong-size"}
_FAILS = {"init-failure", "crash", "hang", "comm-failure", "loader-failure"}
_SLOW = ("fabric", "libfabric-lacks-provider", "verbs-driver-missing", "nccl-needs-plugin")


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The words that the user typed in the launch command, instead of toolkit's plan."""

    container: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One report. ``host`` and ``image`` have usual values for facts that ``*_stated`` omit.

    ``deciding`` lists facts, one of which decides the outcome. ``beyond`` names what toolkit cannot express.
    Rules were written without reading cases with ``aside``. ``first`` is the grade of the first answer, for
    cases added after version 0.3.
    """

    id: str
    source: str
    date: str
    stated: str
    cause: str
    note: str = ""
    mode: Mode
    request: Request
    words: Words
    observed: Outcome | Literal["gpu-fails"]
    slow: bool = False
    grade_03: Grade | None = None
    first: Grade | None = None
    aside: bool = False
    deciding: tuple[str, ...] = ()
    beyond: str = ""
    host: HostFacts
    image: ImageFacts
    host_stated: HostFacts
    image_stated: ImageFacts

    @property
    def before(self) -> Grade:
        grade = self.grade_03 or self.first
        if grade is None:
            raise ValueError(self.id)
        return grade


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    case: Case
    said: Prediction
    findings: tuple[Finding, ...]
    grade: Grade


def read(file: Path = FILE) -> tuple[Case, ...]:
    return tuple(_converted(msgspec.json.decode(line, type=Case)) for line in file.read_bytes().splitlines())


def _converted(case: Case) -> Case:
    """Replace the old mode ``srun-none`` by the framework's own launch mode, if it has one."""
    modes = modes_of(case.image, case.request)
    if case.mode != "srun-none" or case.mode in modes:
        return case
    return msgspec.structs.replace(case, mode=modes[0])


def typed(case: Case, planned: Plan) -> Plan:
    """Return the user's launch as a plan.

    The plan has the user's container options, and none that toolkit would add. In the mode ``bind``, which
    mounts the cluster's MPI, the plan keeps toolkit's options. For programs without MPI, the plan sets the
    ranks' variables, as the user's script must do, too.
    """
    launcher = case.words.launcher or planned.launcher
    if case.mode == "bind":
        return msgspec.structs.replace(planned, launcher=launcher)
    own = () if program_of_name(planned.program).BY_MPI else planned.wrapper
    return Plan(
        mode=case.mode,
        launcher=launcher,
        inside=planned.inside,
        container=case.words.container,
        env=case.request.env,
        wrapper=own,
        program=planned.program,
        starter=planned.starter,
    )


def grade(case: Case) -> Graded:
    planned = plan(case.host, case.image, case.request, case.mode)
    said = predict_plan(case.host, case.image, case.request, typed(case, planned))
    findings = predict(case.host, case.image, case.request).findings
    there = tuple(f for f in findings if not f.modes or case.mode in f.modes)
    proposed = predict_plan(case.host, case.image, case.request, planned)
    return Graded(case=case, said=said, findings=there, grade=_grade(case, said, proposed, there))


def _grade(case: Case, said: Prediction, proposed: Prediction, findings: tuple[Finding, ...]) -> Grade:
    if case.before == "not-gradable":
        return "not-gradable"
    if case.beyond:
        return "no-words"
    if said.outcome == "unknown":
        return "undecided" if _names(case, said) else "useless"
    if case.observed == "ok":
        return _of_works(case, said, proposed, findings)
    if case.observed == "gpu-fails":
        told = any(f.severity == "error" and f.id.startswith("gpu") for f in findings)
        if told or said.accelerator == "gpu-failure":
            return "right"
        named = said.shown == "ok?" and any(f.id.startswith("gpu") for f in findings)
        return "undecided" if named else "dangerous"
    if said.outcome == "ok":
        return "dangerous" if said.shown == "ok" else "undecided"
    kinds = (_ALONE, _FAILS, {"unavailable"})
    alike = any({said.outcome, case.observed} <= kind for kind in kinds)
    return "right" if alike or case.observed in said.by_chance else "safe"


def _of_works(case: Case, said: Prediction, proposed: Prediction, findings: tuple[Finding, ...]) -> Grade:
    if "ok" not in {said.outcome, proposed.outcome}:
        return "safe"
    if not case.slow:
        return "right"
    warned = any(word in finding.id for finding in findings for word in _SLOW)
    return "right" if warned else "undecided" if said.shown == "ok?" else "dangerous"


def _names(case: Case, said: Prediction) -> bool:
    """Return whether an undecided answer names one of the deciding facts."""
    return any(name.startswith(fact) for fact in case.deciding for name in said.missing) or any(
        fact in said.because for fact in case.deciding
    )


def partly(case: Case) -> tuple[TicketAnswer, bool]:
    """Return the engine's answer from the stated facts alone, and whether the answer is right."""
    found = answer_ticket(
        case.host_stated,
        case.image_stated,
        case.request,
        case.mode,
        lambda host, image: typed(case, plan(host, image, case.request, case.mode)),
    )
    said = found.prediction
    if case.observed == "gpu-fails":
        return found, said.accelerator == "gpu-failure"
    kinds = (_ALONE, _FAILS, {"unavailable"}, {"ok"})
    alike = any({said.outcome, case.observed} <= kind for kind in kinds)
    return found, alike or case.observed in said.by_chance


def can_be_graded(case: Case) -> bool:
    return not case.beyond and case.before != "not-gradable"


def table(graded: tuple[Graded, ...]) -> str:
    """Return a table of grades: the number of cases before and now; ``aside`` cases have other columns."""
    lines = [f"{'':14}{'before':>8}{'now':>6}{'aside before':>14}{'aside now':>12}"]
    for name in GRADES:
        counts = [
            sum(1 for g in graded if g.case.aside == aside and name == (g.grade if now else g.case.before))
            for aside in (False, True)
            for now in (False, True)
        ]
        lines.append(f"{name:14}{counts[0]:>8}{counts[1]:>6}{counts[2]:>14}{counts[3]:>12}")
    return "\n".join(lines)


def calibration(graded: tuple[Graded, ...]) -> str:
    """Return a table with the number of answers of each grade, by the basis of the answer."""
    lines = [f"{'':14}" + "".join(f"{name:>12}" for name in GRADES[:5])]
    for rests in get_args(Basis):
        some = [g for g in graded if g.said.basis == rests]
        counts = (sum(g.grade == name for g in some) for name in GRADES[:5])
        lines.append(f"{rests:14}" + "".join(f"{count:>12}" for count in counts))
    return "\n".join(lines)


def outcomes_of(case: Case) -> dict[Mode, Outcome]:
    verdict = predict(case.host, case.image, case.request)
    return {one.mode: one.outcome for one in verdict.predictions}
