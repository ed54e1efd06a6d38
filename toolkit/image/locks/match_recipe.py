"""Find a recipe whose image has the same frameworks as a given image, and works on a given host."""

import msgspec

from toolkit.engine.solver.solve import find
from toolkit.image.locks.solve_recipe import pin_recipe
from toolkit.knowledge.stacks import Stacks, stacks
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Request
from toolkit.model.recipe import MPIS, Recipe
from toolkit.program import program_of_name
from toolkit.program.choose import programs_of

_PLACEHOLDER = "*"


def match_recipe(
    host: HostFacts, image: ImageFacts, request: Request, table: Stacks | None = None
) -> Recipe | None:
    """Return a recipe with the frameworks of ``image``. toolkit predicts that an image from this recipe works
    on the host.

    toolkit first tries Open MPI, then MPICH. With each MPI library, toolkit first tries the versions of the
    frameworks, Horovod and mpi4py in ``image``, then other versions. The recipe states exact versions, so
    that toolkit can later build the same image without the host's facts.

    The result is None if toolkit cannot build any image that has these frameworks and works on the host. The
    result is also None if the program needs no MPI, because a new MPI library changes nothing for such a
    program.
    """
    if not program_of_name(programs_of(image, request)[0]).BY_MPI:
        return None
    rows = table or stacks()
    request = msgspec.structs.replace(request, mode=None)
    for mpi in MPIS:
        for uses in _uses(image):
            recipe = _recipe(image, {**uses, mpi: _PLACEHOLDER}, host)
            solution = find(recipe, "matched", rows, host, request)
            if solution is not None:
                return pin_recipe(recipe, solution)
    return None


def _uses(image: ImageFacts) -> list[dict[str, str]]:
    """Return sets of required components and versions, in the order in which toolkit tries them. The first
    set has the exact versions in the image. The last set has only the image's frameworks, in any version.
    """
    frameworks = {"tensorflow": image.tensorflow, "torch": image.pytorch, "jax": image.jax}
    versions = {**frameworks, "horovod": image.horovod}
    versions["mpi4py"] = image.mpi4py or ("" if image.horovod else None)
    known_versions = {name: version for name, version in versions.items() if version is not None}
    exact = {name: version or _PLACEHOLDER for name, version in known_versions.items()}
    tries = [exact]
    tries += [{**exact, name: _PLACEHOLDER} for name in known_versions]
    known_frameworks = [name for name in frameworks if name in known_versions]
    tries += [
        dict.fromkeys(names, _PLACEHOLDER)
        for names in (known_versions, (*known_frameworks, "mpi4py"), known_frameworks)
    ]
    return [selection for selection in tries if set(selection) <= set(known_versions)]


def _recipe(image: ImageFacts, versions: dict[str, str], host: HostFacts) -> Recipe:
    name = image.path.rpartition("/")[2] or "the image"
    return Recipe(
        schema="toolkit.recipe/2",
        title=f"Replacement for {name}, matched to the cluster",
        architecture=host.architecture or image.architecture or "x86_64",
        want=versions,
    )
