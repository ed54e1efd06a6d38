"""Probe a cluster: run the probe script with one remote command, and convert the output to facts."""

from toolkit.errors import CheckFailed
from toolkit.model.facts import HostFacts
from toolkit.probe.asking import NodeChoice, command
from toolkit.probe.bundle import Bundle, encode, load, load_bundle, read
from toolkit.probe.evidence import VERSION
from toolkit.run.command import Runner

__all__ = ["Bundle", "NodeChoice", "encode", "gather", "load", "load_bundle", "probe"]


def probe(runner: Runner, choice: NodeChoice | None = None) -> HostFacts:
    """Return the facts that toolkit's rules need about a cluster, by default from the login node and one
    compute node.

    Raises:
        Missing: if the machine is unreachable.
        CheckFailed: if the output of the probe script is incomplete.
    """
    return gather(runner, choice).host


def gather(runner: Runner, choice: NodeChoice | None = None) -> Bundle:
    """Probe a cluster, and return its facts, the raw output, and the groups of compute nodes."""
    choice = choice or NodeChoice()
    done = runner.run(command(choice))
    if done.timed_out and VERSION not in done.text:
        raise CheckFailed(f"{runner.place}: the probe did not answer within {choice.seconds} s")
    # Remove the user's name before the ``@``, because users send facts files to other people.
    place = runner.place.rpartition("@")[2]
    return read(done.text, place, choice, cut=done.timed_out)
