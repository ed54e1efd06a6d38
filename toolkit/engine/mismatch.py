"""Predict how a rank starts if the rank's MPI cannot use the launcher's interface, such as PMIx or PMI-2. The
rules about launchers use this module.
"""

from collections.abc import Iterator
from dataclasses import replace

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, LaunchStage
from toolkit.engine.settings import fails_before_launcher
from toolkit.engine.traits import (
    PROCESSOR,
    amd_unthreaded,
)
from toolkit.engine.wireup import (
    clearing_options,
    in_step,
    sees_allocation,
)
from toolkit.engine.words import mpi_name
from toolkit.knowledge.mpi import Mismatch
from toolkit.knowledge.pmix import Pair
from toolkit.model.mpifacts import ImageMpi

LAUNCHERLESS_FACTS = ("image.ssh", "host.munge", "image.mpirun", *PROCESSOR)
"""Facts that decide how some MPI libraries behave if they find no launcher."""

_SECURITY = "PMIX_SECURITY_MODE"
"""The variable in which a PMIx server lists security modules; clients try the modules in the order of the
list.
"""


def find_mismatches(mpi: ImageMpi, interface: str, *, step: bool = True) -> Iterator[Mismatch]:
    """Yield the rows of ``mpi.toml`` for an MPI that detects the launch interface ``interface`` but cannot
    use this interface. ``step`` says whether the MPI detects a Slurm step.
    """
    for row in knowledge.mpi().mismatch:
        told = row.sees in {"", interface} and row.step in {None, step}
        built = row.speaks in {"", *(mpi.interfaces or ())}
        if row.of(mpi) and told and built and (not row.marker or row.marker in mpi.markers):
            yield row


def judge_unanswered(case: Case, mpi: ImageMpi, interface: str, *names: str, step: bool | None = None) -> Hit:
    """Return the finding about an MPI that supports none of the interfaces that the launcher offers.

    ``interface`` is the interface that the MPI detects. ``step`` says whether the MPI detects a Slurm step;
    if ``step`` is ``None``, the function derives the answer from the launch. ``names`` are the names of facts
    that the finding cites.
    """
    asked: tuple[str, ...] = names
    there = {
        "image.ssh": case.image_facts.ssh is not None,
        "image.mpirun": case.image_facts.mpirun is not None,
        "host.munge": case.host_facts.munge,
        "host.cpu_threads": amd_unthreaded(case.host_facts),
    }
    named = _munge_named(case)
    told = {} if named is None else {"host.munge": named}
    for row in find_mismatches(mpi, interface, step=in_step(case) if step is None else step):
        wanted = {
            "image.ssh": row.ssh,
            "image.mpirun": row.mpiexec,
            "host.munge": row.munge,
            "host.cpu_threads": row.amd_unthreaded,
        }
        decides = {name: value for name, value in wanted.items() if value is not None}
        if row.allocation not in {None, sees_allocation(case)}:
            continue
        sooner = row.first and fails_before_launcher(case)
        if sooner or any(decides.get(name, value) != value for name, value in told.items()):
            continue
        decides = {name: value for name, value in decides.items() if name not in told}
        asked = (*asked, *(name for name in decides if name not in asked))
        facts = (PROCESSOR if name in PROCESSOR else (name,) for name in decides)
        case.ask(*(fact for of in facts for fact in of))
        if all(there[name] == value for name, value in decides.items()):
            evidence = case.cite("image.mpi", *asked)
            return Hit(
                evidence,
                row.outcome,
                row.because,
                source=row.source,
                stage=LaunchStage.START if row.first else None,
                by_chance=row.by_chance,
            )
    because = f"toolkit's developers have not tested {mpi_name(mpi)} without a compatible launcher"
    return Hit(case.cite("image.mpi", *asked), "unknown", because)


def _munge_named(case: Case) -> bool | None:
    """Return whether the launch makes ranks prove their identity with munge, Slurm's authentication service;
    ``None`` if the launch leaves this choice to the PMIx server.
    """
    if clearing_options(case):
        return False
    named = case.plan.env.get(_SECURITY)
    return None if named is None else "munge" in named.split(",")


def judge_client(case: Case, mpi: ImageMpi, pair: Pair, *names: str) -> Hit:
    """Return the finding about an MPI whose PMIx client does not find the launcher's PMIx server, or is not
    compatible with this server.
    """
    if pair.found or next(find_mismatches(mpi, "pmix"), None) is None:
        return Hit(case.cite(*names), pair.outcome, pair.because, source=pair.source)
    said = judge_unanswered(case, mpi, "pmix", *names)
    return replace(said, because=f"{pair.because}; {said.because}")


def judge_filtered(case: Case) -> Hit | None:
    """Return a hit with the outcome ``unknown`` if the command starts a script that passes only some of its
    environment variables to another program; otherwise, return ``None``.

    toolkit does not know whether the other program gets the launcher's variables.
    """
    program = case.image_facts.program
    if program is None or not program.filters:
        return None
    because = f"{program.filters} starts another program, and may remove the launcher's variables"
    return Hit((f"image: {program.filters} calls os.execve",), "unknown", because)
