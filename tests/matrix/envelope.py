"""Write ``recipes/knowledge/measured.toml``, a summary of the recorded launches.

python -m tests.matrix.envelope
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.matrix.launches import inherited
from tests.matrix.measured import HERE, cells, expressible
from tests.matrix.record import as_started, load
from toolkit.engine.basis import LaunchCoverage, launch_coverage
from toolkit.engine.judge import ask_rules
from toolkit.engine.predict import case_of
from toolkit.engine.registry import RULES

FILE = Path(__file__).parents[2] / "recipes" / "knowledge" / "measured.toml"
_HEAD = """# The combinations that recorded launches cover; tests/matrix/envelope.py writes this file.
# `launches` has: launch mode, loaded MPI, its PMIx, the PMIx server, nodes, and ranks per node.

"""


def recorded() -> Iterator[tuple[LaunchCoverage, str]]:
    """Yield the coverage of each recorded launch, and the rule that decides the launch's prediction.

    The coverage has the properties that toolkit compares with the properties of new launches.
    """
    truth = load()
    for cell in truth.cells:
        host = inherited(truth.hosts[cell.flavour], cell.environment, cell.host_changes)
        facts = truth.images[cell.image].facts
        started = case_of(host, as_started(facts, host), cell.request, cell.plan)
        yield (
            launch_coverage(case_of(host, facts, cell.request, cell.plan)),
            ask_rules(started, RULES).decided_by,
        )
    for row in cells(HERE):
        if (seen := expressible(row, HERE)) is not None:
            case = case_of(seen.host, seen.image, seen.request, seen.plan)
            yield launch_coverage(case), ask_rules(case, RULES).decided_by


def text() -> str:
    found: dict[str, set[str]] = defaultdict(set)
    ranks = 0
    for one, rule in recorded():
        found["launches"].add(one.launch)
        found["slurm"].add(one.slurm)
        found["runtimes"].add(one.runtime)
        found["servers"].add(one.server)
        found["libraries"].add(one.library)
        found["mounted"].add(one.mounted)
        found["rules"].add(rule)
        ranks = max(ranks, one.ranks_per_node)
    lines = [f"ranks_per_node = {ranks}"]
    for name, values in found.items():
        lines += [f"{name} = [", *(f'    "{value}",' for value in sorted(values) if value), "]"]
    return _HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
