"""Find the fix of each failing launch: a recorded launch that worked with the engine's plan.

This command writes the fixes to ``fixed_by`` in the whole record:

    python -m tests.matrix.mending
"""

from collections.abc import Callable
from functools import cache

import msgspec

from tests.matrix.launches import shape
from tests.matrix.record import TRUTH, Cell, Truth, as_started, changed
from toolkit.engine.predict import predict
from toolkit.model.prediction import Plan, Request

Chosen = Callable[[Cell], Plan | None]
"""Function that returns the engine's plan for a cell; ``None`` if the engine predicts no working launch."""


def mended(cells: list[Cell], chosen: Chosen) -> list[Cell]:
    """Return the cells, with the name of the working cell in ``fixed_by`` of each failing cell.

    The working cell is the same launch with the engine's plan. If there is no such cell, and the failing
    launch has no trap, the working cell uses the launch mode that the engine chooses.
    """
    same = {_kind(cell): cell.name for cell in cells if _mends(cell)}
    works = {words(cell, cell.plan): cell.name for cell in cells if cell.outcome == "ok" and not cell.trap}

    def by(cell: Cell) -> str:
        if cell.outcome == "ok":
            return ""
        found = same.get(_kind(cell), "") if cell.variant in {"naive", "trap"} else ""
        instead = None if found or cell.trap else chosen(cell)
        return works.get(words(cell, instead), "") if instead else found

    return [msgspec.structs.replace(cell, fixed_by=by(cell)) for cell in cells]


def by_engine(truth: Truth) -> Chosen:
    """Return a function that gives the engine's plan for a cell, from the facts in the record."""

    @cache
    def plan(flavour: str, image: str, nodes: int, ranks: int, batch: bool) -> Plan | None:
        # On virtual clusters, home folders have no Python packages, so user_site adds no variable to the
        # plan.
        request = Request(nodes=nodes, ranks_per_node=ranks, batch=batch, user_site=True)
        host = truth.hosts[flavour]
        said = predict(host, as_started(truth.images[image].facts, host), request)
        return said.of(said.chosen).plan if said.chosen else None

    return lambda cell: plan(
        cell.flavour, cell.image, cell.request.nodes, cell.request.ranks_per_node, cell.request.batch
    )


def _kind(cell: Cell) -> tuple[str, ...]:
    return (cell.flavour, cell.image, cell.launch, shape(cell.request), cell.start, cell.trap)


def _mends(cell: Cell) -> bool:
    return cell.variant in {"planned", "mended"} and cell.outcome == "ok"


def words(cell: Cell, plan: Plan) -> tuple[str, ...]:
    """Return a key that is equal for equal launches, whether srun runs in a batch script or outside.

    The key leaves out variables of Python, because the program of the matrix is compiled.
    """
    start = "" if plan.launcher[0] == "srun" else cell.start
    env = {name: value for name, value in plan.env.items() if not name.startswith("PYTHON")}
    plan = msgspec.structs.replace(plan, env=env)
    return (cell.flavour, cell.image, shape(cell.request), start, msgspec.json.encode(plan).decode())


def main() -> None:
    with changed(TRUTH) as truth:
        truth.cells = mended(truth.cells, by_engine(truth))


if __name__ == "__main__":
    main()
