"""The documents that a build puts into an image beside its lock: bill of materials and provenance.

``emit.context`` adds them to what the engine builds from, and the template copies them to /opt/toolkit.
"""

import posixpath

from toolkit.image.ingredients import row_of
from toolkit.image.provenance import PROVENANCE_PATH, provenance
from toolkit.image.sbom import SBOM_PATH, sbom
from toolkit.knowledge.stacks import stacks
from toolkit.model.lock import Lock
from toolkit.model.recipe import Recipe
from toolkit.model.solution import Component


def documents(lock: Lock, recipe: Recipe) -> dict[str, bytes]:
    """Return name → content of what goes into /opt/toolkit; the same for equal locks and recipes."""
    options: dict[Component, tuple[str, ...]] = {}
    for chosen in lock.solution.chosen:
        words = row_of(chosen, lock.solution, stacks()).configure
        if chosen.component == "horovod":
            words = (*words, *(f"HOROVOD_WITH_{name.upper()}=1" for name in recipe.operations))
        options[chosen.component] = words
    return {
        posixpath.basename(SBOM_PATH): sbom(lock, options),
        posixpath.basename(PROVENANCE_PATH): provenance(lock),
    }
