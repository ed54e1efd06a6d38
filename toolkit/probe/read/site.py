"""Parse the probe's answers for a site profile, which describes the partitions, accounts, modules and folders
of a cluster (pure functions).
"""

import re
from collections.abc import Iterable

from toolkit.model.sitefacts import Association, Folder, PartitionFacts, SiteFacts
from toolkit.probe.evidence import Section, Sections
from toolkit.probe.read import machine, slurm

_GPUS = re.compile(r"(?:^|,)gpu:(?:(?P<type>[\w.+-]+):)?(?P<count>\d{1,4})(?=$|[(,])", re.ASCII)
"""A pattern for GPUs in sinfo's output, such as ``gpu:a100:4`` for four GPUs of the type ``a100``. A GPU type
may start with a digit, as in ``2080ti``.
"""
_MARKED = re.compile(r"\([A-Za-z]+\)$")
_SHORT = 6
_BEGIN, _END = "asked now", "asked yes"
_MASKED = "-"
"""The text that the probe prints instead of the user's name. If an account has the same name as the
user, toolkit therefore does not know the account's name.
"""


def site_facts(login: Sections, node: Sections | None = None) -> SiteFacts:
    """Return the facts about a site, from the answers of the contacted machine and of one compute node."""
    settings = slurm.settings(login.get("slurm-config", Section("slurm-config")))
    modules, places = _whole(login, "modules"), _whole(login, "places")
    node_places = _whole(node or {}, "places")
    network = (node or login).get("network", Section("network"))
    return SiteFacts(
        cluster=settings.get("ClusterName", ""),
        enforces=tuple(w for w in settings.get("AccountingStorageEnforce", "").split(",") if w.isalpha()),
        partitions=partitions(login),
        associations=_associations(login.get("accounts", Section("accounts"))),
        modules=_system(modules),
        offers=_offers(modules) if modules else None,
        loaded=_loaded_modules(modules),
        commands=_commands(modules),
        folders=tuple(_folders(places)) if places else None,
        there=_existing_folders(places),
        there_nodes=_existing_folders(node_places),
        scratch=tuple(dict.fromkeys(node_places.values("disk"))) if node_places else None,
        up=_up(network) if network.ok else None,
    )


def partitions(sections: Sections) -> tuple[PartitionFacts, ...] | None:
    """Return the partitions of a cluster, with the default partition first and the others in Slurm's order.

    The section ``partitions`` is the output of ``sinfo -e -o '%P|%D|%a|%c|%m|%G|%l|%s|%X|%Y|%Z'``.

    The output of earlier releases of the probe has only the first six columns. In this case, limits and cores
    are unknown.
    """
    section = sections.get("partitions", Section("partitions"))
    rows = [line.split("|") for line in section.lines if line.count("|") >= _SHORT - 1]
    if not section.ok or not rows:
        return None
    features = _features(sections.get("features", Section("features")))
    named: dict[str, list[list[str]]] = {}
    for row in rows:
        named.setdefault(row[0], []).append(row)
    parts = [_partition(name, of, features) for name, of in named.items()]
    return tuple(sorted(parts, key=lambda part: not part.default))


def _partition(
    name: str, rows: list[list[str]], features: dict[str, tuple[str, ...]] | None
) -> PartitionFacts:
    gpus = [list(_GPUS.finditer(row[5])) for row in rows]
    # If the nodes of a partition have GPUs of several types, leave the partition's GPU type empty.
    kinds = {gpu["type"] or "" for of_row in gpus for gpu in of_row}
    first = rows[0]
    whole = len(first) > _SHORT + 4
    plain = name.removesuffix("*")
    return PartitionFacts(
        name=plain,
        default=name.endswith("*"),
        up=first[2] == "up",
        nodes=sum(slurm.number(row[1]) or 0 for row in rows),
        cpus=_most(row[3] for row in rows),
        memory_mb=_most(row[4] for row in rows),
        gpus=max(sum(int(gpu["count"]) for gpu in of_row) for of_row in gpus),
        gpu=kinds.pop() if len(kinds) == 1 else "",
        max_time=_time(first[6]) if whole else "",
        max_nodes=slurm.number(first[7].rpartition("-")[2]) if whole else None,
        cores=_most(_product(row[8], row[9]) for row in rows) if whole else None,
        threads=_most(row[10] for row in rows) if whole else None,
        features=None if features is None else features.get(plain, ()),
    )


def _time(text: str) -> str:
    return "UNLIMITED" if text in {"infinite", "n/a", ""} else text


def _product(left: str, right: str) -> str:
    first, second = slurm.number(left), slurm.number(right)
    return str(first * second) if first and second else ""


def _most(texts: Iterable[str]) -> int | None:
    numbers = [number for text in texts if (number := slurm.number(text))]
    return max(numbers, default=None)


def _features(section: Section) -> dict[str, tuple[str, ...]] | None:
    """Return the node features of each partition, from ``partition|feature,feature`` lines."""
    if not section.ok:
        return None
    names_by_partition: dict[str, dict[str, None]] = {}
    for line in section.lines:
        name, sign, words = line.partition("|")
        if sign:
            known = names_by_partition.setdefault(name, {})
            known.update(dict.fromkeys(w for w in words.split(",") if w and not w.startswith("(")))
    return {name: tuple(words) for name, words in names_by_partition.items()}


def _associations(section: Section) -> tuple[Association, ...] | None:
    """Return the user's accounts from ``may ACCOUNT|PARTITION|QOS,QOS`` lines. An account may have
    several lines, one for each partition.
    """
    if not section.ok:
        return None
    default = next(iter(section.values("default")), "")
    names_by_account: dict[str, dict[str, None]] = {}
    for line in section.values("may"):
        row = line.split("|")
        if len(row) >= 3 and row[0] and row[0] != _MASKED:
            names_by_account.setdefault(row[0], {}).update(dict.fromkeys(q for q in row[2].split(",") if q))
    rows = (Association(account=a, qos=tuple(q), default=a == default) for a, q in names_by_account.items())
    return tuple(sorted(rows, key=lambda row: not row.default))


def _whole(sections: Sections, name: str) -> Section | None:
    """Return the section of a query that ran in a login shell. Return None if the query failed, or if a
    start-up file, such as ~/.bash_profile, ended the shell before the end of the answer.

    The result does not contain the lines that start-up files print before and after the answer.
    """
    section = sections.get(name, Section(name))
    if not section.ok or _END not in section.lines:
        return None
    lines = section.lines
    begin = lines.index(_BEGIN) if _BEGIN in lines else -1
    # The answer of a compute node has lines about disks after the end mark; keep the lines about disks.
    end = lines.index(_END, begin + 1) if _END in lines[begin + 1 :] else len(lines)
    after = tuple(line for line in lines[end:] if line.startswith("disk "))
    return Section(name, (*lines[begin + 1 : end], *after), section.status)


def _system(section: Section | None) -> str | None:
    lines = section.values("system") if section else ()
    return None if not lines else "" if lines[-1] == "none" else lines[-1].strip()


def _offers(section: Section) -> tuple[str, ...]:
    rows = [row for row in section.values("offers") if not row.endswith("/")]
    rows.sort(key=lambda row: not row.endswith(")"))
    return tuple(dict.fromkeys(_MARKED.sub("", row) for row in rows))


def _loaded_modules(section: Section | None) -> tuple[str, ...] | None:
    if section is None:
        return None
    rows = [line for line in section.lines if line == "loaded" or line.startswith("failed")]
    return tuple("" if row == "loaded" else row[7:].strip() or "the module did not load" for row in rows)


def _commands(section: Section | None) -> tuple[str, ...] | None:
    if section is None:
        return None
    rows = [line[8:].strip() for line in section.lines if line == "command" or line.startswith("command ")]
    return tuple(row if row.startswith(("/", "~")) else "" for row in rows)


def _folders(section: Section) -> Iterable[Folder]:
    mounts = dict(_pair(row) for row in section.values("mount"))
    kinds = dict(_pair(row) for row in section.values("kind"))
    for row in section.values("variable"):
        name, path = _pair(row)
        yield Folder(variable=name, path=path, mount=mounts.get(name, ""), kind=kinds.get(name, ""))


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(" ")
    return name, value


def _existing_folders(section: Section | None) -> tuple[bool, ...] | None:
    return None if section is None else tuple(answer == "yes" for answer in section.values("there"))


def _up(section: Section) -> tuple[str, ...]:
    states = dict(_pair(row) for row in section.values("state"))
    up = (name for name in machine.interfaces(section) if states.get(name) != "down")
    return machine.routed_interfaces(section) or tuple(up)
