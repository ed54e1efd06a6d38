"""Which MPI of the image is loaded where a launch gives the loader other folders to search; pure."""

import msgspec

from toolkit.model.facts import ImageFacts, ImageMpi
from toolkit.model.prediction import Plan

_OF_PMIX = ("pmix", "pmix_components")


def searched(image: ImageFacts, plan: Plan) -> ImageFacts:
    """Return the image as its programs find it with the LD_LIBRARY_PATH of the plan in place of its own.

    An MPI that only the image's own LD_LIBRARY_PATH names is not found where a launch sets another; what
    programs load then is another MPI of the image, or none.
    """
    asked = plan.env.get("LD_LIBRARY_PATH")
    if asked is None or image.mpi is None or not image.programs_otherwise:
        return image
    own = image.environment.get("LD_LIBRARY_PATH", "").split(":")
    if set(filter(None, own)) & set(asked.split(":")):
        return image
    programs = {**image.programs, **image.programs_otherwise}
    changed = msgspec.structs.replace(image, programs=programs, programs_otherwise={})
    other = _other(image, programs)
    if other is None or other.library == image.mpi.library:
        return changed
    line = f"{other.library}: loaded where LD_LIBRARY_PATH is {asked}"
    told = {n: v for n, v in image.unknown.items() if n.partition(".")[0] not in {"mpi", *_OF_PMIX}}
    kept = {n: v for n, v in image.absent.items() if n.partition(".")[0] not in {"mpi", *_OF_PMIX}}
    speaks = "pmix" in (other.interfaces or ())
    why = {"pmix": f"{line}; of which release its PMIx is could not be told"} if speaks else {}
    return msgspec.structs.replace(
        changed,
        mpi=other,
        pmix=other.pmix,
        pmix_components={},
        unknown=told if other.pmix else {**told, **why},
        absent=kept if speaks else {**kept, "pmix": f"{line}: it has no PMIx client"},
        evidence={**image.evidence, "mpi": line, "pmix": line},
    )


def _other(image: ImageFacts, programs: dict[str, str]) -> ImageMpi | None:
    """Return the MPI that programs load then, if they agree on one that was described."""
    loaded = set(programs.values())
    known = {mpi.library: mpi for mpi in (*((image.mpi,) if image.mpi else ()), *image.other_mpis)}
    return known.get(loaded.pop()) if len(loaded) == 1 else None
