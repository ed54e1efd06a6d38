"""Retry a job launched with ``--requeue`` after a failure that a transient fault or a faulty node caused.

toolkit does not retry at the time limit or after a preemption, because the job script then returns the job to
the queue (``slurm/parts/stop.sh.j2``).
"""

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
"""The largest number of retries of a job. If two retries fail, the job itself is probably faulty."""

_NODE = re.compile(r"[A-Za-z0-9][\w.-]{0,62}")


def retry_faults(
    runner: Runner,
    record: JobRecord,
    demand: KeyDemand,
    secrets: Mapping[str, Hidden],
    tell: Tell,
    watch: Callable[[JobRecord], JobRecord],
) -> JobRecord:
    """Submit a failed job again, at most twice, if a retry can succeed; return the final record.

    Args:
        runner: runs commands on the job's host.
        record: the ended job.
        demand: the signatures that the image needs.
        secrets: the job's secret variables with their values. The job's record has only their names.
        tell: a function that receives the reason for a retry, or the reason why toolkit does not retry.
        watch: follows a job until it ends, and returns its record.
    """
    excluded = [record.spec.exclude] if record.spec.exclude else []
    for count in range(1, _MOST + 1):
        if not record.spec.requeue or record.state != "failed":
            break
        output_explanation = explanation.of_job(record)
        if output_explanation.root is None or output_explanation.retry not in ("transient", "node"):
            tell.notice(f"--requeue: no retry. {ADVICE[output_explanation.retry or 'user']}")
            break
        excluded += _node_of(output_explanation)
        more = (f"--exclude={','.join(dict.fromkeys(excluded))}",) if excluded else ()
        tell.step(f"Job {record.id} failed: {output_explanation.root.text}")
        tell.step(
            f"Submitting the job again (retry {count} of {_MOST})"
            f"{f', without node {excluded[-1]}' if more else ''}"
        )
        record = watch(submit_again(runner, record, demand, secrets, tell, more))
    return record


def _node_of(output_explanation: OutputExplanation) -> list[str]:
    """Return a list with the name of the faulty node, or an empty list if the output names no such node."""
    named = (
        output_explanation.retry == "node"
        and output_explanation.root is not None
        and _NODE.fullmatch(output_explanation.root.node)
    )
    return [output_explanation.root.node] if named and output_explanation.root else []
