"""What job output means, and the results of trainings, sweeps and studies."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from toolkit.app.arguments import Job, StrPath, path_text
from toolkit.errors import BadInput
from toolkit.model.finding import OutputExplanation
from toolkit.model.job import JobRecord
from toolkit.model.progress import Silent, Tell

if TYPE_CHECKING:
    from toolkit.study.report import Report
    from toolkit.study.result import Result
    from toolkit.study.tasks import SweepResult


def explain(
    source: StrPath | JobRecord | BinaryIO | None = None, *, text: str | bytes | None = None
) -> OutputExplanation:
    """Return what job output means: root line, class of the fault, known causes, and how to fix them.

    Args:
        source: a file of job output, a folder with such files, a job, or a binary stream.
        text: the job output itself, instead of ``source``.

    Returns:
        The object that ``toolkit explain --json`` prints; ``root`` is ``None`` if no line reports a failure.

    Raises:
        BadInput: if the file cannot be read, or not exactly one of ``source`` and ``text`` is given.
    """
    from toolkit.job import explanation

    if (source is None) == (text is None):
        raise BadInput("explain: give either a file or text=")
    if isinstance(source, str | os.PathLike):
        return explanation.of_place(os.fspath(source))
    if isinstance(source, JobRecord):
        return explanation.of_job(source)
    return explanation.of_text(text or "") if source is None else explanation.of_stream(source)


def report(source: StrPath | JobRecord | None = None, *, tell: Tell | None = None) -> "Result":
    """Return the result of a training: accuracy, images per second, seconds of each epoch.

    Args:
        source: a job, or the folder of a job or of a trainer's output; the last job by default.
        tell: receives a notice if the place of the job is unreachable and older metrics are used.

    Raises:
        BadInput: if there is no such job or folder, or it holds no metrics.
        CheckFailed: if no epoch is complete.
        Missing: if this machine has no metrics and the place of the job is unreachable.
    """
    from toolkit.job.running.metrics import folder_of
    from toolkit.study.result import read_record, read_training, summarise

    folder = folder_of(source.key if isinstance(source, JobRecord) else path_text(source), tell or Silent())
    return summarise(read_training(folder), read_record(folder))


def report_sweep(source: Job = None, *, tell: Tell | None = None) -> "SweepResult":
    """Return the table of a sweep: values, state and last figures of each task.

    Args:
        source: the job; the last one by default.
        tell: receives a notice if the place of the job is unreachable and older output is used.

    Raises:
        BadInput: if there is no such job, or it is not a sweep.
    """
    from toolkit.job.running.reach import find
    from toolkit.job.running.sweep_results import fetch_results, read_result

    hears = tell or Silent()
    record = source if isinstance(source, JobRecord) else find(source, hears)
    if not record.spec.sweep:
        raise BadInput(f"{record.key}: the job is not a sweep", fix="use app.report")
    return read_result(fetch_results(record, hears))


def report_studies(folder: StrPath, *more: StrPath) -> "Report":
    """Return the curves of one or more scaling studies, with the fitted models and the environment of the
    runs.

    Raises:
        BadInput: if a folder holds no study.
        CheckFailed: if a study has no measured run.
    """
    from toolkit.study.report import read

    return read([Path(one) for one in (folder, *more)])
