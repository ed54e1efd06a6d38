"""The solver's choice for a recipe: a version of each component, and the reasons."""

from typing import Literal

import msgspec

Component = str
"""The name of a component of an image, from ``recipes/knowledge/components.toml``."""

Provider = Literal["base", "debian", "pypi", "source", "published"]
"""The source of a component. ``base``: the base image itself. ``debian``: Debian packages. ``pypi``: wheels.
``source``: a source archive that the build compiles. ``published``: a published image that already has the
component.
"""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """One component of a solution.

    ``why`` is a sentence that says why the image contains the component, and why the solver did not choose a
    newer version. ``source`` cites the evidence for this version's row in ``stacks.toml``, such as release
    notes.
    """

    component: Component
    version: str
    provider: Provider
    why: str
    source: str


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """A stack (versions of components) that satisfies the recipe and the compatibility tables. If the user
    named a cluster, the stack also satisfies the cluster's requirements.

    ``mode`` is the launch mode that toolkit predicts to work on the cluster; ``None`` if the user did not
    name a cluster.
    """

    schema: str = "toolkit.solution/1"
    recipe: str
    architecture: str
    chosen: tuple[Chosen, ...]
    mode: str | None = None

    @property
    def versions(self) -> dict[str, str]:
        """The chosen version of each component, by the component's name."""
        return {chosen.component: chosen.version for chosen in self.chosen}

    def of(self, component: Component) -> Chosen | None:
        """Return the choice for a component; ``None`` if the solution does not contain the component."""
        return next((chosen for chosen in self.chosen if chosen.component == component), None)
