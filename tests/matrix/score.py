"""Score the engine on a folder with cells.jsonl and images.json: ``python -m tests.matrix.score [FOLDER]``.

The program prints the number of exact predictions, the confusion table, and every cell whose first predicted
outcome is wrong. It also counts the cells whose outcome is in the prediction's ``by_chance``.
"""

import sys
from collections import Counter
from pathlib import Path

from tests.matrix.measured import HERE, Measured, cells, excluded, expressible
from toolkit.engine.predict import predict_plan
from toolkit.model.prediction import Prediction


def confusion(folder: Path) -> tuple[Counter[tuple[str, str]], list[tuple[Measured, Prediction]]]:
    """Return the number of cells by outcome and prediction, and the cells with wrong predictions."""
    table: Counter[tuple[str, str]] = Counter()
    missed: list[tuple[Measured, Prediction]] = []
    for cell in cells(folder):
        measured = expressible(cell, folder)
        if measured is None:
            continue
        said = predict_plan(measured.host, measured.image, measured.request, measured.plan)
        table[measured.outcome, said.outcome] += 1
        if said.outcome != measured.outcome:
            missed.append((measured, said))
    return table, missed


def main(folder: Path) -> int:
    table, missed = confusion(folder)
    asked, exact = sum(table.values()), sum(n for (a, b), n in table.items() if a == b)
    drawn = sum(said.foretells(measured.outcome) for measured, said in missed)
    left_out = Counter(reason for cell in cells(folder) if (reason := excluded(cell)))
    print(
        f"{exact} of {asked} cells predicted exactly, {drawn} more as what comes by chance; "
        f"{sum(left_out.values())} are no launch of toolkit's:"
    )
    for reason, count in left_out.most_common():
        print(f"  {count:4} {reason}")
    columns = sorted({b for _, b in table} | {a for a, _ in table})
    print(f"\n{'happened / predicted':22}" + "".join(f"{c[:13]:>14}" for c in columns))
    for row in sorted({a for a, _ in table}):
        print(f"{row:22}" + "".join(f"{table[row, c] or '':>14}" for c in columns))
    for measured, said in missed:
        print(f"\n{measured.name}: {measured.outcome}, predicted {said.outcome}\n    {said.why}")
    return 0 if exact + drawn == asked else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE))
