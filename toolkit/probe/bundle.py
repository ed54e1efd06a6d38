"""A facts file: the answer of a place and its facts, to send and use anywhere."""

import codecs
from pathlib import Path

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, CheckFailed
from toolkit.files import read_given
from toolkit.knowledge.strict import plain_text, shape
from toolkit.model.facts import HostFacts
from toolkit.model.sitefacts import SiteFacts
from toolkit.probe.answers import separate
from toolkit.probe.asking import NodeChoice
from toolkit.probe.earlier import with_described_runtime
from toolkit.probe.evidence import VERSION, parse
from toolkit.probe.facts import host_facts
from toolkit.probe.group import Group, group_nodes
from toolkit.probe.read.site import site_facts
from toolkit.probe.view import view

_FIX = "write a new facts file with: `toolkit probe -o FACTS.json`"
_LARGEST = 256 << 20
"""The most bytes of a facts file: the answers of ten thousand nodes of 20 kB each fit."""
MARK = '{\n  "schema": "toolkit.facts/'
"""The first bytes of a file that :func:`encode` writes."""
_SLURM = ("slurm", "mpi-list", "slurm-config", "partitions")
"""Questions of Slurm's own commands, which the place answers for its nodes."""


class _Schema(msgspec.Struct, frozen=True):
    schema: str | None = None


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a place and its raw answer; what ``toolkit probe -o`` writes.

    ``host`` is the view that the rules use, ``login`` the contacted machine, ``groups`` its compute nodes;
    ``silent`` says why nodes did not answer. ``site`` describes the cluster as a whole. toolkit reads most of
    it only to check a site profile. ``toolkit.facts/1`` had ``host`` and ``raw``.
    """

    schema: str = "toolkit.facts/2"
    host: HostFacts
    login: HostFacts | None = None
    groups: tuple[Group, ...] = ()
    silent: dict[str, str] = {}
    site: SiteFacts = SiteFacts()
    raw: str


def read(raw: str, place: str, asked: NodeChoice, *, cut: bool = False) -> Bundle:
    """Read the answer of a place; ``place`` is the name in its facts.

    Raises:
        CheckFailed: if the place's own answer has no beginning or no end.
    """
    answers = separate(raw, asked)
    sections = parse(answers.place, place, cut=cut and not answers.ended)
    login = host_facts(place, sections)
    shared = {name: sections[name] for name in _SLURM if name in sections}
    told = {n: parse(said, n) for n, said in answers.nodes.items()}
    nodes = {n: host_facts(n, {**said, **shared}) for n, said in told.items()}
    groups = group_nodes(nodes)
    return Bundle(
        host=view(login, groups, answers.trouble),
        login=login,
        groups=groups,
        silent=answers.silent,
        site=site_facts(sections, told[groups[0].nodes[0]] if groups else None),
        raw=raw,
    )


def encode(bundle: Bundle) -> bytes:
    """Return the text of a facts file."""
    return msgspec.json.format(msgspec.json.encode(bundle), indent=2) + b"\n"


def load(path: Path) -> HostFacts:
    """Return the facts of a file of ``toolkit probe`` (``-o`` or ``--json``), or of the raw answer of its
    script.

    Raises:
        BadInput: if it is neither a facts file nor a probe's answer; the message names the wrong field.
    """
    return load_bundle(path).host


def load_bundle(path: Path) -> Bundle:
    """Read the same files; missing facts are unknown.

    Raises:
        BadInput: if the file is not a facts file; the message names the wrong field.
    """
    content = read_given(path, most=_LARGEST, fix="write a facts file with: `toolkit probe -o FACTS.json`")
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content.lstrip().startswith(b"{"):
        return _from_raw(path, content)
    plain_text(content, str(path))
    try:
        schema = msgspec.json.decode(content, type=_Schema).schema
        if schema == "toolkit.host/1":
            return Bundle(host=with_described_runtime(msgspec.json.decode(content, type=HostFacts)), raw="")
        if schema not in {None, "toolkit.facts/1", "toolkit.facts/2"}:
            raise BadInput(
                f"{path}: schema: {str(schema)[:40]!r} is not one of toolkit.facts/1, toolkit.facts/2,"
                " toolkit.host/1",
                fix=_FIX,
            )
        found = msgspec.json.decode(content, type=Bundle)
        return msgspec.structs.replace(found, host=with_described_runtime(found.host))
    except msgspec.ValidationError as error:
        field, what, _ = shape(str(error), Bundle)
        raise BadInput(f"{path}: {f'{field}: ' if field else ''}{what}", fix=_FIX) from error
    except DECODE_ERRORS as error:
        raise BadInput(f"{path}: this is not JSON: {error}", fix=_FIX) from error


def _from_raw(path: Path, content: bytes) -> Bundle:
    try:
        return read(content.decode("utf-8", "replace"), str(path), NodeChoice())
    except CheckFailed as error:
        if VERSION.encode() in content:
            raise BadInput(error.message, fix=_FIX) from error
        raise BadInput(
            f"{path}: not a facts file: neither JSON nor the answer of the probe", fix=_FIX
        ) from error
