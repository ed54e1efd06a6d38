"""Find the Slurm jobs that resume a stopped job; these jobs have the same job folder as the stopped job."""

from collections.abc import Sequence

from toolkit.errors import Missing
from toolkit.launch.tracking import records, slurm
from toolkit.model.job import JobRecord
from toolkit.run.command import Runner


def numbers(runner: Runner, record: JobRecord, *, live: bool = False) -> list[str]:
    """Return the numbers of all Slurm jobs that use the folder of a recorded job, in ascending order.

    If ``live`` is true, the result omits ended jobs.

    Raises:
        Missing: if Slurm does not answer.
    """
    answer = runner.run(slurm.list_own_jobs(live=live))
    if not answer.ok:
        raise Missing(
            f"{runner.place}: Slurm does not list your jobs, so the state of {record.key} is unknown",
            fix=f"when `squeue --me` works again on {runner.place}, run `toolkit jobs show {record.key}`",
            detail=answer.errors.strip().splitlines()[-3:],
        )
    return slurm.parse_own_jobs(answer.text, record.spec.directory)


def later(runner: Runner, record: JobRecord) -> list[str]:
    """Return the numbers of Slurm jobs in the record's folder that are newer than the record's last job.

    Raises:
        Missing: if Slurm does not answer.
    """
    known = {*record.numbers, record.id}
    return [n for n in numbers(runner, record) if n not in known and int(n) > int(record.id or 0)]


def active_successors(runner: Runner, record: JobRecord) -> list[str]:
    """Return the Slurm numbers of the jobs that resume the recorded job.

    For an array, each task resumes as its own Slurm job, and the result omits ended jobs. For other jobs, the
    result may contain ended jobs.

    Raises:
        Missing: if Slurm does not answer.
    """
    if not record.spec.array:
        return later(runner, record)
    return [n for n in numbers(runner, record, live=True) if n != record.id]


def continue_under(record: JobRecord, job_ids: Sequence[str]) -> JobRecord:
    """Record that the Slurm jobs ``job_ids`` resume the recorded job, and return the new record.

    The last ID becomes the record's job ID. The new state is ``pending``.
    """
    known = record.numbers or (record.id,)
    return records.update(
        record,
        id=job_ids[-1],
        numbers=(*(n for n in known if n not in job_ids), *job_ids),
        restarts=record.restarts + len(set(job_ids) - set(known)),
        state="pending",
        exit_code=None,
        ended="",
    )
