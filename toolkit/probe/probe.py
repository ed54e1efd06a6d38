"""Probe a place: send the script in one round trip, and read its answer."""

from toolkit.errors import CheckFailed
from toolkit.model.facts import HostFacts
from toolkit.probe.asking import NodeChoice, command
from toolkit.probe.bundle import Bundle, encode, load, load_bundle, read
from toolkit.probe.evidence import VERSION
from toolkit.run.command import Runner

__all__ = ["Bundle", "NodeChoice", "encode", "gather", "load", "load_bundle", "probe"]


def probe(runner: Runner, asked: NodeChoice | None = None) -> HostFacts:
    """Return the facts that the rules need about a place and, by default, one of its compute nodes.

    Raises:
        Missing: if the place is unreachable.
        CheckFailed: if the answer is cut short.
    """
    return gather(runner, asked).host


def gather(runner: Runner, asked: NodeChoice | None = None) -> Bundle:
    """Probe, and return the raw answer and each group of nodes in addition to the facts."""
    asked = asked or NodeChoice()
    done = runner.run(command(asked))
    if done.timed_out and VERSION not in done.text:
        raise CheckFailed(f"{runner.place}: the probe did not answer within {asked.seconds} s")
    # Facts files are sent to others, so they must not name the user.
    place = runner.place.rpartition("@")[2]
    return read(done.text, place, asked, cut=done.timed_out)
