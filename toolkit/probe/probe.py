"""Probe a place: send the script, read its answer; and keep both as a bundle that works anywhere."""

from pathlib import Path

import msgspec

from toolkit.data import shipped
from toolkit.errors import BadInput, CheckFailed
from toolkit.model.facts import HostFacts
from toolkit.probe.evidence import VERSION, parse
from toolkit.probe.facts import host_facts
from toolkit.run.command import Command, Runner

_SECONDS = 60
"""Longest that the whole script may take: its questions share 40 s, the rest is the way there and back."""


_FIX = "write a new one with: toolkit probe -o FACTS.json"


class _Schema(msgspec.Struct, frozen=True):
    schema: str | None = None


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
    raw = done.text
    if done.timed_out and VERSION not in raw:
        raise CheckFailed(f"{runner.place}: the probe did not answer within {_SECONDS} s")
    # Facts are mailed: who asked is nobody's business.
    place = runner.place.rpartition("@")[2]
    return Bundle(host=host_facts(place, parse(raw, runner.place, cut=done.timed_out)), raw=raw)


def encode(bundle: Bundle) -> bytes:
    """Return the text of a facts file."""
    return msgspec.json.format(msgspec.json.encode(bundle), indent=2) + b"\n"


def load(path: Path) -> HostFacts:
    """Read what ``toolkit probe`` wrote with ``-o`` or ``--json``, or the raw answer of the probe script.

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
        schema = msgspec.json.decode(content, type=_Schema).schema
        if schema == "toolkit.host/1":
            return msgspec.json.decode(content, type=HostFacts)
        if schema not in {None, "toolkit.facts/1"}:
            raise BadInput(
                f"{path}: schema: {schema!r} is not one of toolkit.facts/1, toolkit.host/1", fix=_FIX
            )
        return msgspec.json.decode(content, type=Bundle).host
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: {error}", fix=_FIX) from error


def _from_raw(path: Path, content: bytes) -> HostFacts:
    try:
        return host_facts(str(path), parse(content.decode("utf-8", "replace"), str(path)))
    except CheckFailed as error:
        if VERSION.encode() in content:
            raise BadInput(error.message, fix=_FIX) from error
        raise BadInput(
            f"{path}: not a facts file: neither JSON nor the answer of the probe", fix=_FIX
        ) from error
