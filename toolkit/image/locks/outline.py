"""Make a lock without packages, to write the Dockerfile for an image that toolkit cannot build."""

from toolkit.image.locks.complete import complete
from toolkit.image.locks.ingredients import Ingredients, ingredients
from toolkit.image.locks.origins import of_index
from toolkit.image.locks.recipe import NamedRecipe
from toolkit.image.locks.solve_recipe import solve_recipe_rows
from toolkit.knowledge.stacks import stacks
from toolkit.model.lock import Lock, LockedBase, LockedFile, Stage
from toolkit.model.solution import Component


def outline_recipe(named_recipe: NamedRecipe) -> Lock:
    """Return a lock with only the fields that follow from the recipe and the rows of ``stacks.toml``.

    The base image has a name but no digest. Source archives have the hashes in ``stacks.toml``; source
    distributions have no hashes. No program can build an image from this lock, because the lock has no
    packages and no wheels.
    """
    solution, rows = solve_recipe_rows(named_recipe)
    needs = ingredients(rows, named_recipe.recipe, stacks())
    base, components = needs.base, (*needs.helpers, *needs.compiled)
    return complete(
        named_recipe,
        solution,
        needs,
        epoch=0,
        base=LockedBase(name=base.name, release=base.release, image=base.image, published=base.image),
        build=Stage(sources=tuple(_source(needs, component) for component in components)),
        run=Stage(),
    )


def _source(inputs: Ingredients, component: Component) -> LockedFile:
    row = inputs.rows[component]
    archive = row.archive
    return LockedFile(
        name=component,
        version=row.version,
        file=archive.file if archive else f"{component}-{row.version}.tar.gz",
        origin=archive.origin if archive else of_index(inputs.base.python),
        sha256=archive.sha256 if archive else "",
        size=0,
    )
