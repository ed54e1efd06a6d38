"""Submit or run an ended job again in the job's folder, in which a trainer finds its checkpoint."""

import os
from collections.abc import Mapping

from toolkit.job.places import host_options_of
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
    """Resume a job, and return its new record. If the job runs on this machine, wait until it ends.

    Args:
        record: the job; it must have ended.
        verify_key: a file of public keys, or ``None``. The image needs a signature by one of the keys.
        no_verify: whether to skip the signature check.
        tell: a function that receives the output of a job on this machine.

    Raises:
        CheckFailed: if the job still runs, the image has changed or fails the signature check, or sbatch
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
    """Check the image of a job, and submit the job to Slurm again.

    ``options`` are sbatch options that override the options in the job script. This function raises the same
    errors as :func:`resume`.
    """
    return resubmit(runner, _check_again(runner, record, demand, tell), secrets, options)


def _check_again(runner: Runner, record: JobRecord, demand: KeyDemand, tell: Tell) -> JobRecord:
    """Check an ended job's image again, and return the record with the result of the check. Return the record
    of a running job unchanged.
    """
    if record.state not in FINAL_STATES:
        return record
    cleared, _ = clear_again(runner, record, demand, tell, remote=host_options_of(record).remote)
    return records.update(record, image_digest=cleared.digest, image_check=cleared.check)
