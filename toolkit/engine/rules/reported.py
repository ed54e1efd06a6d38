"""A rule about faults that public reports describe."""

from toolkit.engine.case import Case
from toolkit.engine.reports import met
from toolkit.engine.rule import MPI_MODES, Hit, rule
from toolkit.engine.settings import value_in_force
from toolkit.engine.wireup import offer, options, served

_SOURCE = "recipes/knowledge/reported.toml"


@rule(
    "reported-fault",
    "Public reports describe a fault of these releases that shows here",
    severity="error",
    fix="use another release",
    instead=MPI_MODES,
    source=_SOURCE,
    facts=(
        *("host.slurm.version", "host.pmix", "host.runtime", "host.mpis", "host.infiniband"),
        *("image.mpi", "image.mpi.version", "image.mpi.device", "image.pmix"),
        *("image.libfabric_version", "image.libfabric_providers"),
        *("host.fabrics", "host.amd_gpus", "image.nccl_ofi", "image.pytorch"),
    ),
    modes=(*MPI_MODES, "torch"),
)
def reported_fault(case: Case) -> Hit | None:
    """Some faults need hosts that the project cannot build: many ranks on a node, old releases of Slurm and
    Singularity, cards. A row holds the conditions of the reports; it decides only where all of them hold.
    """
    if case.request.alone:
        return None
    found = offer(case)
    by = served(case, found) if found else ""
    for row, unknown in met(case.host_facts, case.image_facts, case.request, case.mode, by):
        if any(_is_set(case, name) for name in row.lifted_by):
            continue
        if not all(_is_set(case, name) for name in row.variables):
            continue
        if row.options and not options(case, set(row.options)):
            continue
        case.ask(*unknown, failed_only=True)
        if unknown:
            continue  # facts of an earlier release, which did not ask
        evidence = case.cite(*_evidence(row.slurm, row.runtime, row.launcher))
        return Hit(evidence, row.outcome, row.title, row.title, row.fix, row.source, by_chance=row.by_chance)
    return None


def _is_set(case: Case, name: str) -> bool:
    given = {**case.image_facts.environment, **case.plan.env}
    return name in given or value_in_force(case, name) is not None


def _evidence(slurm: str, runtime: str, launcher: tuple[str, ...]) -> tuple[str, ...]:
    asked = {"host.slurm.version": slurm, "host.runtime": runtime, "host.mpis": launcher}
    return ("image.mpi", *(name for name, wanted in asked.items() if wanted))
