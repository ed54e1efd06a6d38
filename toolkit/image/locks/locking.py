"""Make the lock of a recipe: choose the versions of the components, then look up the files to download."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from toolkit.errors import BadInput
from toolkit.image.locks.fetch import cost
from toolkit.image.locks.ingredients import ingredients
from toolkit.image.locks.lock import files_of, fitting_lock, load_lock, lock_path, save_lock
from toolkit.image.locks.recipe import NamedRecipe
from toolkit.image.locks.resolve import resolve
from toolkit.image.locks.solve_recipe import solve_recipe_rows
from toolkit.knowledge.stacks import stacks
from toolkit.model.facts import HostFacts
from toolkit.model.lock import Lock
from toolkit.model.progress import Tell

if TYPE_CHECKING:
    from docker import DockerClient


def lock_of(
    client: "DockerClient",
    named_recipe: NamedRecipe,
    tell: Tell,
    host: HostFacts | None = None,
    *,
    newer_base: bool = False,
) -> Lock:
    """Return a new lock of a recipe.

    ``host`` has the facts of the cluster on which the image must work; None if the cluster is unknown. If
    ``newer_base`` is true, toolkit looks up the newest base image in the registry.

    Raises:
        BadInput: if the recipe says that toolkit cannot build it.
        CheckFailed: if no set of versions satisfies the recipe, or a package is not available.
        Missing: if the Docker engine or a package source does not respond.
    """
    if named_recipe.recipe.unbuildable:
        raise BadInput(
            f"toolkit cannot build {named_recipe.name}: {named_recipe.recipe.unbuildable}",
            fix=f"build the image on another machine; `toolkit image render {named_recipe.name}` prints the "
            f"Dockerfile",
        )
    solution, rows = solve_recipe_rows(named_recipe, host)
    tell.step(f"Locking {named_recipe.name}: {_in_words(solution.versions)}")
    needs = ingredients(rows, named_recipe.recipe, stacks())
    lock = resolve(client, named_recipe, solution, needs, tell, newer_base=newer_base)
    tell.step(f"A build of {named_recipe.name} needs {cost(files_of(lock))}")
    return lock


def ensure_lock(
    client: "DockerClient",
    named_recipe: NamedRecipe,
    reference: str,
    tell: Tell,
    accepted_hosts: Collection[str] = (),
) -> Lock:
    """Return the lock of the recipe with the name or path ``reference``. If the recipe has no lock, make a
    lock and save it.

    Raises:
        BadInput: under the same conditions as :func:`~toolkit.image.locks.lock.fitting_lock`, or if the
            recipe says that toolkit cannot build it.
    """
    if load_lock(reference) is None:
        lock = lock_of(client, named_recipe, tell)
        file = lock_path(reference)
        save_lock(lock, file)
        tell.step(f"Wrote {file}")
        return lock
    return fitting_lock(named_recipe, reference, accepted_hosts)


def _in_words(versions: dict[str, str]) -> str:
    return ", ".join(f"{component} {version}" for component, version in versions.items())
