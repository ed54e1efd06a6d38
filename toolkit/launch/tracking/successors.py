"""Jobs that go on where another one of the same record stopped, found by the folder that no other job has."""

from collections.abc import Sequence

from toolkit.errors import Missing
from toolkit.launch.tracking import records, slurm
from toolkit.model.job import JobRecord
from toolkit.run.command import Runner


def numbers(runner: Runner, record: JobRecord, *, live: bool = False) -> list[str]:
    """Return the numbers of the jobs of this record's folder that Slurm has just now.

    With ``live`` those that have ended are left out.

    Raises:
        Missing: if Slurm does not answer, which is not the answer that there is none.
    """
    answer = runner.run(slurm.mine(live=live))
    if not answer.ok:
        raise Missing(
            f"{runner.place}: Slurm does not say which jobs there are, so {record.key} is not found",
            fix=f"once squeue --me answers there: toolkit jobs show {record.key}",
            detail=answer.errors.strip().splitlines()[-3:],
        )
    return slurm.parse_mine(answer.text, record.spec.directory)


def later(runner: Runner, record: JobRecord) -> list[str]:
    """Return the numbers of jobs that were submitted in the record's folder since.

    Raises:
        Missing: if Slurm does not answer.
    """
    known = {*record.numbers, record.id}
    return [n for n in numbers(runner, record) if n not in known and int(n) > int(record.id or 0)]


def going_on(runner: Runner, record: JobRecord) -> list[str]:
    """Return the numbers under which the record goes on; of an array all that wait or run, known or not.

    A job has one successor, and each task of an array one of its own.

    Raises:
        Missing: if Slurm does not answer.
    """
    if not record.spec.array:
        return later(runner, record)
    return [n for n in numbers(runner, record, live=True) if n != record.id]


def gone_on(record: JobRecord, under: Sequence[str]) -> JobRecord:
    """Return the record as one that goes on under these numbers; it is asked for under the last of them."""
    known = record.numbers or (record.id,)
    return records.update(
        record,
        id=under[-1],
        numbers=(*(n for n in known if n not in under), *under),
        restarts=record.restarts + len(set(under) - set(known)),
        state="pending",
        exit_code=None,
        ended="",
    )
