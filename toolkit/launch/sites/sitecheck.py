"""Compare a site profile with the facts of its cluster."""

import posixpath
from collections.abc import Iterator
from typing import Literal, NamedTuple

from toolkit.launcher import site_launcher as launcher_at
from toolkit.model.facts import HostFacts
from toolkit.model.site import Partition, Site
from toolkit.model.sitefacts import PartitionFacts, SiteFacts
from toolkit.probe.asking import SiteWords
from toolkit.scheduler.times import minutes

State = Literal["holds", "differs", "undecided"]


class ProfileCheck(NamedTuple):
    """The result of comparing one field of a site profile with the cluster.

    ``state`` is ``holds`` if the cluster has the field's value, ``differs`` if the cluster has another value,
    and ``undecided`` if the cluster's value is unknown. ``text`` contains the field's value and, unless
    ``state`` is ``holds``, the reason.
    """

    field: str
    state: State
    text: str


def words(site: Site) -> SiteWords:
    """Return the modules, commands and folders in a site profile that the probe checks."""
    return SiteWords(
        modules=(*site.modules, *site.container.modules),
        commands=(site.container.command, launcher_at(site, "srun").COMMAND),
        folders=tuple(_folders(site).values()),
    )


def points(site: Site, host: HostFacts, facts: SiteFacts) -> Iterator[ProfileCheck]:
    """Yield the result for each field of a site profile that a probe can check."""
    yield from _of_scheduler(site, host)
    yield _compare_field("architecture", site.architecture, host.architecture, host.cite("architecture"))
    yield from _of_modules(site, facts)
    yield from _of_folders(site, facts)
    yield from _of_network(site, host)
    yield from _of_container(site, host, facts)
    yield from _of_launch(site, host, facts)
    yield from _of_defaults(site, facts)
    for number, part in enumerate(site.partitions):
        yield from _of_partition(f"partitions[{number}]", part, facts)


def _of_scheduler(site: Site, host: HostFacts) -> Iterator[ProfileCheck]:
    if site.scheduler != "slurm":
        yield ProfileCheck("scheduler", "undecided", f"{site.scheduler}: toolkit can query only Slurm")
    elif host.slurm is None:
        state: State = "differs" if "slurm" in host.absent else "undecided"
        yield ProfileCheck("scheduler", state, f"slurm: {host.cite('slurm')}")
    else:
        yield ProfileCheck("scheduler", "holds", f"slurm {host.slurm.version}")


def _compare_field(field: str, value: str, cluster_value: str | None, reason: str) -> ProfileCheck:
    if cluster_value is None:
        return ProfileCheck(field, "undecided", f"{value}: {reason}")
    return ProfileCheck(
        field,
        "holds" if value == cluster_value else "differs",
        value if value == cluster_value else f"{value}: the cluster has {cluster_value}",
    )


def _of_modules(site: Site, facts: SiteFacts) -> Iterator[ProfileCheck]:
    fields = [f"modules[{n}]" for n in range(len(site.modules))]
    fields += [f"container.modules[{n}]" for n in range(len(site.container.modules))]
    for number, (field, name) in enumerate(zip(fields, words(site).modules, strict=True)):
        error = _nth(facts.loaded, number)
        if error is None:
            yield ProfileCheck(field, "undecided", f"{name}: toolkit did not try to load this module")
        else:
            yield ProfileCheck(field, "differs" if error else "holds", f"{name}: {error}" if error else name)


def _folders(site: Site) -> dict[str, str]:
    """Return the folders that a profile names, by field; for ``directory``, the parent folder."""
    folders = {f"container.binds[{n}]": bind.split(":")[0] for n, bind in enumerate(site.container.binds)}
    if site.scratch:
        folders["scratch"] = site.scratch
    if site.directory:
        folders["directory"] = posixpath.dirname(site.directory.rstrip("/")) or site.directory
    if site.shared:
        folders["shared"] = site.shared
    return folders


def _of_folders(site: Site, facts: SiteFacts) -> Iterator[ProfileCheck]:
    for number, (field, folder) in enumerate(_folders(site).items()):
        # The probe's job on the nodes lacks the variables of the login shell.
        # Therefore, toolkit looks on the login host for each folder whose path starts with a variable.
        on_nodes = field != "directory" and not folder.startswith("$")
        exists = _nth(facts.there_nodes if on_nodes else facts.there, number)
        where = "compute nodes" if on_nodes else "the login host"
        if field == "scratch" and not on_nodes:
            yield ProfileCheck(field, "undecided", f"{folder}: the path is known only inside a job")
        elif exists is None:
            yield ProfileCheck(
                field, "undecided", f"{folder}: toolkit did not search for this folder on {where}"
            )
        else:
            text = folder if exists else f"{folder}: does not exist on {where}"
            yield ProfileCheck(field, "holds" if exists else "differs", text)


def _of_network(site: Site, host: HostFacts) -> Iterator[ProfileCheck]:
    if not site.network:
        return
    if host.compute_nodes is None or host.interfaces is None:
        yield ProfileCheck("network", "undecided", f"{site.network}: toolkit did not probe a compute node")
        return
    exists = site.network in host.interfaces
    text = (
        site.network
        if exists
        else f"{site.network}: compute nodes have {' '.join(host.interfaces) or 'none'}"
    )
    yield ProfileCheck("network", "holds" if exists else "differs", text)


def _of_container(site: Site, host: HostFacts, facts: SiteFacts) -> Iterator[ProfileCheck]:
    """Yield the result for the container runtime, for which the probe searched after it loaded the profile's
    modules.
    """
    command, field = site.container.command, "container.command"
    count = len(words(site).commands)
    path = _nth(facts.commands[-count:] if facts.commands else None, 0)
    if path:
        yield ProfileCheck(field, "holds", f"{command}: {path}")
    elif host.runtime and posixpath.basename(host.runtime.path) == posixpath.basename(command):
        yield ProfileCheck(field, "holds", f"{command}: {host.runtime.path}")
    elif path is not None:
        yield ProfileCheck(field, "differs", f"{command}: not found on PATH after loading the modules")
    else:
        yield ProfileCheck(
            field, "undecided", f"{command}: toolkit did not search for the command after loading the modules"
        )


def _of_launch(site: Site, host: HostFacts, facts: SiteFacts) -> Iterator[ProfileCheck]:
    if site.launch.launcher != "srun":
        path = _nth(facts.commands[-1:] if facts.commands else None, 0)
        state: State = "undecided" if path is None else "holds" if path else "differs"
        command = launcher_at(site, "srun").COMMAND
        yield ProfileCheck("launch.launcher", state, f"{command}: {path or 'not found on PATH'}")
    if not site.launch.mpi:
        return
    types = host.slurm.mpi_types if host.slurm else None
    if types is None:
        yield ProfileCheck("launch.mpi", "undecided", f"{site.launch.mpi}: {host.cite('slurm.mpi_types')}")
    else:
        offered = site.launch.mpi in types
        text = site.launch.mpi if offered else f"{site.launch.mpi}: srun offers {' '.join(types)}"
        yield ProfileCheck("launch.mpi", "holds" if offered else "differs", text)


def _of_defaults(site: Site, facts: SiteFacts) -> Iterator[ProfileCheck]:
    usual = site.defaults
    if usual.partition and not site.partitions:
        partition = _partition_by_name(facts, usual.partition)
        yield from _presence("defaults.partition", usual.partition, partition, facts)
    rows = facts.associations
    if usual.account:
        accounts = None if rows is None else tuple(row.account for row in rows)
        yield _member("defaults.account", usual.account, accounts)
    if usual.qos:
        known = None if rows is None else tuple(dict.fromkeys(q for row in rows for q in row.qos))
        yield _member("defaults.qos", usual.qos, known)
    part = _partition_by_name(facts, usual.partition) if usual.partition else None
    wanted = minutes(usual.time) if usual.time else None
    if wanted is not None and part and part.max_time:
        most = minutes(part.max_time)
        fits = most is None or wanted <= most
        text = usual.time if fits else f"{usual.time}: {part.name} allows at most {part.max_time}"
        yield ProfileCheck("defaults.time", "holds" if fits else "differs", text)


def _member(field: str, name: str, names: tuple[str, ...] | None) -> ProfileCheck:
    if not names:
        kind = "QOS" if field.endswith("qos") else "account"
        why = "sacctmgr did not answer" if names is None else f"sacctmgr lists no {kind} for you"
        return ProfileCheck(field, "undecided", f"{name}: {why}")
    exists = name in names
    return ProfileCheck(
        field,
        "holds" if exists else "differs",
        name if exists else f"{name}: Slurm lists only {' '.join(names)} for you",
    )


def _of_partition(path: str, part: Partition, facts: SiteFacts) -> Iterator[ProfileCheck]:
    partition = _partition_by_name(facts, part.name)
    yield from _presence(f"{path}.name", part.name, partition, facts)
    if partition is None:
        return
    for name, value, now in (
        ("max_time", part.max_time, partition.max_time or None),
        ("max_nodes", part.max_nodes, (partition.max_nodes or "no limit") if partition.max_time else None),
        ("nodes", part.nodes, partition.nodes or None),
        ("cores", part.cores, partition.cores or partition.cpus),
        ("threads", part.threads, partition.threads),
        ("memory_mb", part.memory_mb, partition.memory_mb),
        ("gpus", part.gpus, partition.gpus),
        ("gpu", part.gpu, partition.gpu or None),
    ):
        # Do not skip the value 0 of ``gpus``, which means that the nodes have no GPUs.
        if value not in {None, ""}:
            yield _limit(f"{path}.{name}", part.name, value, now)
    for number, feature in enumerate(part.features):
        field = f"{path}.features[{number}]"
        if partition.features is None:
            yield ProfileCheck(
                field, "undecided", f"{part.name}: {feature}: the partition's features are unknown"
            )
        else:
            exists = feature in partition.features
            value = f"{part.name}: {feature}" if exists else f"{part.name}: no node has {feature}"
            yield ProfileCheck(field, "holds" if exists else "differs", value)


def _presence(
    field: str, name: str, partition: PartitionFacts | None, facts: SiteFacts
) -> Iterator[ProfileCheck]:
    if facts.partitions is None:
        yield ProfileCheck(field, "undecided", f"{name}: sinfo did not answer")
    elif partition is None:
        known = " ".join(part.name for part in facts.partitions)
        yield ProfileCheck(field, "differs", f"{name}: unknown partition; partitions: {known}")
    else:
        yield ProfileCheck(
            field,
            "holds" if partition.up else "differs",
            name if partition.up else f"{name}: the partition is down",
        )


def _limit(field: str, part: str, value: str | int, cluster_value: str | int | None) -> ProfileCheck:
    """Return the result for one limit of a partition; two notations of the same time limit count as equal."""
    if cluster_value is None:
        return ProfileCheck(field, "undecided", f"{part}: {value}: the cluster's value is unknown")
    same = value == cluster_value
    if isinstance(value, str) and isinstance(cluster_value, str) and field.endswith("max_time"):
        same = minutes(value) == minutes(cluster_value)
    name = field.rpartition(".")[2].replace("_", " ")
    return ProfileCheck(
        field,
        "holds" if same else "differs",
        f"{part}: {name} {value}" + ("" if same else f"; the cluster has {cluster_value}"),
    )


def _partition_by_name(facts: SiteFacts, name: str) -> PartitionFacts | None:
    return next((part for part in facts.partitions or () if part.name == name), None)


def _nth(row: tuple[str, ...] | tuple[bool, ...] | None, number: int) -> str | bool | None:
    return row[number] if row is not None and number < len(row) else None
