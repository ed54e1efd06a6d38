"""Format the page about a build file, such as a Dockerfile, with the predicted outcome of a launch."""

from collections.abc import Iterator

import msgspec

from toolkit.image.buildfile.reading import BuildFile, lines_on
from toolkit.model.facts import HostFacts
from toolkit.model.prediction import Request, Verdict
from toolkit.report.doctor.answer import DoctorAnswer, answer, answer_lines
from toolkit.report.doctor.findings import findings
from toolkit.report.doctor.ways import way, ways
from toolkit.report.lines import Style, leave_unstyled, wrap_text
from toolkit.report.plain import join_lines

_WIDEST = 100


def buildfile_page(
    build: BuildFile,
    host: HostFacts,
    verdict: Verdict,
    request: Request,
    *,
    next_command: str,
    full: bool = False,
    style: Style = leave_unstyled,
    width: int = _WIDEST,
) -> str:
    """Return the whole page about a build file as text.

    The page shows ``next_command`` if the answer is "Perhaps". A ``full`` page contains all launch modes and
    all findings.
    """
    width = min(width, _WIDEST)
    doctor_answer = buildfile_answer(build, verdict, request)
    command = next_command if doctor_answer.word in {"Yes", "Perhaps"} else ""
    lines = [*answer_lines(doctor_answer, command, style, width), ""]
    about = (
        f"{build.image.path} on {host.place}, predicted from the text of the build file. Build the image, "
        "then run the command again with the image."
    )
    lines += wrap_text(about, 0, width)
    for title, texts in lines_on(build):
        lines += ["", style(title, "bold")]
        lines += [line for text in texts for line in wrap_text(text, 4, width, prefix="  · ", outdent=4)]
    lines += ["", style("Launch modes", "bold")]
    lines += [*_modes(verdict, host, request, style, width, full=full), ""]
    if all_findings := build.faults + (verdict.findings if full else ()):
        lines += [style("Findings", "bold"), *findings(all_findings, style, width)]
    return join_lines(lines).rstrip()


def buildfile_answer(build: BuildFile, verdict: Verdict, request: Request) -> DoctorAnswer:
    """Return the answer for a build file. The answer is "Perhaps" instead of "Yes", because the image of a
    build file does not exist yet.
    """
    wrong = [fault for fault in build.faults if fault.severity == "error"]
    if wrong:
        return DoctorAnswer("No", wrong[0].title)
    doctor_answer = answer(verdict, request.mode)
    return DoctorAnswer("Perhaps", doctor_answer.text) if doctor_answer.word == "Yes" else doctor_answer


def _modes(
    verdict: Verdict, host: HostFacts, request: Request, style: Style, width: int, *, full: bool
) -> Iterator[str]:
    if full:
        yield from ways(verdict, host, request, style, width)
        return
    shown = [p for p in verdict.predictions if p.mode == (verdict.chosen or request.mode)]
    shown = shown or [p for p in verdict.predictions if p.outcome != "unavailable"]
    for prediction in shown:
        plain = msgspec.structs.replace(verdict, chosen=None)
        yield from way(prediction, plain, host, request, style, width)
