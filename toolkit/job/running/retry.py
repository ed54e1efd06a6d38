"""Submit a job with ``--requeue`` again, but only after a fault of a node or a transient fault."""

import re
from collections.abc import Callable, Mapping

from toolkit.job import explanation
from toolkit.job.request.keys import KeyDemand
from toolkit.job.running.resume import submit_again
from toolkit.model.finding import ADVICE, OutputExplanation
from toolkit.model.hidden import Hidden
from toolkit.model.job import JobRecord
from toolkit.model.progress import Tell
from toolkit.run.command import Runner

_MOST = 2
"""How many times toolkit submits a job again. A fault that appears on every node is a fault of the job."""

_NODE = re.compile(r"[A-Za-z0-9][\w.-]{0,62}")


def retry_faults(
    runner: Runner,
    record: JobRecord,
    demand: KeyDemand,
    secrets: Mapping[str, Hidden],
    tell: Tell,
    watch: Callable[[JobRecord], JobRecord],
) -> JobRecord:
    """Submit a failed job again while a retry can help, and return the final record.

    Args:
        runner: runs commands where the job ran.
        record: the ended job.
        demand: the signatures that the image needs.
        secrets: secret variables of the job, which its record does not hold.
        tell: gets the reason why the job is submitted again, or is not.
        watch: follows a job until it has ended.
    """
    excluded = [record.spec.exclude] if record.spec.exclude else []
    for count in range(1, _MOST + 1):
        if not record.spec.requeue or record.state != "failed":
            break
        found = explanation.of_job(record)
        if found.root is None or found.retry not in ("transient", "node"):
            tell.notice(f"--requeue: {ADVICE[found.retry or 'user']}")
            break
        excluded += _node_of(found)
        more = (f"--exclude={','.join(dict.fromkeys(excluded))}",) if excluded else ()
        tell.step(f"Job {record.id} failed: {found.root.text}")
        tell.step(
            f"Submitting the job again ({count} of {_MOST}){f' without {excluded[-1]}' if more else ''}"
        )
        record = watch(submit_again(runner, record, demand, secrets, tell, more))
    return record


def _node_of(found: OutputExplanation) -> list[str]:
    """Return the node of a fault that belongs to a node, if the output names it."""
    named = found.retry == "node" and found.root is not None and _NODE.fullmatch(found.root.node)
    return [found.root.node] if named and found.root else []
