"""Which MPI of the image is loaded where a launch gives the loader other folders to search; pure."""

import posixpath

import msgspec

from toolkit.engine.inherited import name_inside, obeyed
from toolkit.engine.traits import has_option
from toolkit.folders import is_system
from toolkit.model.facts import HostFacts, ImageFacts, ImageMpi
from toolkit.model.prediction import Plan

_OF_PMIX = ("pmix", "pmix_components", "pmix_plugins")


def forced_paths(host: HostFacts) -> tuple[str, ...]:
    """Return what the runtime sets inside, in place of what the image says; of two the first counts."""
    named = (name for name in sorted(host.environment) if name_inside(name) == "LD_LIBRARY_PATH")
    return tuple(name for name in named if name.startswith(obeyed(host)))


def path_given(host: HostFacts, plan: Plan) -> str | None:
    """Return the LD_LIBRARY_PATH that a launch sets inside, ``None`` where it sets none.

    Empty where a variable of the host sets one and nobody told to what.
    """
    asked = plan.env.get("LD_LIBRARY_PATH")
    forced = (name for name in forced_paths(host) if name not in plan.unset)
    return asked if asked is not None else next((host.environment[n] for n in forced), None)


def searched(host: HostFacts, image: ImageFacts, plan: Plan) -> ImageFacts:
    """Return the image as its programs find it with the LD_LIBRARY_PATH of the launch in place of its own.

    An MPI that only the image's own LD_LIBRARY_PATH names is not found where a launch sets another; what
    programs load then is another MPI of the image, or none.
    """
    asked = path_given(host, plan)
    if asked is None and _distribution_first(host, image, plan):
        return not_told(image, "the runtime has the loader look into the distribution's folders first")
    if asked is None or image.mpi is None or not image.programs_otherwise:
        return image
    if not asked and "LD_LIBRARY_PATH" not in plan.env:
        line = "it depends on LD_LIBRARY_PATH, which a variable of the host sets to what was not told"
        return not_told(image, line)
    folders = asked.split(":")
    if posixpath.dirname(image.mpi.library) in folders:
        return image
    programs = {**image.programs, **image.programs_otherwise}
    named = [
        m
        for m in image.other_mpis
        if posixpath.dirname(m.library) in folders and m.soname == image.mpi.soname
    ]
    if named:
        programs = {**programs, **dict.fromkeys(image.programs_otherwise, named[0].library)}
    changed = msgspec.structs.replace(image, programs=programs, programs_otherwise={})
    other = _other(image, programs)
    if other is None or other.library == image.mpi.library:
        return changed
    line = f"{other.library}: loaded where LD_LIBRARY_PATH is {asked}"
    evidence, absent, unknown = (
        _of_other(book, image.other_mpis.index(other))
        for book in (image.evidence, image.absent, image.unknown)
    )
    if other.pmix is None and "pmix" in (other.interfaces or ()):
        unknown["pmix"] = f"{line}; of which release its PMIx is could not be told"
    elif other.pmix is None:
        absent["pmix"] = f"{line}: it has no PMIx client"
    unknown |= dict.fromkeys(_OF_PMIX[1:], f"{line}: the components of its PMIx were not asked")
    return msgspec.structs.replace(
        changed,
        mpi=other,
        pmix=other.pmix,
        pmix_components={},
        pmix_plugins=None,
        evidence={**evidence, "mpi": line, "pmix": line},
        absent=absent,
        unknown=unknown,
    )


def _of_other(book: dict[str, str], number: int) -> dict[str, str]:
    """Put what was said of another MPI in the place of what was said of the first one."""
    place = f"other_mpis.{number}"
    own = {
        name.replace(place, "mpi", 1): line
        for name, line in book.items()
        if f"{name}.".startswith(f"{place}.")
    }
    kept = {name: line for name, line in book.items() if name.partition(".")[0] not in {"mpi", *_OF_PMIX}}
    return {**kept, **own}


def _distribution_first(host: HostFacts, image: ImageFacts, plan: Plan) -> bool:
    """Tell whether an MPI of the distribution may be loaded in place of one that programs name themselves.

    Apptainer from 1.5 on sets LD_LIBRARY_PATH to the folders of the distribution where GPUs are asked for and
    the image sets none; it comes before DT_RUNPATH, and not before DT_RPATH (ld.so(8)), which is not told.
    """
    mpi = image.mpi
    if mpi is None or "--nv" not in plan.container:
        return False
    if "LD_LIBRARY_PATH" in image.environment or is_system(posixpath.dirname(mpi.library)):
        return False
    if not has_option(host, "--nv behind the image's own"):
        return False
    namesakes = (m for m in image.other_mpis if m.soname and m.soname == mpi.soname)
    return any(is_system(posixpath.dirname(m.library)) for m in namesakes)


def not_told(image: ImageFacts, line: str) -> ImageFacts:
    """Return the image with everything about its MPI unknown; ``line`` says why."""
    gone = dict.fromkeys(("mpi", *_OF_PMIX), line)
    return msgspec.structs.replace(
        image, mpi=None, pmix=None, pmix_components={}, pmix_plugins=None, unknown={**image.unknown, **gone}
    )


def _other(image: ImageFacts, programs: dict[str, str]) -> ImageMpi | None:
    """Return the MPI that programs load then, if they agree on one that was described."""
    loaded = set(programs.values())
    known = {mpi.library: mpi for mpi in (*((image.mpi,) if image.mpi else ()), *image.other_mpis)}
    return known.get(loaded.pop()) if len(loaded) == 1 else None
