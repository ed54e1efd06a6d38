"""Score the engine on the record of programs without MPI: ``python -m tests.matrix.peers.score [IMAGE]…``.

The program prints the number of exact predictions, the confusion table, and the launches whose outcome the
engine did not predict.
"""

import sys
from collections import Counter

from tests.matrix.launches import inherited
from tests.matrix.peers.run import TRUTH
from tests.matrix.record import Cell, Truth, load
from toolkit.engine.predict import predict_plan
from toolkit.model.prediction import Prediction


def predicted(cell: Cell, truth: Truth) -> Prediction:
    host = inherited(truth.hosts[cell.flavour], cell.environment, cell.host_changes)
    return predict_plan(host, truth.images[cell.image].facts, cell.request, cell.plan)


def main(images: list[str]) -> int:
    truth = load(TRUTH)
    cells = [cell for cell in truth.cells if not images or cell.image in images]
    said = {cell.name: predicted(cell, truth) for cell in cells}
    table = Counter((cell.outcome, said[cell.name].outcome) for cell in cells)
    exact = sum(count for (happened, told), count in table.items() if happened == told)
    chance = sum(said[c.name].foretells(c.outcome) and said[c.name].outcome != c.outcome for c in cells)
    print(f"{exact} of {len(cells)} launches predicted exactly, {chance} more by chance")
    columns = sorted({told for _, told in table})
    print(f"{'happened / predicted':22}" + "".join(f"{name[:13]:>14}" for name in columns))
    for row in sorted({happened for happened, _ in table}):
        print(f"{row:22}" + "".join(f"{table[row, name] or '':>14}" for name in columns))
    for cell in cells:
        one = said[cell.name]
        if not one.foretells(cell.outcome):
            print(f"\n{cell.name}: {cell.outcome} {cell.sizes}, predicted {one.outcome}\n    {one.why}")
            print(f"    {dict(cell.seen)} exit {cell.exit}: {cell.line}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
