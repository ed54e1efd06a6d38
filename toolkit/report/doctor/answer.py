"""Format the first lines of ``toolkit doctor``: the answer, such as ``Yes: srun-pmix.``, and the next
command. If the launch does not work, the answer gives the fault instead of the launch mode.
"""

import shlex
from dataclasses import dataclass
from typing import Literal

from toolkit.engine.main_fault import concerns_all, main_fault
from toolkit.model.finding import Finding
from toolkit.model.prediction import Mode, Prediction, Verdict
from toolkit.report.lines import Style, command_lines, wrap_text

Word = Literal["Yes", "Perhaps", "No", "Unknown"]
_SHORT = 3
"""A short answer takes at most one third of the page's width. A command of several lines starts beside a
short answer, but below a longer answer.
"""
_STYLES: dict[Word, str] = {"Yes": "good", "Perhaps": "warn", "No": "bad", "Unknown": "warn"}


@dataclass(frozen=True, slots=True)
class DoctorAnswer:
    """The answer of ``toolkit doctor`` to the question whether the image runs on the host.

    ``text`` gives the launch mode after "Yes" or "Perhaps", and the reason after "No" or "Unknown". ``text``
    does not end with a full stop.
    """

    word: Word
    text: str


def answer(verdict: Verdict, mode: Mode | None = None) -> DoctorAnswer:
    """Return the answer to the question whether an image runs on a host. ``verdict`` contains the predictions
    and findings; ``mode`` is the launch mode that the user requested, or ``None``.
    """
    if verdict.chosen is not None:
        sure = verdict.of(verdict.chosen).shown != "ok?"
        return DoctorAnswer("Yes" if sure else "Perhaps", verdict.chosen)
    if mode is not None and (predictions := [p for p in verdict.predictions if p.mode == mode]):
        return _of_mode(predictions[0], verdict)
    works = [p.mode for p in verdict.predictions if p.works]
    if works:
        return DoctorAnswer(
            "No",
            f"only mode {works[0]} is predicted to work; toolkit uses {works[0]} for your own program only "
            f"if you add `--mode {works[0]}`",
        )
    if any(p.outcome == "unknown" for p in verdict.predictions):
        return DoctorAnswer("Unknown", "toolkit lacks facts that decide whether the launch works")
    fault = main_fault(verdict)
    return DoctorAnswer("No", fault.title if fault else "no launch mode is predicted to work")


def host_answer(place: str, all_findings: tuple[Finding, ...]) -> DoctorAnswer:
    """Return the answer of ``toolkit doctor`` without IMAGE: whether the host can launch containers."""
    errors = [finding for finding in all_findings if finding.severity == "error"]
    if errors:
        return DoctorAnswer("No", errors[0].title)
    return DoctorAnswer("Yes", f"{place} can launch containers")


def _of_mode(prediction: Prediction, verdict: Verdict) -> DoctorAnswer:
    if prediction.outcome == "unknown":
        return DoctorAnswer("Unknown", f"toolkit lacks the facts that decide whether {prediction.mode} works")
    if prediction.outcome == "unavailable":
        how = "may not" if "ok" in prediction.by_chance else "cannot"
        return DoctorAnswer("No", f"{prediction.mode} {how} start: {prediction.because}")
    fault = main_fault(verdict, prediction.mode)
    if fault and concerns_all(fault, verdict):
        return DoctorAnswer("No", fault.title)
    return DoctorAnswer("No", f"toolkit predicts '{prediction.shown}' for mode {prediction.mode}")


def answer_lines(doctor_answer: DoctorAnswer, command: str, style: Style, width: int) -> list[str]:
    """Return the answer and the command ``command`` as lines. A short command is on the same line as the
    answer. If ``command`` is empty, return only the answer.
    """
    head = wrap_text(f"{doctor_answer.word}: {doctor_answer.text}.", 0, width)
    words = shlex.split(command)
    beside = command_lines(words, 0, width, prefix=f"{head[0]} ", next_indent=2) if words else []
    if beside and len(head) == 1 and (len(beside) == 1 or len(head[0]) <= width // _SHORT):
        return _colour_word(beside, doctor_answer.word, style)
    below = command_lines(words, 2, width) if words else []
    return _colour_word([*head, *below], doctor_answer.word, style)


def _colour_word(lines: list[str], word: Word, style: Style) -> list[str]:
    rest = lines[0].removeprefix(f"{word}:")
    return [f"{style(f'{word}:', _STYLES[word])}{rest}", *lines[1:]]
