"""Functions of the API that explain job output and return results of trainings, sweeps and studies."""

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
    """Explain the output of a failed job: return the first line that reports the failure, the class of the
    failure (such as ``out-of-memory``), the causes and the fixes.

    Args:
        source: a file with job output, a folder with such files, a job record, or a binary stream.
        text: the job output itself, as text or bytes; give either ``text`` or ``source``.

    Returns:
        The explanation that ``toolkit explain --json`` prints. Its attribute ``root`` is the line that
        reports the failure, or None if no line reports a failure.

    Raises:
        BadInput: if toolkit cannot read the file, or if you do not give exactly one of ``source`` and
            ``text``.
    """
    from toolkit.job import explanation

    if (source is None) == (text is None):
        raise BadInput("explain: give exactly one of the arguments source and text")
    if isinstance(source, str | os.PathLike):
        return explanation.of_place(os.fspath(source))
    if isinstance(source, JobRecord):
        return explanation.of_job(source)
    return explanation.of_text(text or "") if source is None else explanation.of_stream(source)


def report(source: StrPath | JobRecord | None = None, *, tell: Tell | None = None) -> "Result":
    """Return the result of a training: the accuracy, the images per second, and the seconds of each epoch.

    Args:
        source: the record or the key of a job, or a folder with the output of a job or a trainer; by default
            the newest job.
        tell: receives a message if the job's machine is unreachable and toolkit uses an earlier copy of the
            metrics.

    Raises:
        BadInput: if the job or folder does not exist, or has no metrics.
        CheckFailed: if the training has not completed any epoch.
        Missing: if this machine has no copy of the metrics, and the job's machine is unreachable.
    """
    from toolkit.job.running.metrics import folder_of
    from toolkit.study.result import read_record, read_training, summarise

    folder = folder_of(source.key if isinstance(source, JobRecord) else path_text(source), tell or Silent())
    return summarise(read_training(folder), read_record(folder))


def report_sweep(source: Job = None, *, tell: Tell | None = None) -> "SweepResult":
    """Return the results of a sweep: for each task, the task's state and last metrics, and the values of the
    options that the sweep varies.

    Args:
        source: the job; by default the newest job.
        tell: receives a message if the job's machine is unreachable and toolkit uses an earlier copy of the
            output.

    Raises:
        BadInput: if the job does not exist, or is not a sweep.
    """
    from toolkit.job.running.reach import find
    from toolkit.job.running.sweep_results import fetch_results, read_result

    hears = tell or Silent()
    record = source if isinstance(source, JobRecord) else find(source, hears)
    if not record.spec.sweep:
        raise BadInput(
            f"{record.key}: the job is not a sweep", fix="call `app.report` for a job that is not a sweep"
        )
    return read_result(fetch_results(record, hears))


def report_studies(folder: StrPath, *more: StrPath) -> "Report":
    """Return the speed-up curves of scaling studies, the scaling models fitted to these curves, and the
    environment of the runs.

    Args:
        folder, *more: the folders of the studies, which ``toolkit scale`` wrote.

    Raises:
        BadInput: if a folder contains no study.
        CheckFailed: if a study contains no measured run.
    """
    from toolkit.study.report import read

    return read([Path(one) for one in (folder, *more)])
