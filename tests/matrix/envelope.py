"""Write ``recipes/knowledge/measured.toml``, what the record covers: ``python -m tests.matrix.envelope``."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.matrix.launches import inherited
from tests.matrix.measured import HERE, cells, expressible
from tests.matrix.record import load
from toolkit.engine.basis import Covered, covered_by
from toolkit.engine.predict import case_of

FILE = Path(__file__).parents[2] / "recipes" / "knowledge" / "measured.toml"
_HEAD = """# What the recorded launches of tests/matrix cover; tests/matrix/envelope.py writes it.
# `launches` holds: launch mode, MPI that is loaded, its PMIx, who serves it, nodes, ranks a node.

"""


def recorded() -> Iterator[Covered]:
    """Yield what each recorded launch covers."""
    truth = load()
    for cell in truth.cells:
        host = inherited(truth.hosts[cell.flavour], cell.environment, cell.host_changes)
        yield covered_by(case_of(host, truth.images[cell.image].facts, cell.request, cell.plan))
    for row in cells(HERE):
        if (measured := expressible(row, HERE)) is not None:
            yield covered_by(case_of(measured.host, measured.image, measured.request, measured.plan))


def text() -> str:
    """Return the file."""
    found: dict[str, set[str]] = defaultdict(set)
    ranks = 0
    for one in recorded():
        found["launches"].add(one.launch)
        found["slurm"].add(one.slurm)
        found["runtimes"].add(one.runtime)
        found["servers"].add(one.server)
        found["libraries"].add(one.library)
        found["mounted"].add(one.mounted)
        ranks = max(ranks, one.ranks_per_node)
    lines = [f"ranks_per_node = {ranks}"]
    for name, values in found.items():
        lines += [f"{name} = [", *(f'    "{value}",' for value in sorted(values) if value), "]"]
    return _HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
