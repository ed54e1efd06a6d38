"""A rule about faults that public reports describe."""

from toolkit.engine.case import Case
from toolkit.engine.reports import matching_reports
from toolkit.engine.rule import MPI_MODES, Hit, rule
from toolkit.engine.settings_in_force import setting_value
from toolkit.engine.wireup import interface_in_use, offer, options
from toolkit.knowledge.reported import Reported, reported_faults

_SOURCE = "recipes/knowledge/reported.toml"


@rule(
    "reported-fault",
    "Public reports describe a fault that affects this launch",
    severity="error",
    fix="use a release of the affected software that does not have the reported fault",
    instead=MPI_MODES,
    source=_SOURCE,
    facts=(
        *dict.fromkeys(name for row in reported_faults() for name in row.facts),
        *("host.runtime", "host.runtime.setuid", "host.runtime.settings", "host.distribution"),
        *("host.mpis", "host.infiniband", "image.mpi", "image.mpi.version", "image.mpi.device"),
        "image.libfabric_providers",
        *("host.fabrics", "host.amd_gpus", "image.nccl_ofi", "image.pytorch"),
    ),
    modes=(*MPI_MODES, "torch"),
)
def reported_fault(case: Case) -> Hit | None:
    """Some faults appear only on hosts that toolkit's developers cannot use: hosts with many ranks on a node,
    old releases of Slurm, or special network cards. A row of ``reported.toml`` lists the conditions in a
    public report of such a fault. toolkit reports the fault only if all conditions are true.
    """
    if case.request.has_one_rank:
        return None
    found = offer(case)
    by = interface_in_use(case, found) if found else ""
    for row, unknown in matching_reports(case.host_facts, case.image_facts, case.request, case.mode, by):
        if any(_is_set(case, name) for name in row.lifted_by):
            continue
        if not all(_is_set(case, name) for name in row.variables):
            continue
        if row.options and not options(case, set(row.options)):
            continue
        case.ask(*unknown, failed_only=True)
        if unknown:
            continue  # facts files of earlier toolkit releases may lack these facts
        evidence = case.cite(*_evidence(row))
        return Hit(evidence, row.outcome, row.title, row.title, row.fix, row.source, by_chance=row.by_chance)
    return None


def _is_set(case: Case, name: str) -> bool:
    given = {**case.image_facts.environment, **case.plan.env}
    return name in given or setting_value(case, name) is not None


def _evidence(row: Reported) -> tuple[str, ...]:
    asked = {"host.runtime": row.runtime, "host.mpis": row.launcher}
    return ("image.mpi", *row.facts, *(name for name, wanted in asked.items() if wanted))
