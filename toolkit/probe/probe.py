"""Probe a place: send the script in one round trip, and read what came back."""

from toolkit.errors import CheckFailed
from toolkit.model.facts import HostFacts
from toolkit.probe.asking import NodeChoice, command
from toolkit.probe.bundle import Bundle, encode, load, load_bundle, read
from toolkit.probe.evidence import VERSION
from toolkit.run.command import Runner

__all__ = ["Bundle", "NodeChoice", "encode", "gather", "load", "load_bundle", "probe"]


def probe(runner: Runner, asked: NodeChoice | None = None) -> HostFacts:
    """Ask a place, and by default one of its compute nodes, what the rules need to know.

    Raises:
        Missing: if the place cannot be reached.
        CheckFailed: if the answer is cut short.
    """
    return gather(runner, asked).host


def gather(runner: Runner, asked: NodeChoice | None = None) -> Bundle:
    """Probe, and keep the raw answer and each group of nodes beside the facts."""
    asked = asked or NodeChoice()
    done = runner.run(command(asked))
    if done.timed_out and VERSION not in done.text:
        raise CheckFailed(f"{runner.place}: the probe did not answer within {asked.seconds} s")
    # Facts are mailed: who asked is nobody's business.
    place = runner.place.rpartition("@")[2]
    return read(done.text, place, asked, cut=done.timed_out)
