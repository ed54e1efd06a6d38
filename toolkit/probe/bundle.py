"""Read and write facts files.

A facts file contains the output of the probe script on a cluster, and the facts that toolkit reads from this
output.
"""

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
"""Maximum size of a facts file in bytes, enough for ten thousand nodes with 20 kB each."""
MARK = '{\n  "schema": "toolkit.facts/'
"""The first bytes of each file that :func:`encode` writes."""
_SLURM = ("slurm", "mpi-list", "slurm-config", "partitions")
"""Queries that the probe runs only on the contacted machine. Their answers apply to all compute nodes."""


class _Schema(msgspec.Struct, frozen=True):
    schema: str | None = None


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a cluster and the output of the probe script, which ``toolkit probe -o`` writes.

    ``host`` contains the facts that toolkit's rules use. ``login`` has the facts about the contacted machine
    (usually a login node), and ``groups`` has the facts about the compute nodes. The keys of ``silent`` are
    the compute nodes that did not answer completely; each value is the reason. ``site`` describes the whole
    cluster; toolkit uses most of ``site`` only to write or check a site profile (the file that describes a
    cluster). ``raw`` is the output of the probe script. Facts files of the earlier schema
    ``toolkit.facts/1`` have only the fields ``host`` and ``raw``.
    """

    schema: str = "toolkit.facts/2"
    host: HostFacts
    login: HostFacts | None = None
    groups: tuple[Group, ...] = ()
    silent: dict[str, str] = {}
    site: SiteFacts = SiteFacts()
    raw: str


def read(raw: str, place: str, choice: NodeChoice, *, cut: bool = False) -> Bundle:
    """Convert the output of the probe script to facts; ``place`` is the cluster's name in the facts. ``cut``
    is true if toolkit stopped the probe script at the time limit.

    Raises:
        CheckFailed: if the start of the contacted machine's answer is missing, or if the end is missing
            although toolkit did not stop the probe script.
    """
    answers = separate(raw, choice)
    sections = parse(answers.login, place, cut=cut and not answers.ended)
    login = host_facts(place, sections)
    shared = {name: sections[name] for name in _SLURM if name in sections}
    sections_by_node = {n: parse(text, n) for n, text in answers.nodes.items()}
    nodes = {n: host_facts(n, {**node_sections, **shared}) for n, node_sections in sections_by_node.items()}
    groups = group_nodes(nodes)
    return Bundle(
        host=view(login, groups, answers.trouble),
        login=login,
        groups=groups,
        silent=answers.silent,
        site=site_facts(sections, sections_by_node[groups[0].nodes[0]] if groups else None),
        raw=raw,
    )


def encode(bundle: Bundle) -> bytes:
    """Return the content of a facts file, in JSON."""
    return msgspec.json.format(msgspec.json.encode(bundle), indent=2) + b"\n"


def load(path: Path) -> HostFacts:
    """Return the facts that toolkit's rules use, from a file.

    The file is the output of ``toolkit probe`` (``-o`` or ``--json``), or the raw output of the probe script.

    Raises:
        BadInput: if the file is neither a facts file nor the output of the probe script. If a field of a
            facts file is invalid, the message names the field.
    """
    return load_bundle(path).host


def load_bundle(path: Path) -> Bundle:
    """Return all contents of a file that :func:`load` can read. If a fact is not in the file, the fact is
    unknown.

    Raises:
        BadInput: in the same cases as :func:`load`.
    """
    content = read_given(path, limit=_LARGEST, fix="write a facts file with: `toolkit probe -o FACTS.json`")
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
        bundle = msgspec.json.decode(content, type=Bundle)
        return msgspec.structs.replace(bundle, host=with_described_runtime(bundle.host))
    except msgspec.ValidationError as error:
        field, what, _ = shape(str(error), Bundle)
        raise BadInput(f"{path}: {f'{field}: ' if field else ''}{what}", fix=_FIX) from error
    except DECODE_ERRORS as error:
        raise BadInput(f"{path}: the file is not valid JSON: {error}", fix=_FIX) from error


def _from_raw(path: Path, content: bytes) -> Bundle:
    try:
        return read(content.decode("utf-8", "replace"), str(path), NodeChoice())
    except CheckFailed as error:
        if VERSION.encode() in content:
            raise BadInput(error.message, fix=_FIX) from error
        raise BadInput(
            f"{path}: not a facts file: the content is neither JSON nor the output of the probe script",
            fix=_FIX,
        ) from error
