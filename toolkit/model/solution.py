"""What the solver chose for a recipe: one version of each component, and why it is that one."""

from typing import Literal

import msgspec

Component = str
"""What an image is made of: the name of a row of ``recipes/knowledge/components.toml``."""

Provider = Literal["base", "debian", "pypi", "source", "published"]
"""Where a component comes from: the base image itself, Debian packages, wheels, a source archive that is
compiled, a published image that has it already."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """One component of a solution.

    ``why`` is one sentence: what asked for it, and what kept the newer ones out. ``source`` is its row's.
    """

    component: Component
    version: str
    provider: Provider
    why: str
    source: str


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """A stack that satisfies a recipe, the knowledge, and the cluster if one was given.

    ``mode`` is the way of launching that is predicted to work there, ``None`` where no cluster was given.
    """

    schema: str = "toolkit.solution/1"
    recipe: str
    architecture: str
    chosen: tuple[Chosen, ...]
    mode: str | None = None

    @property
    def versions(self) -> dict[str, str]:
        """Component → version."""
        return {chosen.component: chosen.version for chosen in self.chosen}

    def of(self, component: Component) -> Chosen | None:
        """Return what was chosen for a component; ``None`` if the image has none."""
        return next((chosen for chosen in self.chosen if chosen.component == component), None)
