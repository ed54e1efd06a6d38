"""Find how long each phase of a job's start took, from the times that the job recorded."""

from pathlib import Path

from toolkit.errors import BadInput, CheckFailed
from toolkit.job.running.reach import connect_to_job, find
from toolkit.launch.tracking import records
from toolkit.model.job import JobRecord
from toolkit.model.progress import Tell
from toolkit.study.start_parts import JobStart, job_start


def start_of(job: str | None, tell: Tell) -> JobStart:
    """Return the measured durations of the phases of a job's start, such as the queue wait and the imports.

    Args:
        job: a job's folder on this machine, a job's key or a Slurm job ID; ``None`` for the last job.
        tell: a function that receives a notice for each damaged record.

    Raises:
        BadInput: if the folder or job does not exist, or the job is an array.
        CheckFailed: if the job recorded no times.
        Missing: if the job's host is unreachable and this machine has no copy of the times.
    """
    if job and Path(job).is_dir():
        return _require_start(_in_folder(Path(job)), job)
    return start_of_record(find(job, tell))


def start_of_record(record: JobRecord) -> JobStart:
    """Return the durations of the phases of a recorded job's start; :func:`start_of` describes the errors."""
    if record.spec.array:
        raise BadInput(
            f"{record.key}: this is an array job; each task has its own start",
            fix=f"give the folder of one task, as in {record.spec.directory}/0",
        )
    folder = records.folder(record.key)
    names = (records.TIMES, records.METRICS)
    if not (folder / records.TIMES).is_file():
        with connect_to_job(record) as runner:
            for name in names:
                content = runner.read(f"{record.spec.directory}/{name}", limit=records.METRICS_MOST)
                if content:
                    records.keep(record, name, content)
    times, metrics = (_bytes(folder / name) for name in names)
    # The modification time of the job script is the time at which toolkit first submitted the job.
    # Therefore, the queue wait of a restarted or resubmitted job is unknown.
    once = not record.restarts and len(record.numbers) < 2
    size = (record.spec.nodes, record.spec.ranks)
    submitted = _written(folder / records.SCRIPT) if once else None
    start = job_start(record.key, times.decode("ascii", "replace"), metrics, submitted, size)
    return _require_start(start, record.key)


def _in_folder(folder: Path) -> JobStart | None:
    times, metrics = (_bytes(folder / name) for name in (records.TIMES, records.METRICS))
    submitted = _written(folder / records.SCRIPT)
    return job_start(folder.resolve().name, times.decode("ascii", "replace"), metrics, submitted)


def _require_start(start: JobStart | None, job: str) -> JobStart:
    if start is None:
        raise CheckFailed(
            f"{job}: the job did not record the times of its start; its script may not have started",
            fix="wait until the job starts; if the job has already ended, launch the job again",
        )
    return start


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _written(script: Path) -> float | None:
    """Return the Unix time at which toolkit wrote the job script, just before it submitted the job. Return
    ``None`` if the script does not exist.
    """
    try:
        return script.stat().st_mtime
    except OSError:
        return None
