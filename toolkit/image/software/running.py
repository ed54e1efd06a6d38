"""Find the program that a rank runs in an image, the program's MPI, and the files that mounts hide."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.image.files.bounded import BoundedTree, Budget
from toolkit.image.files.tree import FileTree
from toolkit.image.loader.loader import Loader
from toolkit.image.loader.search import SearchFolders
from toolkit.image.loader.search import places as walk
from toolkit.image.software.command import StartedProgram, resolve_command
from toolkit.image.software.evidence_log import ImageEvidence
from toolkit.image.software.programs import behind_mounts, loaded_mpis, named_mpi, of_command, of_wrappers
from toolkit.model.facts import ImageProgram
from toolkit.model.rank import RankView


@dataclass(frozen=True, slots=True)
class RankPrograms:
    """The program that a rank runs, and the files through which the program loads an MPI, such as Python
    extensions.

    ``programs`` maps each of these files to the path of its MPI. If toolkit does not know how the program
    loads an MPI, ``programs`` has all files of the image that load an MPI. ``loader`` finds libraries like
    ld.so. ``loader.environment`` has the program's variables, or the image's variables if ``programs`` has
    all files.

    ``program`` is None if the rank has no command, or if toolkit cannot find the command's program.
    The keys of ``hidden`` are the programs and MPIs that mounts hide. Each value is the folder of the image
    over which the runtime mounts a host folder.
    """

    loader: Loader
    programs: dict[str, str]
    program: ImageProgram | None = None
    hidden: dict[str, str] = field(default_factory=dict)
    undecided: Mapping[str, str] = field(default_factory=dict)
    """For each environment variable that a wrapper script sets to an unknown value, why toolkit does not know
    the value.
    """


def find_rank_programs(
    loader: Loader,
    places: SearchFolders,
    entrypoint: tuple[str, ...],
    view: RankView,
    image_tree: FileTree,
    budget: Budget,
    log: ImageEvidence,
) -> RankPrograms:
    """Return the program that a rank runs, and record its evidence in ``log``.

    If toolkit cannot determine which MPI the program loads, the result has all programs of the image that
    load an MPI. ``view`` has the rank's command and the hidden folders. ``image_tree`` has all files of the
    image, including hidden files.
    """
    hidden = _hidden(loader, image_tree, budget, view)
    if not view.command:
        log.absent["program"] = "the request names no command"
        programs = loaded_mpis(loader, places, entrypoint)
        programs |= of_wrappers(loader, places, programs)
        return RankPrograms(loader, programs, hidden=hidden)
    started = resolve_command(loader, view.command, view.script)
    own = loader
    if started.environment != loader.environment:
        own = Loader(loader.tree, dict(started.environment))
    loaded = of_command(own, places, started)
    shown = _program_of(view, started, loaded, own)
    if shown is None:
        log.unknown["program"] = started.reason
        return RankPrograms(loader, loaded_mpis(loader, places, entrypoint), hidden=hidden)
    log.evidence["program"] = f"{' '.join(view.command[:4])}: {' starts '.join(started.chain)}"
    if loaded is None:
        return RankPrograms(loader, loaded_mpis(loader, places, entrypoint), shown, hidden)
    return RankPrograms(own, loaded, shown, hidden, started.undecided)


def _program_of(
    view: RankView, program: StartedProgram, mpi_paths: dict[str, str] | None, loader: Loader
) -> ImageProgram | None:
    if program.reason:
        return None
    return ImageProgram(
        command=view.command,
        path=program.path,
        chain=program.chain,
        python=program.path if program.python else "",
        mpi=mpi_paths is not None,
        needs=named_mpi(loader, program.path),
        linked=bool(mpi_paths) and mpi_paths == {program.path: program.path},
        clears=program.clears,
        filters=program.filters,
    )


def _hidden(loader: Loader, image_tree: FileTree, budget: Budget, view: RankView) -> dict[str, str]:
    """Return the image's programs and MPIs that a mount hides from the rank. Each path maps to the folder of
    the image over which the runtime mounts a host folder.
    """
    whole = BoundedTree(image_tree, budget)
    tree = BoundedTree(image_tree, budget, view.hidden)
    if not any(whole.names(folder) for folder in view.hidden):
        return {}
    full = Loader(whole, loader.environment)
    return behind_mounts(walk(whole, {**loader.environment}), tree, full)
