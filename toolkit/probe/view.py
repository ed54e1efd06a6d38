"""Combine the facts about the login node and the compute nodes into the facts that toolkit's rules use (pure
functions).
"""

from collections.abc import Mapping

import msgspec

from toolkit.model.facts import HostFacts
from toolkit.probe.group import Group, different_fields
from toolkit.probe.hostlist import fold

_OF_SLURM = (
    "SLURM_MPI_TYPE",
    "OMPI_MCA_plm_slurm_args",
    "PRTE_MCA_plm_slurm_args",
    "HYDRA_BOOTSTRAP",
    "HYDRA_LAUNCHER_EXTRA_ARGS",
    "I_MPI_HYDRA_BOOTSTRAP",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
)
"""Variables that Slurm (24.11.5) sets in each job step. On compute nodes, the probe runs in a job step and
reads the values of this step. toolkit uses the login node's values instead, because a job script inherits
them.
"""


_OF_LOGIN = {"slurm", "schedulers"}
"""The fields of :class:`HostFacts` that :func:`view` takes from the login node."""


def view(login: HostFacts, groups: tuple[Group, ...], reason: str = "") -> HostFacts:
    """Return the facts that the rules use about a cluster.

    Facts about Slurm and other schedulers are from the login node. All other facts are from the largest group
    of compute nodes with equal facts, because ranks run on compute nodes. If no compute node answered, all
    facts are from the login node, and ``reason`` says why no compute node answered.
    """
    if not groups:
        return msgspec.structs.replace(login, **_no_node_reasons(login, reason))
    nodes = groups[0].facts
    where = fold(groups[0].nodes)
    return msgspec.structs.replace(
        nodes,
        place=login.place,
        slurm=login.slurm,
        schedulers=login.schedulers,
        environment=_environment(login, nodes),
        compute_nodes=groups[0].nodes,
        differs=different_fields(groups),
        evidence={**_of(login.evidence, slurm=True), **_told_by(where, _of(nodes.evidence, slurm=False))},
        absent={**_of(login.absent, slurm=True), **_told_by(where, _of(nodes.absent, slurm=False))},
        unknown={**_of(login.unknown, slurm=True), **_told_by(where, _of(nodes.unknown, slurm=False))},
    )


def _environment(login: HostFacts, nodes: HostFacts) -> dict[str, str]:
    """Return the environment variables that a job inherits.

    slurmd sets TMPDIR to the folder in Slurm's setting ``TmpFS`` only if the job inherits no TMPDIR. If
    TMPDIR on the compute nodes is this folder, the value may be from slurmd. In this case, the result
    contains the login node's TMPDIR, or no TMPDIR if the login node has none.
    """
    settings = login.slurm.settings if login.slurm else {}
    own = set(_OF_SLURM)
    if nodes.tmpdir is not None and nodes.tmpdir == settings.get("TmpFS"):
        own.add("TMPDIR")
    variables = {name: value for name, value in nodes.environment.items() if name not in own}
    return variables | {name: value for name, value in login.environment.items() if name in own}


def _no_node_reasons(login: HostFacts, reason: str) -> dict[str, dict[str, str]]:
    """Return ``{"absent": VALUE}`` if the login node has no Slurm, otherwise ``{"unknown": VALUE}``.

    VALUE is the field ``absent`` or ``unknown`` of the login node's facts, with a new entry
    ``compute_nodes``, which says why no compute node answered.
    """
    if "slurm" in login.absent:
        return {"absent": {**login.absent, "compute_nodes": login.absent["slurm"]}}
    return {
        "unknown": {
            **login.unknown,
            "compute_nodes": f"compute nodes: {reason or 'the probe contacted no compute node'}",
        }
    }


def _of(book: Mapping[str, str], *, slurm: bool) -> dict[str, str]:
    return {n: line for n, line in book.items() if (n.partition(".")[0] in _OF_LOGIN) == slurm}


def _told_by(nodes: str, book: Mapping[str, str]) -> dict[str, str]:
    return {name: f"{nodes}: {line}" for name, line in book.items()}
