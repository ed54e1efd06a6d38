"""The Python API of toolkit: inspect images, probe clusters, predict launches, launch and follow jobs.

The functions do what the commands of the same names do, with the same settings and checks. They print
nothing and never exit. Every error is a class of :mod:`toolkit.errors`; its message names the option of the
command, such as ``--nodes`` for ``nodes``. ``tell`` receives progress, and the output of jobs that are
followed; without it, both are hidden.

The import is fast: each function imports what it needs when it is called.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Unpack

from toolkit import errors
from toolkit.errors import BadInput, CheckFailed
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import OutputExplanation
from toolkit.model.job import JobRecord
from toolkit.model.jobfile import LaunchOptions
from toolkit.model.prediction import Mode, Verdict
from toolkit.model.progress import Silent, Tell

if TYPE_CHECKING:
    from toolkit.job.places import Where
    from toolkit.study.report import Report
    from toolkit.study.result import Result
    from toolkit.study.tasks import SweepResult

__all__ = [
    "HostFacts", "ImageFacts", "JobRecord", "LaunchOptions", "Mode", "OutputExplanation", "Silent", "Tell",
    "Verdict", "cancel", "doctor", "errors", "explain", "failure", "follow", "inspect", "job", "jobs",
    "launch", "load_facts", "logs", "probe", "refresh", "report", "report_studies", "report_sweep", "resume",
    "script", "wait",
]  # fmt: skip

StrPath = str | os.PathLike[str]
Job = str | JobRecord | None
"""A job: its record, its key, the beginning of the key, or Slurm's number; ``None`` for the last job."""


def inspect(image: StrPath, *, platform: str = "", tell: Tell | None = None) -> ImageFacts:
    """Return the facts of an image; the image is not started.

    Args:
        image: a SIF, a squashfs, a sandbox folder, a Docker or OCI archive, or any name that
            ``toolkit image inspect`` takes.
        platform: which image to read from an archive for several, such as ``linux/arm64``.
        tell: receives progress.

    Raises:
        BadInput: if there is no such image, or it has another format.
        Damaged: if the image is cut short or has a wrong checksum.
    """
    from toolkit.image.inspect import inspect as read

    return read(os.fspath(image), platform=platform, tell=tell)


def probe(
    *,
    host: str | None = None,
    cluster: str | None = None,
    ssh_config: StrPath | None = None,
    partition: str | None = None,
    nodes: int | str = 1,
    wait: int = 5,
) -> HostFacts:
    """Return the facts of a machine and of its compute nodes; nothing is changed there.

    Args:
        host: a machine over SSH, as ``HOST``, ``USER@HOST`` or an alias; this machine by default.
        cluster: a virtual cluster of this machine, in place of ``host``.
        ssh_config: the SSH configuration to use, as in ``ssh -F``.
        partition: the Slurm partition of the compute nodes; Slurm's default if not given.
        nodes: how many compute nodes to ask, ``"all"``, or names such as ``"node[1-4]"``; 0 for none.
        wait: seconds until the compute nodes must be free, at most 600.

    Raises:
        BadInput: for arguments that contradict each other.
        CheckFailed: if the answer is cut short.
        Missing: if the machine is unreachable.
    """
    from toolkit.job.facts import gathered
    from toolkit.probe.asking import NodeChoice

    return gathered(_where(host, cluster, ssh_config), NodeChoice(str(nodes), wait, partition or "")).host


def load_facts(file: StrPath) -> HostFacts:
    """Return the facts in a file that ``toolkit probe -o`` or the probe script wrote.

    Raises:
        BadInput: if it is not a facts file.
    """
    from toolkit.probe.bundle import load

    return load(Path(file))


def doctor(
    image: StrPath | ImageFacts,
    place: HostFacts | StrPath | None = None,
    *,
    nodes: int | None = None,
    ranks_per_node: int | None = None,
    mode: Mode | None = None,
    site: str | None = None,
    job: StrPath | None = None,
    host: str | None = None,
    cluster: str | None = None,
    ssh_config: StrPath | None = None,
    partition: str | None = None,
    command: Sequence[str] = (),
    tell: Tell | None = None,
) -> Verdict:
    """Predict what each launch mode will do with an image, as ``toolkit doctor`` does.

    Args:
        image: an image as :func:`inspect` takes it, or its facts.
        place: the facts of the cluster, or a facts file. Without them, the machine that ``host`` or
            ``cluster`` names is probed; this machine by default.
        nodes: number of nodes; 2 if neither this nor the job file says so.
        ranks_per_node: ranks on each node; 1 if neither this nor the job file says so.
        mode: judge the launch in this mode only.
        site: the name or the file of a site profile.
        job: a job file in YAML; the other arguments win over it.
        host, cluster, ssh_config: as in :func:`probe`.
        partition: the Slurm partition of the job; one of its nodes is probed.
        command: the command of a rank; the verdict is then of the MPI that its program loads.
        tell: receives progress.

    Returns:
        The verdict. ``verdict.chosen`` is the launch mode to use, ``None`` if no mode is predicted to work.

    Raises:
        BadInput: for a wrong argument or file.
        CheckFailed: if the image is damaged, or the answer of the probe is cut short.
        Missing: if the machine is unreachable.
    """
    from toolkit.job.diagnosis import LaunchQuestion, diagnose, request_launch

    where = _where(host, cluster, ssh_config)
    if place is not None and (where.remote or ssh_config is not None or partition is not None):
        raise BadInput("place: these are the facts; leave host, cluster, ssh_config and partition out")
    tell = tell or Silent()
    given = image if isinstance(image, ImageFacts) else os.fspath(image)
    question = LaunchQuestion(
        image=given.path if isinstance(given, ImageFacts) else given,
        site=site,
        job_file=_text(job),
        partition=partition,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        mode=mode,
        command=tuple(command),
    )
    asked = request_launch(question, tell)
    facts = place if isinstance(place, HostFacts) or place is None else Path(place)
    return diagnose(given, facts, asked, where, partition, tell).verdict


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
    from toolkit.job.places import open_runner

    return submit.launch(submit.call(program, options), tell or Silent(), open_runner, follow=follow)


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
    from toolkit.job.places import open_runner

    return submit.script(submit.call(program, options), tell or Silent(), open_runner)


def jobs(*, tell: Tell | None = None) -> tuple[JobRecord, ...]:
    """Return the records of the jobs that were launched from this machine, the oldest first.

    No place is contacted: see :func:`refresh`. ``tell`` receives a notice for each damaged record.
    """
    from toolkit.job.running.reach import on_damage
    from toolkit.launch.tracking import records

    return tuple(records.every(on_damage(tell or Silent())))


def job(key: Job = None, *, tell: Tell | None = None) -> JobRecord:
    """Return the record of one job; no place is contacted.

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
    from toolkit.job.running.reach import refreshed

    return refreshed(job(key, tell=tell))


def follow(key: Job = None, *, tell: Tell | None = None) -> JobRecord:
    """Wait until a job ends, and return its record; ``tell.output`` receives the lines of its output.

    Raises:
        BadInput: if there is no such job.
        Missing: if the place of the job, or Slurm there, is unreachable for ten minutes.
        Interrupted: on Ctrl-C; the job continues.
    """
    from toolkit.job.running.follow import watch_job
    from toolkit.job.running.reach import reached
    from toolkit.model.job import FINAL_STATES

    record = job(key, tell=tell)
    if record.state in FINAL_STATES:
        return record
    with reached(record) as runner:
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

    return again(job(key, tell=tell), _text(verify_key), no_verify, tell or Silent())


def fetch(
    key: Job = None, *patterns: str, target: StrPath | None = None, tell: Tell | None = None
) -> tuple[Path, ...]:
    """Copy what a job wrote to this machine, and return the files that were copied.

    Args:
        key: the job.
        *patterns: names, paths or folders with ``*``; all files by default.
        target: the folder to write to, by default called as the job is.
        tell: receives progress.

    Raises:
        BadInput: if there is no such job, or it wrote no file that a pattern matches.
        CheckFailed: if a file changes while it is copied.
        Missing: if the place of the job is unreachable.
    """
    from toolkit.job.running import fetch as fetching
    from toolkit.job.running.reach import reached

    record = job(key, tell=tell)
    with reached(record) as runner:
        files = fetching.chosen(fetching.written(runner, record), patterns)
        return tuple(fetching.fetch(runner, files, Path(target or record.key), tell or Silent()))


def logs(key: Job = None, *, tell: Tell | None = None) -> Iterator[str]:
    """Return the output of a job in parts, each of which ends where a line ends.

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


def explain(
    source: StrPath | JobRecord | BinaryIO | None = None, *, text: str | bytes | None = None
) -> OutputExplanation:
    """Return what job output means: root line, class of the fault, known causes, and how to fix them.

    Args:
        source: a file of job output, a folder with such files, a job, or a binary stream.
        text: the job output itself, in place of ``source``.

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

    folder = folder_of(source.key if isinstance(source, JobRecord) else _text(source), tell or Silent())
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
    from toolkit.job.running.sweep import brought, result_of

    hears = tell or Silent()
    record = source if isinstance(source, JobRecord) else find(source, hears)
    if not record.spec.sweep:
        raise BadInput(f"{record.key}: the job is not a sweep", fix="use app.report")
    return result_of(brought(record, hears))


def report_studies(folder: StrPath, *more: StrPath) -> "Report":
    """Return the curves of one or more scaling studies, with their models and the environment.

    Raises:
        BadInput: if a folder holds no study.
        CheckFailed: if a study has no measured run.
    """
    from toolkit.study.report import read

    return read([Path(one) for one in (folder, *more)])


def _where(host: str | None, cluster: str | None, ssh_config: StrPath | None) -> "Where":
    from toolkit.job.places import Where

    return Where(host, cluster, None if ssh_config is None else Path(ssh_config))


def _text(path: StrPath | None) -> str | None:
    return None if path is None else os.fspath(path)
