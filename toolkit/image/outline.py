"""The outline of an image that cannot be built here: a lock without its files, to render from; pure."""

from toolkit.image.ingredients import Ingredients, ingredients
from toolkit.image.origins import of_index
from toolkit.image.recipe import Named, recipe_sha256
from toolkit.knowledge.stacks import Stacks
from toolkit.model.lock import Lock, LockedBase, LockedFile, Stage
from toolkit.model.solution import Component, Solution


def outline(named: Named, solution: Solution, table: Stacks) -> Lock:
    """Return what a recipe would be built from, as far as the table tells it.

    The base is the published image by its name, as no registry told a digest; source archives have the hashes
    of the table, source distributions none; packages and wheels are left out. Nothing can be built from it.
    """
    needs = ingredients(solution, named.recipe, table)
    return Lock(
        recipe=named.name,
        recipe_sha256=recipe_sha256(named.recipe),
        solution=solution,
        epoch=0,
        base=LockedBase(name=needs.base.name, release=needs.base.release, published=needs.base.image),
        build=Stage(sources=tuple(_source(needs, component) for component in needs.compiled)),
        run=Stage(),
    )


def _source(needs: Ingredients, component: Component) -> LockedFile:
    row = needs.rows[component]
    archive = row.archive
    return LockedFile(
        name=component,
        version=row.version,
        file=archive.file if archive else f"{component}-{row.version}.tar.gz",
        origin=archive.origin if archive else of_index(needs.base.python),
        sha256=archive.sha256 if archive else "",
        size=0,
    )
