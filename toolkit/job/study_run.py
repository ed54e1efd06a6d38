"""Run or resume a study: submit the runs, wait for their jobs, read their performance figures, and retry
failed runs.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from toolkit.errors import CheckFailed, Interrupted
from toolkit.job import scale_point
from toolkit.job.call import Opener
from toolkit.job.request.flags import Flags
from toolkit.job.running.wait import wait_for
from toolkit.job.study_options import join_studies
from toolkit.model.hidden import NO_SECRETS, Hidden
from toolkit.model.job import JobRecord
from toolkit.model.progress import Tell
from toolkit.model.study import Point, Study
from toolkit.number import number
from toolkit.study import folder, proof
from toolkit.study.statistics import curves
from toolkit.study.study_points import file_name


class Sweep(NamedTuple):
    """The options with which toolkit runs a study.

    ``folder`` is the folder of the study. ``retry`` is the largest number of retries of each failed run.
    ``parallel_jobs`` is the largest number of jobs of the study that may wait or run at the same time.
    """

    folder: Path
    retry: int
    parallel_jobs: int
    flags: Flags
    opener: Opener
    secrets: Mapping[str, Hidden] = NO_SECRETS
    """Secret variables that toolkit sets in every run and does not store in the study."""


def run(sweep: Sweep, study: Study, tell: Tell, say: Callable[[str], None]) -> None:
    """Measure the runs of a study that have no performance figures yet. ``say`` prints the results.

    Raises:
        CheckFailed: if runs failed; toolkit first completes all other runs. The error names the failed runs.
        Interrupted: on Ctrl-C; submitted jobs continue. The user resumes the study with the same command.
    """
    with folder.hold_study(sweep.folder):
        study = join_studies(sweep.folder, study)
        points = {file_name(point): point for point in folder.load_points(sweep.folder, study)}
        _check_first(sweep, study, points)
        folder.save(sweep.folder, study)
        done = sum(point.state == "measured" for point in points.values())
        tell.step(
            f"{len(points)} runs in {sweep.folder}" + (f", of which {done} are measured" if done else "")
        )
        try:
            _run_all(sweep, study, points, tell)
        except (Interrupted, KeyboardInterrupt):
            raise Interrupted(
                f"stopped; {sweep.folder} has the results of the measured runs, and submitted jobs continue",
                fix="run the same command to resume the study",
            ) from None
    for text in proof.verdicts(study, curves(study, points.values())):
        say(text)
    _conclude(sweep, points, say)


def _check_first(sweep: Sweep, study: Study, points: dict[str, Point]) -> None:
    """Check the options and files of the first run to submit, before toolkit writes the study's files."""
    if todo := _todo(points, sweep.retry):
        scale_point.check_run(study, todo[0][1], sweep.flags)


def _run_all(sweep: Sweep, study: Study, points: dict[str, Point], tell: Tell) -> None:
    running = _submitted_jobs(points)
    while True:
        for name, point in _todo(points, sweep.retry):
            if len(running) >= sweep.parallel_jobs:
                break
            tell.step(f"Run {_place(points, name)}: {point.title}")
            begun = any(point.job for point in points.values())
            point = scale_point.submit(  # noqa: PLW2901 - the same run, now submitted
                sweep.folder,
                study,
                point,
                sweep.opener,
                tell,
                flags=sweep.flags,
                host_reached=begun,
                secrets=sweep.secrets,
            )
            points[name] = point
            if record := scale_point.job_of(point):
                running[name] = record
            else:
                _tell_failure(point, sweep.retry, tell)
        if not running:
            if not _todo(points, sweep.retry):
                return
            continue
        ended = {record.key: record for record in wait_for(list(running.values()), tell, first=True)}
        for name, record in list(running.items()):
            if record.key in ended:
                points[name] = scale_point.settle(sweep.folder, study, points[name], ended[record.key], tell)
                del running[name]
                _tell_result(study, points[name], sweep.retry, tell)


def _submitted_jobs(points: dict[str, Point]) -> dict[str, JobRecord]:
    """Return the jobs that an earlier ``toolkit scale`` submitted and whose results toolkit has not read,
    by the file name of the run.

    If a run in ``points`` has the state ``submitted`` but no recorded job, set its state to ``planned``. An
    earlier ``toolkit scale`` stopped before it submitted this job.
    """
    running = {}
    for name, point in points.items():
        if record := scale_point.job_of(point):
            running[name] = record
        elif point.state == "submitted":
            points[name] = msgspec.structs.replace(point, state="planned", tries=point.tries - 1, job=None)
    return running


def _todo(points: dict[str, Point], retry: int) -> list[tuple[str, Point]]:
    """Return the runs to submit: first the planned runs, then the failed runs with retries left."""
    wanted = [
        (name, point)
        for name, point in points.items()
        if point.state == "planned" or (point.state == "failed" and point.tries <= retry)
    ]
    return sorted(wanted, key=lambda item: item[1].tries)


def _place(points: dict[str, Point], name: str) -> str:
    return f"{list(points).index(name) + 1} of {len(points)}"


def _tell_result(study: Study, point: Point, retry: int, tell: Tell) -> None:
    if point.state != "measured" or point.figures is None:
        _tell_failure(point, retry, tell)
        return
    figures = point.figures
    if figures.rates:
        rates = sorted(figures.rates)
        tell.step(f"{point.title}: {number(rates[len(rates) // 2])} {study.unit}/s")
    else:
        tell.step(f"{point.title}: {min(figures.seconds):.2f} s")


def _tell_failure(point: Point, retry: int, tell: Tell) -> None:
    then = "toolkit repeats the run later" if point.tries <= retry else "toolkit does not repeat the run"
    tell.step(f"{point.title} failed; {then}. Reason of the failure: {point.why}")


def _conclude(sweep: Sweep, points: dict[str, Point], say: Callable[[str], None]) -> None:
    failed = [point for point in points.values() if point.state != "measured"]
    count = f"{len(points) - len(failed)} of {len(points)} runs are measured"
    say(f"{count}; show the results: toolkit report {sweep.folder}")
    if failed:
        raise CheckFailed(
            f"{len(failed)} runs failed; their performance figures are missing",
            fix="to repeat the failed runs, run the same command with "
            f"`--retry {max(point.tries for point in failed)}`",
            detail=[f"{point.title}: {point.why}" for point in failed],
        )
