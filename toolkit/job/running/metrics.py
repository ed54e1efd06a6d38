"""Find the metrics of a training, and copy the metrics of a job to this machine."""

from pathlib import Path

from toolkit.errors import BadInput, ToolkitError
from toolkit.job.places import host_options_of
from toolkit.launch.tracking import records
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.model.metrics import are_whole
from toolkit.model.progress import Tell


def folder_of(job: str | None, tell: Tell) -> Path:
    """Return the folder on this machine that contains a job's metrics.

    toolkit first copies the metrics from the job's host. It copies nothing if the job has ended and the
    folder already has all metrics.

    Args:
        job: a folder with metrics on this machine, or the key of a job; ``None`` for the last job.
        tell: a function that receives a notice if the host is unreachable and toolkit uses older metrics.

    Raises:
        BadInput: if the folder or job does not exist.
        Missing: if the job's host is unreachable and this machine has no metrics of the job.
    """
    if job and Path(job).is_dir():
        return Path(job)
    try:
        record = records.find(job, newest=True)
    except BadInput as error:
        if job and (Path(job).exists() or "/" in job or not records.any_kept()):
            raise BadInput(
                f"{job}: neither the folder of a run nor a job launched from this machine",
                fix="give the folder of a job, or a name that `toolkit jobs list` shows",
            ) from error
        raise
    folder = records.folder(record.key)
    copy = folder / records.METRICS
    if _is_complete(record, copy):
        return folder
    try:
        _fetch(record)
    except ToolkitError as error:
        if not copy.is_file():
            raise
        tell.notice(f"warning: {error.message}; toolkit uses the metrics that it copied before")
    return folder


def _is_complete(record: JobRecord, copy: Path) -> bool:
    """Return whether a job has ended, and the copy of its metrics is complete."""
    try:
        return record.state in FINAL_STATES and are_whole(copy.read_bytes())
    except OSError:
        return False


def _fetch(record: JobRecord) -> None:
    runner = host_options_of(record).open()
    try:
        if content := runner.read(f"{record.spec.directory}/{records.METRICS}", limit=records.METRICS_MOST):
            records.keep(record, records.METRICS, content)
    finally:
        runner.close()
