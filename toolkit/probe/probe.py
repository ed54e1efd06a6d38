"""Probe a place: send the script, read its answer; and keep both as a bundle that works anywhere."""

from pathlib import Path

import msgspec

from toolkit.data import shipped
from toolkit.errors import BadInput, CheckFailed
from toolkit.model.facts import HostFacts
from toolkit.probe.evidence import parse
from toolkit.probe.facts import host_facts
from toolkit.run.command import Command, Runner

_SECONDS = 60
"""Longest that the whole script may take; each of its questions has a limit of its own."""


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a place and the raw answer that they were read from; what ``toolkit probe -o`` writes."""

    schema: str = "toolkit.facts/1"
    host: HostFacts
    raw: str


def probe(runner: Runner) -> HostFacts:
    """Ask a place what the rules need to know, in one round trip.

    Raises:
        Missing: if the place cannot be reached.
        CheckFailed: if the answer is cut short.
    """
    return gather(runner).host


def gather(runner: Runner) -> Bundle:
    """Probe, and keep the raw answer beside the facts."""
    script = (shipped("containers") / "probe.sh").read_bytes()
    done = runner.run(Command.of("sh", "-s", stdin=script, timeout=_SECONDS))
    if done.timed_out:
        raise CheckFailed(f"{runner.place}: the probe did not end within {_SECONDS} s")
    raw = done.text
    return Bundle(host=host_facts(runner.place, parse(raw, runner.place)), raw=raw)


def encode(bundle: Bundle) -> bytes:
    """Return the text of a facts file."""
    return msgspec.json.format(msgspec.json.encode(bundle), indent=2) + b"\n"


def load(path: Path) -> HostFacts:
    """Read a facts file that ``toolkit probe -o`` wrote, or the raw answer of the probe script.

    Raises:
        BadInput: if it is neither; the message names the field that is wrong.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror}", fix="write one with: toolkit probe -o FACTS.json"
        ) from error
    if not content.lstrip().startswith(b"{"):
        return _from_raw(path, content)
    try:
        return msgspec.json.decode(content, type=Bundle).host
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: {error}", fix="write a new one with: toolkit probe -o FACTS.json") from error


def _from_raw(path: Path, content: bytes) -> HostFacts:
    try:
        return host_facts(str(path), parse(content.decode("utf-8", "replace"), str(path)))
    except CheckFailed as error:
        raise BadInput(
            f"{path}: not a facts file: neither JSON nor the answer of the probe",
            fix="write one with: toolkit probe -o FACTS.json",
        ) from error
