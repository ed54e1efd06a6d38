"""What the tasks of a job array wrote, and how far each is: kept here of one that has ended."""

from toolkit.cli.reaching import reached
from toolkit.launch import jobs, records
from toolkit.model.job import FINAL_STATES, JobRecord, JobTask
from toolkit.report.pace import in_words, pace

_WAITING = {"pending"}


def progress(record: JobRecord) -> dict[int, str]:
    """Return for each task of which metrics are there how far it is, in words."""
    found = {index: pace(content) for index, content in _read(record, records.METRICS).items()}
    return {index: in_words(now) for index, now in found.items() if now}


def output(record: JobRecord) -> str:
    """Return what all tasks wrote, one after the other, each under its number."""
    texts = _read(record, records.OUTPUT)
    return "".join(f"==> task {i} <==\n{text.decode('utf-8', 'replace')}" for i, text in texts.items())


def _read(record: JobRecord, name: str) -> dict[int, bytes]:
    """Return what each task has in a file; one connection serves for all."""
    tasks = [task for task in record.tasks if task.state not in _WAITING]
    if record.state in FINAL_STATES:
        return {task.index: content for task in tasks if (content := _kept(record, task, name))}
    with reached(record) as runner:
        paths = {task.index: _path(record, task, name) for task in tasks}
        return {index: content for index, path in paths.items() if (content := runner.read(path))}


def _kept(record: JobRecord, task: JobTask, name: str) -> bytes:
    try:
        return (records.folder(record.key) / str(task.index) / name).read_bytes()
    except OSError:
        return b""


def _path(record: JobRecord, task: JobTask, name: str) -> str:
    if name == records.OUTPUT:
        return jobs.output_of(record, task)
    return f"{jobs.task_folder(record, task)}/{name}"
