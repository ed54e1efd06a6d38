"""Find publicly reported faults that match a launch. Each condition of a reported fault is true, is false, or
depends on an unknown fact.
"""

from collections.abc import Iterator

from toolkit import knowledge
from toolkit.engine.traits import host_launcher
from toolkit.knowledge.reported import Reported, reported_faults
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Mode, Request
from toolkit.versions import is_rounded, within

ConditionState = bool | str
"""The state of a condition: ``True``, ``False``, or the dotted name of the unknown fact on which the
condition depends.
"""


def matching_reports(
    host: HostFacts, image: ImageFacts, request: Request, mode: Mode, interface: str | None = None
) -> Iterator[tuple[Reported, tuple[str, ...]]]:
    """Yield each reported fault (a row of ``reported.toml``) that has no false condition. With each fault,
    yield the names of the unknown facts on which the fault's conditions depend.

    Args:
        host: the facts of the host.
        image: the facts of the image; ``image.mpi`` is the MPI that programs load.
        request: the job, with its numbers of nodes and ranks.
        mode: the launch mode.
        interface: the interface through which ranks find each other; ``None`` matches every interface.
    """
    for row in reported_faults():
        if not _fits(row, image, request, mode, interface):
            continue
        held = [*_of_versions(row, host, image), *_of_host(row, host), *_of_image(row, image)]
        if False not in held:
            yield row, tuple(dict.fromkeys(name for name in held if isinstance(name, str)))


def _fits(row: Reported, image: ImageFacts, request: Request, mode: Mode, interface: str | None) -> bool:
    mpi = image.mpi
    return (
        (not row.modes or mode in row.modes)
        and (not row.formats or image.format in row.formats)
        and knowledge.counts(row.nodes, request.nodes)
        and request.ranks_per_node >= row.ranks_per_node
        and (not row.served_by or interface is None or interface == row.served_by)
        and not (row.implementation and mpi and mpi.implementation not in row.implementation)
    )


def _within_bounds(version: str | None, bounds: str, name: str, *, absent: bool) -> ConditionState:
    if not bounds:
        return True
    if not version:
        return not absent and name
    return name if is_rounded(version, bounds) else within(version, bounds)


def _of_versions(row: Reported, host: HostFacts, image: ImageFacts) -> Iterator[ConditionState]:
    """Yield the state of each condition about a version. The condition is true if the version is within the
    bounds that the row of ``reported.toml`` gives.
    """
    for name, bounds in row.facts.items():
        side, _, dotted = name.partition(".")
        facts = host if side == "host" else image
        first, _, inner = dotted.partition(".")
        value = getattr(facts, first)
        version = getattr(value, inner, None) if inner else value
        yield _within_bounds(version, bounds, name, absent=first in facts.absent)


def _of_host(row: Reported, host: HostFacts) -> Iterator[ConditionState]:
    if row.distribution:
        known = host.distribution is not None
        yield (host.distribution or "").startswith(row.distribution) if known else "host.distribution"
    yield from _of_runtime(row, host)
    yield from _of_launcher(row, host)
    if row.lifted_by_host:
        yield not set(row.lifted_by_host) & set(host.environment)
    if row.card is False:
        yield not host.infiniband if host.infiniband is not None else "host.infiniband"
    if row.fabric:
        has = row.fabric.removeprefix("!") in (host.fabrics or ())
        yield has != row.fabric.startswith("!") if host.fabrics is not None else "host.fabrics"
    if row.gpus:
        yield bool(host.amd_gpus) if host.amd_gpus is not None else "host.amd_gpus"
    if row.scheduler:
        yield row.scheduler in (host.schedulers or ())


def _of_runtime(row: Reported, host: HostFacts) -> Iterator[ConditionState]:
    found, absent = host.runtime, "runtime" in host.absent
    name, _, bounds = row.runtime.partition(" ")
    if name and found:
        yield found.name == name
    yield _within_bounds(found.version if found else None, bounds, "host.runtime", absent=absent)
    if row.setuid is not None:
        yield found.setuid == row.setuid if found and found.setuid is not None else "host.runtime.setuid"
    given = found.settings if found else {}
    for setting, wanted in row.setting.items():
        yield given[setting] == wanted if setting in given else "host.runtime.settings"


def _of_launcher(row: Reported, host: HostFacts) -> Iterator[ConditionState]:
    if row.launcher:
        mpi = host_launcher(host)
        yield mpi.implementation in row.launcher if mpi else host.mpis is None and "host.mpis"
        yield _within_bounds(mpi.version if mpi else None, row.launcher_versions, "host.mpis", absent=False)


def _of_image(row: Reported, image: ImageFacts) -> Iterator[ConditionState]:
    mpi = image.mpi
    if mpi is None and (row.implementation or row.versions or row.device):
        yield "mpi" not in image.absent and "image.mpi"
        return
    version = mpi.version if mpi else None
    yield _within_bounds(version, row.versions, "image.mpi.version", absent=False)
    if row.device:
        yield mpi.device.startswith(row.device) if mpi and mpi.device else "image.mpi.device"
    if row.provider:
        there = image.libfabric_providers
        absent = "libfabric_providers" in image.absent
        yield row.provider in there if there is not None else (not absent and "image.libfabric_providers")
    if row.rocm:
        local = (image.pytorch or "").partition("+rocm")[2]
        unknown = image.pytorch is None and "pytorch" not in image.absent
        yield "image.pytorch" if unknown else bool(local) and within(local, row.rocm)
    if row.plugin:
        absent = "nccl_ofi" in image.absent
        yield image.nccl_ofi is not None or (not absent and "image.nccl_ofi")
