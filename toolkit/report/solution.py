"""Format the versions that the solver chose for a recipe: one line for each component, with the reason."""

import textwrap

from toolkit.model.recipe import Recipe
from toolkit.model.solution import Solution

_TITLES = ("component", "version", "from", "why")
_LEAST = 30
"""The minimum width of the last column in characters."""


def lines(recipe: Recipe, solution: Solution, width: int) -> list[str]:
    """Return a title, the lines of a table of components, and the predicted launch mode if known. The table
    wraps the reasons so that its lines have at most ``width`` characters.
    """
    rows = [(c.component, c.version, c.provider, c.why) for c in solution.chosen]
    columns = [max(len(row[i]) for row in (_TITLES, *rows)) for i in range(3)]
    room = max(_LEAST, width - sum(columns) - 6)
    lines = [f"{solution.recipe}: {recipe.title} ({solution.architecture})"]
    for *cells, reason in (_TITLES, *rows):
        first, *rest = textwrap.wrap(reason, room)
        begin = "  ".join(cell.ljust(size) for cell, size in zip(cells, columns, strict=True))
        lines += [f"{begin}  {first}", *(" " * (sum(columns) + 6) + more for more in rest)]
    if solution.mode:
        lines.append(
            f"toolkit predicts that this image starts on the cluster in launch mode {solution.mode}."
        )
    return lines
