"""Launch jobs, follow them, and fetch their files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Unpack

from toolkit.app.arguments import Job, StrPath, path_text
from toolkit.errors import CheckFailed
from toolkit.model.job import JobRecord
from toolkit.model.jobfile import LaunchOptions
from toolkit.model.progress import Silent, Tell


def launch(
    program: str | Sequence[str] | None = None,
    /,
    *,
    follow: bool = False,
    tell: Tell | None = None,
    **options: Unpack[LaunchOptions],
) -> JobRecord:
    """Submit a job, as ``toolkit launch`` does, and return its record.

    Site profile, user settings, ``toolkit.toml``, ``TOOLKIT_*`` variables, job file and options are joined;
    later ones win.

    Args:
        program: the name or the file of a trainer, or a command as a list of words.
        follow: wait until the job ends; ``tell`` receives its output.
        tell: receives progress.
        **options: where and how to launch, and the fields of a job file, such as ``host``, ``image``,
            ``nodes``, ``time`` and ``env``; :class:`toolkit.model.jobfile.LaunchOptions` lists them.

    Returns:
        The record. A job that fails raises no error: see ``record.state`` and :func:`failure`.

    Raises:
        BadInput: for a wrong option or file.
        CheckFailed: if a failure is predicted, the signatures do not let the image start, or sbatch refuses
            the job.
        Missing: if the image, the data or the place is not available.
        Interrupted: on Ctrl-C while the job is followed; the job continues.
    """
    from toolkit.job import submit
    from toolkit.job.call import call
    from toolkit.job.places import open_runner

    return submit.launch(call(program, options), tell or Silent(), open_runner, follow=follow)


def script(
    program: str | Sequence[str] | None = None,
    /,
    *,
    tell: Tell | None = None,
    **options: Unpack[LaunchOptions],
) -> str:
    """Return the job script that :func:`launch` would submit, as ``toolkit launch --dry-run`` does.

    Nothing is copied and nothing is submitted. With ``site`` and without ``host``, on a machine without
    Slurm, no other machine is contacted.

    Arguments and errors are the same as for :func:`launch`.
    """
    from toolkit.job import submit
    from toolkit.job.call import call
    from toolkit.job.places import open_runner

    return submit.script(call(program, options), tell or Silent(), open_runner)


def jobs(*, tell: Tell | None = None) -> tuple[JobRecord, ...]:
    """Return the records of the jobs that were launched from this machine, the oldest first.

    No place is contacted: see :func:`refresh`. ``tell`` receives a notice for each damaged record.
    """
    from toolkit.job.running.reach import on_damage
    from toolkit.launch.tracking import records

    return tuple(records.every(on_damage(tell or Silent())))


def job(key: Job = None, *, tell: Tell | None = None) -> JobRecord:
    """Return the record of one job, without contacting its cluster.

    Raises:
        BadInput: if there is no such job, or more than one.
    """
    from toolkit.job.running.reach import find

    return find(key.key if isinstance(key, JobRecord) else key, tell or Silent())


def refresh(key: Job = None, *, tell: Tell | None = None) -> JobRecord:
    """Ask Slurm for the state of a job, and return the updated record.

    Raises:
        BadInput: if there is no such job.
        Missing: if the place of the job is unreachable.
    """
    from toolkit.job.running.reach import refresh_record

    return refresh_record(job(key, tell=tell))


def follow(key: Job = None, *, tell: Tell | None = None) -> JobRecord:
    """Wait until a job ends, and return its record; ``tell.output`` receives the lines of its output.

    Raises:
        BadInput: if there is no such job.
        Missing: if the place of the job, or Slurm there, is unreachable for ten minutes.
        Interrupted: on Ctrl-C; the job continues.
    """
    from toolkit.job.running.follow import watch_job
    from toolkit.job.running.reach import connect_to_job
    from toolkit.model.job import FINAL_STATES

    record = job(key, tell=tell)
    if record.state in FINAL_STATES:
        return record
    with connect_to_job(record) as runner:
        return watch_job(runner, record, tell or Silent())


def wait(*keys: Job, first: bool = False, tell: Tell | None = None) -> tuple[JobRecord, ...]:
    """Wait until jobs have ended, and return the records of the jobs that have.

    Args:
        *keys: the jobs; the last job if none is given.
        first: wait until one of them has ended.
        tell: receives progress.

    Raises:
        BadInput: if there is no such job.
        Missing: if a place is unreachable for ten minutes.
        Interrupted: on Ctrl-C; the jobs continue.
    """
    from toolkit.job.running.reach import find_all
    from toolkit.job.running.wait import wait_for

    names = [job(key, tell=tell).key for key in keys]
    return tuple(wait_for(find_all(names, tell or Silent()), tell or Silent(), first=first))


def cancel(key: Job = None, *, tell: Tell | None = None) -> JobRecord:
    """Cancel a job, and return its record; a job that has ended is not changed.

    Raises:
        BadInput: if there is no such job.
        CheckFailed: if Slurm refuses.
        Missing: if the place of the job is unreachable.
    """
    from toolkit.job.running.cancel import cancel as cancel_job

    return cancel_job(job(key, tell=tell)).record


def resume(
    key: Job = None, *, verify_key: StrPath | None = None, no_verify: bool = False, tell: Tell | None = None
) -> JobRecord:
    """Submit a job that has ended again in its folder; a trainer resumes from its checkpoint.

    Args:
        key: the job. A job of this machine runs again until it ends.
        verify_key, no_verify: as in :func:`launch`.
        tell: receives progress.

    Raises:
        BadInput: if there is no such job.
        CheckFailed: if the job runs, the image has changed, or sbatch refuses the job.
        Missing: if the image or the script does not exist any more, or the place is unreachable.
    """
    from toolkit.job.running.resume import resume as again

    return again(job(key, tell=tell), path_text(verify_key), no_verify, tell or Silent())


def fetch(
    key: Job = None, *patterns: str, target: StrPath | None = None, tell: Tell | None = None
) -> tuple[Path, ...]:
    """Copy what a job wrote to this machine, and return the files that were copied.

    Args:
        key: the job.
        *patterns: names, paths or folders with ``*``; all files by default.
        target: the folder to write to, by default named after the job.
        tell: receives progress.

    Raises:
        BadInput: if there is no such job, or it wrote no file that a pattern matches.
        CheckFailed: if a file changes while it is copied.
        Missing: if the place of the job is unreachable.
    """
    from toolkit.job.running import fetch as fetching
    from toolkit.job.running.reach import connect_to_job

    record = job(key, tell=tell)
    with connect_to_job(record) as runner:
        files = fetching.match_patterns(fetching.list_results(runner, record), patterns)
        return tuple(fetching.fetch(runner, files, Path(target or record.key), tell or Silent()))


def logs(key: Job = None, *, tell: Tell | None = None) -> Iterator[str]:
    """Return the output of a job in parts that end at line ends.

    ``"".join(app.logs(key))`` is the output as one text.

    Raises:
        BadInput: if there is no such job.
        Missing: if this machine has no copy of the output, and the place of the job is unreachable.
    """
    from toolkit.job.running.output import texts

    return texts(refresh(key, tell=tell), tell or Silent())


def failure(record: JobRecord) -> CheckFailed | None:
    """Return why a job failed, with cause and fix, from the output on this machine.

    Returns:
        The error that ``toolkit launch`` shows; ``None`` for a job that completed or has not ended.
    """
    from toolkit.job.running.follow import failure as reason
    from toolkit.model.job import FINAL_STATES

    if record.state not in FINAL_STATES or record.state == "completed":
        return None
    return reason(record)
