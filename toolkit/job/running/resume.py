"""Submit or run a job again in its folder, where a trainer resumes from its checkpoint."""

import os

from toolkit.job.places import where_of
from toolkit.job.request.gate import clear_again, demand_for
from toolkit.job.running.reach import reached
from toolkit.launch.request.variables import needed
from toolkit.launch.tracking import jobs, records
from toolkit.launch.tracking.alone import go_on
from toolkit.launch.tracking.submission import resubmit
from toolkit.model.hidden import NO_SECRETS
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.model.progress import Tell


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
        Missing: if the image or the script does not exist any more, or the place is unreachable.
    """
    secrets = needed(record.spec.secrets, NO_SECRETS, os.environ)
    demand = demand_for(record.spec.site, verify_key, no_verify)
    with reached(record) as runner:
        record, _ = jobs.refresh(runner, record)
        if record.state in FINAL_STATES:  # `resubmit` and `go_on` refuse other jobs
            cleared, _ = clear_again(runner, record, demand, tell, remote=where_of(record).remote)
            record = records.update(record, image_digest=cleared.digest, image_check=cleared.check)
        if jobs.is_local(record):
            return go_on(runner, record, tell.output, secrets)
        return resubmit(runner, record, secrets)
