"""Probe a host for its facts, or read the facts from a file."""

from pathlib import Path

from toolkit.errors import BadInput
from toolkit.job.places import HostOptions
from toolkit.model.facts import HostFacts
from toolkit.probe.asking import NodeChoice, of_job
from toolkit.probe.bundle import Bundle
from toolkit.probe.probe import gather, load

MOST_SECONDS = 600
"""The maximum value of ``--wait``: for how many seconds a probe's Slurm job may wait for compute nodes."""


def gather_facts(host_options: HostOptions, choice: NodeChoice) -> Bundle:
    """Return the facts of a host and its compute nodes, with the raw output of the probe.

    Raises:
        BadInput: if the time to wait for compute nodes is outside 1 to 600 seconds.
        CheckFailed: if the output of the probe is incomplete.
        Missing: if the host is unreachable.
    """
    if not 1 <= choice.wait <= MOST_SECONDS:
        raise BadInput(f"--wait {choice.wait}: not between 1 and {MOST_SECONDS} seconds")
    runner = host_options.open()
    try:
        return gather(runner, choice)
    finally:
        runner.close()


def read_or_probe(file: Path | None, host_options: HostOptions, partition: str | None) -> HostFacts:
    """Return the host facts in ``file``. If ``file`` is ``None``, probe the host in ``host_options`` and one
    node of the partition, and return their facts.

    Raises:
        BadInput: if the file is not a facts file.
        CheckFailed: if the output of the probe is incomplete.
        Missing: if the host is unreachable.
    """
    if file is not None:
        return load(file)
    return gather_facts(host_options, of_job(partition)).host
