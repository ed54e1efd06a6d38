"""Judge whether an MPI in the image can use a fast network of the host, such as InfiniBand, with the settings
of the launch.
"""

from typing import Literal

from toolkit.engine.case import Case
from toolkit.engine.settings_in_force import setting_value
from toolkit.knowledge.fabric import Fabric, fabric, fabrics_of
from toolkit.knowledge.settings import settings

Way = Literal["open", "shut", "not known"]
"""Whether ranks can use a fast network. ``open``: ranks can use the network. ``shut``: the host has no fast
network, the image has no driver for the network, or a setting disables the network. ``not known``: toolkit
cannot decide.
"""

_TRUE = {"1", "true", "yes", "t", "y", "enabled", "on"}


def networks(case: Case) -> tuple[Fabric, ...]:
    """Return the fast networks of the host; empty if the host has none."""
    case.ask("host.infiniband")
    host = case.host_facts
    return fabrics_of(host.infiniband or (), host.fabrics or (), host.link_layers)


def judge_ucx(case: Case, tls: str = "", devices: str = "") -> Way:
    """Return whether UCX can use a fast network; ``tls`` and ``devices`` are the values of UCX_TLS and
    UCX_NET_DEVICES.
    """
    found = networks(case)
    wanted = {row.ucx for row in found if row.ucx}
    if not wanted:
        return "shut"
    case.ask("image.ucx_transports")
    if not wanted & set(case.image_facts.ucx_transports or ()) or _names_no_device(case, devices):
        return "shut"
    return judge_ucx_tls(tls)


def judge_ucx_layer(case: Case) -> Way:
    """Return ``open`` if Open MPI sends messages through UCX, ``shut`` if Open MPI does not use UCX,
    and ``not known`` if toolkit cannot decide.

    If no setting names a messaging layer (pml), Open MPI chooses UCX on a host with InfiniBand or RoCE
    (open-mpi/ompi:opal/mca/common/ucx).
    """
    mpi, layer = case.image.mpi, setting_value(case, "OMPI_MCA_pml")
    if mpi is None or "ucx" not in (mpi.components or {}).get("pml", ()) or layer not in {None, "ucx"}:
        return "shut"
    if layer == "ucx":
        return "open"
    tls, devices = setting_value(case, "UCX_TLS"), setting_value(case, "UCX_NET_DEVICES")
    return judge_ucx(case, tls or "", devices or "")


def judge_ucx_tls(tls: str) -> Way:
    """Return whether a value of UCX_TLS lets UCX use a fast network between nodes."""
    words, row = {word.strip() for word in tls.split(",") if word.strip()}, settings().ucx
    if not words or tls.startswith("^") or words & {"all", *row.enough}:
        return "open"
    return "shut" if words <= {"tcp", *row.near} else "not known"


def _names_no_device(case: Case, devices: str) -> bool:
    named = {word.strip().partition(":")[0] for word in devices.split(",") if word.strip()}
    return bool(named) and not named & {"all", *(case.host_facts.infiniband or ())}


def judge_libfabric(case: Case, provider: str = "") -> Way:
    """Return whether libfabric can use a provider for a fast network; ``provider`` is the value of
    FI_PROVIDER.
    """
    found = networks(case)
    if not found:
        return "shut"
    case.ask("image.libfabric_providers")
    there = set(case.image_facts.libfabric_providers or ())
    named = {word.strip().partition(";")[0] for word in provider.split(",") if word.strip()}
    left = there & named if named and not provider.startswith("^") else there
    if any(left & set(row.providers) for row in found):
        return "open"
    # A provider that ``fabric.toml`` does not list for this network may work, such as psm3 over RoCE, or
    # Intel's mlx over UCX.
    return "not known" if named and left else "shut"


def judge_mtl(case: Case, provider: str = "") -> Way:
    """Return whether Open MPI's messaging layer pml/cm has a transport (mtl) for a fast network; ``provider``
    is the value of FI_PROVIDER.
    """
    found = networks(case)
    mpi = case.image_facts.mpi
    there = set(mpi.components.get("mtl", ())) if mpi else set()
    if any(there & set(row.mtl) for row in found):
        return "open"
    return judge_libfabric(case, provider) if found and "ofi" in there else "shut"


def judge_openib(case: Case, value: str = "") -> Way:
    """Return whether Open MPI's InfiniBand transport btl/openib uses a fast network; ``value`` is the value
    of the setting btl_openib_allow_ib.
    """
    found = networks(case)
    taken = [row for row in found if "openib" in row.btl]
    if not taken:
        return "shut"
    version = (case.image_facts.mpi.version if case.image_facts.mpi else None) or ""
    unasked = any(fabric().openib.serves(row, version) for row in taken)
    return "open" if unasked or value.lower() in _TRUE else "not known"
