"""Mark facts as unknown if an image's files do not determine them.

For example, an image may have two MPIs, and no program in it loads either of them. Or a start script computes
the value of LD_LIBRARY_PATH.
"""

import msgspec

from toolkit.image.loader.loader import Loader
from toolkit.image.loader.search import SearchFolders
from toolkit.image.software import wireup
from toolkit.image.software.evidence_log import ImageEvidence
from toolkit.image.software.mpi import MpiFound, find_mpis
from toolkit.image.software.programs import of_system, static
from toolkit.model.facts import ImageFacts

_OF_MPI = frozenset(("mpi", "other_mpis", "pmix", "pmix_components", "pmix_plugins"))
_LEADING = frozenset(("LD_LIBRARY_PATH", "PATH"))
_OF_PMIX = ("pmix", "pmix_components", "pmix_plugins")
_ON_PATH = ("mpirun", "mpi.launcher", "ssh", "python")
"""The facts that depend on PATH."""


def why_mpi_unknown(
    loader: Loader, mpis: tuple[MpiFound, ...], programs: dict[str, str], undecided: dict[str, str]
) -> str | None:
    """Return why the MPI that programs load is unknown, or None if it is known.

    ``programs`` maps each program to the path of its MPI. ``undecided`` has the environment variables whose
    values toolkit does not know, each with the reason. The function ignores MPIs that are statically linked
    into programs.
    """
    kinds = sorted({mpi_entry.mpi.implementation for mpi_entry in mpis})
    if (
        len(kinds) > 1
        and not any(programs.values())
        and (undecided.keys() & _LEADING or not _is_led(loader, mpis))
    ):
        return f"the image has {' and '.join(kinds)}, and no program in the image shows which one is loaded"
    alike = [mpi_entry.mpi.library for mpi_entry in mpis if mpi_entry.mpi.soname == mpis[0].mpi.soname]
    if why := undecided.get("LD_LIBRARY_PATH"):
        return f"the MPI may be any of {', '.join(alike)}: {why}" if len(alike) > 1 else None
    return None


def _is_led(loader: Loader, mpis: tuple[MpiFound, ...]) -> bool:
    """Return whether the image's variables select the first MPI in ``mpis``.

    This is true if LD_LIBRARY_PATH contains the folder of this MPI's library, and ``mpirun`` on PATH belongs
    to this MPI. In addition, ld.so must not find an MPI of a different implementation.
    """
    first, *alternatives = (mpi_entry.mpi for mpi_entry in mpis)
    reached = {
        loader.real_path(path) for mpi_entry in mpis if (path := loader.find(mpi_entry.mpi.soname or ""))
    }
    launcher = loader.program("mpirun")
    return (
        any(loader.real_path(f"{folder}/{first.soname}") == first.library for folder in loader.library_path)
        and not any(o.library in reached for o in alternatives if o.implementation != first.implementation)
        and launcher is not None
        and loader.real_path(launcher) == first.launcher
    )


def withhold(facts: ImageFacts, mpis: tuple[MpiFound, ...], reason: str, log: ImageEvidence) -> ImageFacts:
    """Change the facts ``mpi`` and ``pmix`` to unknown, with ``reason`` as the reason, and return the changed
    facts.

    All MPIs of the image are then in ``other_mpis``.
    """
    for texts in (log.evidence, log.absent, log.unknown):
        for name in [name for name in texts if name.partition(".")[0] in _OF_MPI]:
            del texts[name]
    other_mpis = wireup.other_mpis((*mpis[:1], *mpis), log)
    log.unknown |= dict.fromkeys(sorted(_OF_MPI - {"other_mpis"}), reason)
    return msgspec.structs.replace(
        facts, mpi=None, other_mpis=other_mpis, pmix=None, pmix_components={}, pmix_plugins=None
    )


def doubt(facts: ImageFacts, undecided: dict[str, str], log: ImageEvidence) -> ImageFacts:
    """Change facts to unknown if they depend on PATH or LD_LIBRARY_PATH and the value of this variable is
    unknown. Return the changed facts.

    If PATH is unknown, facts such as ``mpirun`` change from absent to unknown. If LD_LIBRARY_PATH is unknown,
    facts about libraries that toolkit does not find change to unknown. ``undecided`` has the environment
    variables whose values toolkit does not know, each with the reason.
    """
    if why := undecided.get("PATH"):
        for name in _ON_PATH:
            if name in log.absent:
                log.unknown[name] = f"{log.absent.pop(name)}; but {why}"
    if why := undecided.get("LD_LIBRARY_PATH"):
        if not all(facts.programs.values()):
            log.unknown["programs"] = f"{log.evidence.pop('programs')}; but {why}"
        if facts.mpi and facts.mpi.lacks:
            log.unknown["mpi.lacks"] = f"{log.evidence.pop('mpi.lacks')}; but {why}"
        return _interfaces(facts, why, log)
    return facts


def _interfaces(facts: ImageFacts, reason: str, log: ImageEvidence) -> ImageFacts:
    """Change the launch interfaces to unknown if some plugins need a library that toolkit does not find.

    LD_LIBRARY_PATH may contain a folder with this library, but the value of LD_LIBRARY_PATH is unknown.
    ``reason`` says why the value is unknown. If toolkit found PMIx, the launch interfaces stay known.
    """
    mpi = facts.mpi
    if mpi is None or mpi.interfaces is None or "pmix" in mpi.interfaces:
        return facts
    line = log.evidence["mpi.interfaces"]
    if "not loadable" not in line:
        return facts
    for texts in (log.evidence, log.absent, log.unknown):
        for name in ("mpi.interfaces", *_OF_PMIX):
            texts.pop(name, None)
    log.unknown |= dict.fromkeys(("mpi.interfaces", *_OF_PMIX), f"{line}; but {reason}")
    return msgspec.structs.replace(facts, mpi=msgspec.structs.replace(mpi, interfaces=None, how={}))


def find_decided_mpis(
    loader: Loader,
    packages: dict[str, str],
    places: SearchFolders,
    programs: dict[str, str],
    undecided: dict[str, str],
) -> tuple[tuple[MpiFound, ...], dict[str, str]]:
    """Return the MPIs of an image, and the MPI that each program loads.

    If ``programs`` do not show which MPI is loaded, toolkit also reads the programs in folders such as
    /usr/bin. ``undecided`` has the environment variables whose values toolkit does not know, each with the
    reason.
    """
    mpis = find_mpis(loader, packages, places, programs)
    if why_mpi_unknown(loader, mpis, programs, undecided) and (more := of_system(loader)):
        programs = {**programs, **more}
        mpis = find_mpis(loader, packages, places, programs)
    return mpis, programs


def why_undecided(
    loader: Loader,
    places: SearchFolders,
    entrypoint: tuple[str, ...],
    mpis: tuple[MpiFound, ...],
    programs: dict[str, str],
    undecided: dict[str, str],
) -> str | None:
    """Return why the MPI that programs load is unknown, or None if it is known.

    Unlike :func:`why_mpi_unknown`, the function also looks for an MPI that is statically linked into a
    program.
    """
    why = why_mpi_unknown(loader, mpis, programs, undecided)
    if why or any(programs.values()):
        return why
    inside = static(loader, places, entrypoint, programs)
    return "{} contains a statically linked {}, which toolkit cannot read".format(*inside) if inside else None
