"""Ask a place for its facts, or read them from a file."""

from pathlib import Path

from toolkit.errors import BadInput
from toolkit.job.places import Where
from toolkit.model.facts import HostFacts
from toolkit.probe.asking import NodeChoice, of_job
from toolkit.probe.bundle import Bundle
from toolkit.probe.probe import gather, load

MOST_SECONDS = 600
"""How long compute nodes may stay in the queue of a probe."""


def gathered(where: Where, asked: NodeChoice) -> Bundle:
    """Return the facts of a place and of its compute nodes, with the answers that they were read from.

    Raises:
        BadInput: if the nodes may not wait so long.
        CheckFailed: if the answer is cut short.
        Missing: if the place is unreachable.
    """
    if not 1 <= asked.wait <= MOST_SECONDS:
        raise BadInput(f"--wait {asked.wait}: give 1 to {MOST_SECONDS} seconds")
    runner = where.opened()
    try:
        return gather(runner, asked)
    finally:
        runner.close()


def facts_of(file: Path | None, where: Where, partition: str | None) -> HostFacts:
    """Return the facts in a file, else the facts of a place with one node of the partition.

    Raises:
        BadInput: if the file is not a facts file.
        CheckFailed: if the answer is cut short.
        Missing: if the place is unreachable.
    """
    if file is not None:
        return load(file)
    return gathered(where, of_job(partition)).host
