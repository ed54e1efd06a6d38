"""Programs of an image that load different MPIs; pure."""

from toolkit.model.facts import ImageFacts, ImageMpi
from toolkit.versions import parse


def families(image: ImageFacts) -> tuple[tuple[ImageMpi, tuple[str, ...]], ...]:
    """Return each MPI that programs of an image load with its programs, if they start in different ways.

    Two MPIs start alike if they are of one implementation and major release and speak the same interfaces.
    Empty if a command says which program runs, or all programs start alike.
    """
    if image.program is not None:
        return ()
    known = {mpi.library: mpi for mpi in (*((image.mpi,) if image.mpi else ()), *image.other_mpis)}
    found: dict[tuple[object, ...], tuple[ImageMpi, list[str]]] = {}
    for program, library in image.programs.items():
        if mpi := known.get(library):
            found.setdefault(_kind(mpi), (mpi, []))[1].append(program)
    return tuple((mpi, tuple(users)) for mpi, users in found.values()) if len(found) > 1 else ()


def _kind(mpi: ImageMpi) -> tuple[object, ...]:
    release = parse(mpi.version or "")
    return mpi.implementation, mpi.interfaces, release.major if release else mpi.version
