"""Compute a lock from the chosen rows of ``stacks.toml`` and the chosen files (pure functions)."""

import re
from collections.abc import Sequence

from toolkit.image.locks.ingredients import AFTER, Ingredients
from toolkit.image.locks.patches import patch_sha256
from toolkit.image.locks.recipe import NamedRecipe, recipe_sha256
from toolkit.knowledge.licences import terms
from toolkit.model.lock import (
    PYTHON_PACKAGES,
    CompiledComponent,
    Lock,
    LockedBase,
    LockedFile,
    LockedStep,
    Stage,
)
from toolkit.model.recipe import MPIS, Recipe
from toolkit.model.solution import Solution


def complete(
    named_recipe: NamedRecipe,
    solution: Solution,
    inputs: Ingredients,
    *,
    epoch: int,
    base: LockedBase,
    build: Stage,
    run: Stage,
) -> Lock:
    """Return the complete lock for the versions that the solver chose.

    Args:
        named_recipe: the recipe and its name.
        solution: the versions that the solver chose.
        inputs: the packages and archives that a build of these versions needs.
        epoch: the modification time of every file in the image, in Unix seconds.
        base: the base image.
        build: the files that only the build needs.
        run: the files that the finished image contains.
    """
    return Lock(
        recipe=named_recipe.name,
        recipe_sha256=recipe_sha256(named_recipe.recipe),
        title=" ".join(named_recipe.recipe.title.split()),
        packages=tuple(re.split(r"[\[=]", package)[0] for package in inputs.packages),
        solution=solution,
        epoch=epoch,
        base=base,
        steps=tuple(
            _step(component, inputs, named_recipe.recipe, run.wheels) for component in inputs.compiled
        ),
        environment={k: v for row in inputs.rows.values() for k, v in row.environment.items()},
        licences=terms(solution.versions),
        build=build,
        run=run,
    )


def _step(
    component: CompiledComponent, inputs: Ingredients, recipe: Recipe, wheels: Sequence[LockedFile]
) -> LockedStep:
    horovod = component == "horovod"
    return LockedStep(
        component=component,
        words=recipe.operations if horovod else inputs.rows[component].configure,
        after=tuple(before for before in AFTER[component] if before in inputs.compiled),
        wheels=tuple(file.name for file in wheels if horovod or _is_needed(file, component, inputs)),
        # Horovod's build unpacks CUDA's compiler from an extra archive. The finished image contains no file
        # from this archive.
        extra=inputs.helpers if horovod else (),
        patches={name: patch_sha256(name) for name in inputs.rows[component].patches},
    )


def _is_needed(wheel: LockedFile, component: CompiledComponent, inputs: Ingredients) -> bool:
    """Return whether toolkit needs the file ``wheel`` to compile a component.

    The result is true if the component is a Python package, and the MPI library's row in ``stacks.toml``
    lists this file's package.
    """
    words = [word for c, row in inputs.rows.items() if c in MPIS for word in row.wheels]
    return component in PYTHON_PACKAGES and wheel.name in {word.partition("==")[0] for word in words}
