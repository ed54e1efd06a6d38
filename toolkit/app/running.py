"""Functions of the API that launch jobs, wait for jobs, and fetch the output and files of jobs."""

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
    """Submit a job, as ``toolkit launch`` does, and return the job's record.

    toolkit combines the site profile, user settings, ``toolkit.toml``, ``TOOLKIT_*`` variables, the job file
    and options. If several of these sources set the same field of the job, the last source in this list has
    priority: for example, an option has priority over the job file.

    Args:
        program: the name or the file of a trainer, or a command as a list of words.
        follow: if true, wait until the job ends; ``tell`` then receives the job's output.
        tell: receives progress messages.
        **options: options of ``toolkit launch`` and fields of a job file, for example ``host``, ``image``,
            ``nodes``, ``time`` and ``env``; :class:`toolkit.model.jobfile.LaunchOptions` lists all names.

    Returns:
        The job's record. If the job fails, the function raises no error: check ``record.state``, and call
            :func:`failure`.

    Raises:
        BadInput: if an option or a file is invalid.
        CheckFailed: if toolkit predicts a failure, the image fails the signature check, or sbatch rejects the
            job.
        Missing: if the image, the data or the machine is not available.
        Interrupted: if you press Ctrl-C while toolkit waits for the job to end; the job continues.
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
    """Return the job script that :func:`launch` would submit, as ``toolkit launch --dry-run`` prints it.

    This function copies no files and submits no job. On a machine without Slurm, if you give ``site`` but
    neither ``host`` nor ``cluster``, toolkit uses only the site profile and contacts no other machine.

    Except for ``follow``, the arguments are the same as for :func:`launch`. The errors are also the same.
    """
    from toolkit.job import submit
    from toolkit.job.call import call
    from toolkit.job.places import open_runner

    return submit.script(call(program, options), tell or Silent(), open_runner)


def jobs(*, tell: Tell | None = None) -> tuple[JobRecord, ...]:
    """Return the records of all jobs that were launched from this machine, the oldest first.

    The function contacts no cluster. Call :func:`refresh` for the current state of a job. ``tell`` receives a
    message for each damaged record.
    """
    from toolkit.job.running.reach import on_damage
    from toolkit.launch.tracking import records

    return tuple(records.every(on_damage(tell or Silent())))


def job(key: Job = None, *, tell: Tell | None = None) -> JobRecord:
    """Return the record of one job, without contacting the job's cluster.

    Raises:
        BadInput: if no job matches ``key``, or several jobs match.
    """
    from toolkit.job.running.reach import find

    return find(key.key if isinstance(key, JobRecord) else key, tell or Silent())


def refresh(key: Job = None, *, tell: Tell | None = None) -> JobRecord:
    """Query Slurm for the state of a job, and return the updated record.

    Raises:
        BadInput: if the job does not exist.
        Missing: if the job's machine is unreachable.
    """
    from toolkit.job.running.reach import refresh_record

    return refresh_record(job(key, tell=tell))


def follow(key: Job = None, *, tell: Tell | None = None) -> JobRecord:
    """Wait until a job ends, and return the job's record. Meanwhile, ``tell.output`` receives the lines of
    the job's output.

    Raises:
        BadInput: if the job does not exist.
        Missing: if the job's machine or its Slurm is unreachable for ten minutes.
        Interrupted: if you press Ctrl-C; the job continues.
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
    """Wait until all given jobs have ended, and return their records.

    Args:
        *keys: the jobs; by default the newest job.
        first: if true, wait only until one of the jobs has ended.
        tell: receives progress messages.

    Raises:
        BadInput: if a job does not exist.
        Missing: if a job's machine is unreachable for ten minutes.
        Interrupted: if you press Ctrl-C; the jobs continue.
    """
    from toolkit.job.running.reach import find_all
    from toolkit.job.running.wait import wait_for

    names = [job(key, tell=tell).key for key in keys]
    return tuple(wait_for(find_all(names, tell or Silent()), tell or Silent(), first=first))


def cancel(key: Job = None, *, tell: Tell | None = None) -> JobRecord:
    """Cancel a job, and return the job's record. If the job has already ended, the function changes nothing.

    Raises:
        BadInput: if the job does not exist.
        CheckFailed: if Slurm rejects the request.
        Missing: if the job's machine is unreachable.
    """
    from toolkit.job.running.cancel import cancel as cancel_job

    return cancel_job(job(key, tell=tell)).record


def resume(
    key: Job = None, *, verify_key: StrPath | None = None, no_verify: bool = False, tell: Tell | None = None
) -> JobRecord:
    """Submit an ended job again, in the folder of the ended job. If the job runs a trainer, the trainer
    continues from its last checkpoint.

    Args:
        key: the ended job.
        verify_key, no_verify: the options of :func:`launch` with these names.
        tell: receives progress messages.

    Returns:
        The job's new record. If Slurm runs the job, the function returns after the submission. If the job
            runs on this machine without Slurm, the function returns when the resumed job has ended.

    Raises:
        BadInput: if the job does not exist.
        CheckFailed: if the job still runs, if the image has changed since the job's submission, if the image
            fails the signature check, or if sbatch rejects the job.
        Missing: if the image or the script no longer exists, or the job's machine is unreachable.
    """
    from toolkit.job.running.resume import resume as again

    return again(job(key, tell=tell), path_text(verify_key), no_verify, tell or Silent())


def fetch(
    key: Job = None, *patterns: str, target: StrPath | None = None, tell: Tell | None = None
) -> tuple[Path, ...]:
    """Copy to this machine the files that a job wrote, and return the paths of the new copies. The function
    skips a file if ``target`` already contains an identical copy.

    Args:
        key: the job whose files to copy.
        *patterns: names of files to copy, or paths of files or folders in the job's folder. In a pattern,
            ``*`` matches any text. By default, toolkit copies all files that the job wrote.
        target: the folder for the copies; by default a folder in the current folder, named after the job.
        tell: receives progress messages.

    Raises:
        BadInput: if the job does not exist, or no file matches a pattern.
        CheckFailed: if a file changes during the copy.
        Missing: if the job's machine is unreachable.
    """
    from toolkit.job.running import fetch as fetching
    from toolkit.job.running.reach import connect_to_job

    record = job(key, tell=tell)
    with connect_to_job(record) as runner:
        files = fetching.match_patterns(fetching.list_results(runner, record), patterns)
        return tuple(fetching.fetch(runner, files, Path(target or record.key), tell or Silent()))


def logs(key: Job = None, *, tell: Tell | None = None) -> Iterator[str]:
    """Yield the output of a job in parts. Each part ends at a line break.

    ``"".join(app.logs(key))`` is the complete output.

    Raises:
        BadInput: if the job does not exist.
        Missing: if this machine has no copy of the output, and the job's machine is unreachable.
    """
    from toolkit.job.running.output import texts

    return texts(refresh(key, tell=tell), tell or Silent())


def failure(record: JobRecord) -> CheckFailed | None:
    """Return the error for a failed job, with the cause and the fix that toolkit finds in this machine's copy
    of the job's output.

    Returns:
        The error that ``toolkit launch`` prints, or None if the job succeeded or has not ended.
    """
    from toolkit.job.running.follow import failure as reason
    from toolkit.model.job import FINAL_STATES

    if record.state not in FINAL_STATES or record.state == "completed":
        return None
    return reason(record)
