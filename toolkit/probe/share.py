"""Remove personal data from the facts about a cluster (pure functions)."""

import re
from collections.abc import Iterable

import msgspec

from toolkit.model.facts import HostFacts
from toolkit.model.sitefacts import SiteFacts
from toolkit.probe.bundle import Bundle
from toolkit.probe.group import Group

WITHHELD = "-"
"""The replacement for a text that may contain a user name, an account or an address."""

_PERSONAL = re.compile(
    r"@|~|/(home|users?|u|people|staff)/|token|secret|passw|credential|://|\b\d+\.\d+\.\d+\.\d+\b",
    re.ASCII | re.IGNORECASE,
)


def without_users(bundle: Bundle, name: str) -> Bundle:
    """Return the facts about a cluster without accounts, machine names or users' folders.

    ``name`` is the cluster's name in the result. The result contains the facts that rules read, but neither
    the probe's raw output nor the evidence for each fact.
    """
    private = {account.account for account in bundle.site.associations or ()}
    nodes = _numbers(bundle)
    return Bundle(
        host=_machine(bundle.host, name, nodes, private),
        login=_machine(bundle.login, name, nodes, private) if bundle.login else None,
        groups=tuple(
            Group(
                nodes=tuple(nodes[node] for node in group.nodes),
                facts=_machine(group.facts, nodes[group.nodes[0]], nodes, private),
                differs=group.differs,
            )
            for group in bundle.groups
        ),
        site=_site(bundle.site, private),
        raw="",
    )


def _numbers(bundle: Bundle) -> dict[str, str]:
    """Map each compute node's name to a replacement, such as ``node1``."""
    named: dict[str, None] = {}
    for machine in (bundle.host, *(group.facts for group in bundle.groups)):
        named |= dict.fromkeys(machine.compute_nodes or ())
    for group in bundle.groups:
        named |= dict.fromkeys(group.nodes)
    return {name: f"node{number}" for number, name in enumerate(named, 1)}


def _machine(facts: HostFacts, name: str, nodes: dict[str, str], private: Iterable[str]) -> HostFacts:
    shared = msgspec.structs.replace(
        facts,
        place=name,
        compute_nodes=None if facts.compute_nodes is None else tuple(nodes[n] for n in facts.compute_nodes),
        differs=dict.fromkeys(facts.differs, "differs between nodes"),
        evidence={},
        user_packages=None,
        user_site={},
    )
    return msgspec.convert(_clean(msgspec.to_builtins(shared), private), HostFacts)


def _site(site: SiteFacts, private: Iterable[str]) -> SiteFacts:
    shared = msgspec.structs.replace(
        site,
        associations=None,
        loaded=None
        if site.loaded is None
        else tuple("the module did not load" if error else "" for error in site.loaded),
        folders=None
        if site.folders is None
        else tuple(msgspec.structs.replace(folder, path=folder.mount) for folder in site.folders),
    )
    return msgspec.convert(_clean(msgspec.to_builtins(shared), private), SiteFacts)


def _clean(value: object, private: Iterable[str]) -> object:
    if isinstance(value, dict):
        return {key: _clean(item, private) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, private) for item in value]
    if isinstance(value, str) and (_PERSONAL.search(value) or _names(value, private)):
        return WITHHELD
    return value


def _names(text: str, private: Iterable[str]) -> bool:
    """Return whether a text contains one of the names in ``private`` as a word or as a part of a path."""
    return any(word in private for word in re.split(r"[\s/:,;=]+", text))
