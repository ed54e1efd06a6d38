"""Submit or run a job again in its folder, where a trainer resumes from its checkpoint."""

import os
from collections.abc import Mapping

from toolkit.job.places import where_of
from toolkit.job.request.gate import clear_again, demand_for
from toolkit.job.request.keys import KeyDemand
from toolkit.job.running.reach import connect_to_job
from toolkit.launch.request.variables import secrets_of_record
from toolkit.launch.tracking import jobs, records
from toolkit.launch.tracking.local_run import run_again
from toolkit.launch.tracking.submission import resubmit
from toolkit.model.hidden import NO_SECRETS, Hidden
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.model.progress import Tell
from toolkit.run.command import Runner


def resume(record: JobRecord, verify_key: str | None, no_verify: bool, tell: Tell) -> JobRecord:
    """Return the record of the resumed job; a job of this machine has ended by then.

    Args:
        record: the job; it must have ended.
        verify_key: a file of public keys, one of which must have signed the image.
        no_verify: whether to skip the check of the signatures.
        tell: gets the output of a job of this machine.

    Raises:
        CheckFailed: if the job runs, the image has changed or its signatures do not let it start, or sbatch
            refuses the job.
        Missing: if the image or the script no longer exists, or the host is unreachable.
    """
    secrets = secrets_of_record(record.spec.secrets, NO_SECRETS, os.environ)
    demand = demand_for(record.spec.site, verify_key, no_verify)
    with connect_to_job(record) as runner:
        record, _ = jobs.refresh(runner, record)
        if jobs.is_local(record):
            return run_again(runner, _check_again(runner, record, demand, tell), tell.output, secrets)
        return submit_again(runner, record, demand, secrets, tell)


def submit_again(
    runner: Runner,
    record: JobRecord,
    demand: KeyDemand,
    secrets: Mapping[str, Hidden],
    tell: Tell,
    options: tuple[str, ...] = (),
) -> JobRecord:
    """Submit a job to Slurm again after a check of its image; ``options`` of sbatch override its script.

    Raises:
        CheckFailed: as :func:`resume` says.
        Missing: as :func:`resume` says.
    """
    return resubmit(runner, _check_again(runner, record, demand, tell), secrets, options)


def _check_again(runner: Runner, record: JobRecord, demand: KeyDemand, tell: Tell) -> JobRecord:
    """Return the record with a new check of its image; the caller refuses a job that still runs."""
    if record.state not in FINAL_STATES:
        return record
    cleared, _ = clear_again(runner, record, demand, tell, remote=where_of(record).remote)
    return records.update(record, image_digest=cleared.digest, image_check=cleared.check)
