"""Write ``docs/horovod.md``, the results of all pairs of Horovod and a framework.

python -m tests.horovod.table
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.horovod.pairs import WAYS, Pair, Tried, load, pairs

PAGE = Path(__file__).parents[2] / "docs" / "horovod.md"
_HEAD = """# Horovod and frameworks

Horovod's last release is 0.28.1 of June 2023. toolkit also builds this release with frameworks that were
released later. For this purpose, the small patches in `recipes/patches` change Horovod's source code. Each
patch file names the reason for the patch and the upstream discussion. [Start
Horovod](howto/pytorch.md#start-horovod) shows how to launch a script with Horovod.

`make horovod-matrix` builds an image with Horovod for each framework release in the table. In each image, a
test trains a small network for 20 steps. It trains in one process with whole batches, and on two ranks, each
with half of every batch.

In the tests of the column *mpirun*, Open MPI's `mpirun` starts the two ranks. In the tests of the column
*gloo*, `horovodrun --gloo` starts the two ranks. *Equal* means that no weight differs by more than 0.0001
between the single process and each of the two ranks. The number in brackets is the largest difference. *Not
run* means that the project has no result. The column *base* names the base image.

"""
_ROWS = (
    "| framework | Python | base | Open MPI | patches | built | mpirun | gloo | date |",
    "|---|---|---|---|---|---|---|---|---|",
)


def page(wanted: Sequence[Pair], record: Mapping[str, Tried]) -> str:
    rows = [_row(pair, record.get(pair.name)) for pair in wanted]
    failures = [_failure(record[pair.name]) for pair in wanted if pair.name in record]
    return _HEAD + "\n".join((*_ROWS, *rows)) + "\n" + "".join(filter(None, failures))


def _row(pair: Pair, tried: Tried | None) -> str:
    framework = " with ".join(f"{name} {wish}" for name, wish in pair.want.items())
    if tried is None:
        return f"| {framework} | | | | | not run | not run | not run | |"
    versions = tried.versions
    framework = " with ".join(f"{name} {versions.get(name, wish)}" for name, wish in pair.want.items())
    cells = (
        framework,
        versions.get("python", ""),
        versions.get("base", ""),
        versions.get("openmpi", ""),
        ", ".join(name.removeprefix("horovod-0.28.1-").removesuffix(".patch") for name in tried.patches)
        or "none",
        "yes" if tried.built else "**failed**",
        *(_way(way, tried) for way in WAYS),
        tried.date,
    )
    return f"| {' | '.join(cells)} |"


def _way(way: str, tried: Tried) -> str:
    for one in tried.learned:
        if one.way == way:
            apart = max(one.between, one.from_one)
            return f"equal ({apart:.0e})" if one.equal else f"**different** ({apart:.0e}, {one.ranks} ranks)"
    return "**failed**" if tried.built and tried.failure else "not run"


def _failure(tried: Tried) -> str:
    if not tried.failure:
        return ""
    lines = "\n".join(f"    {line}" for line in tried.failure.splitlines())
    return f"\nWhat {tried.name} said:\n\n{lines}\n"


def write() -> None:
    PAGE.write_text(page(pairs(), load()), "utf-8")


def main() -> int:
    """Write the page, and return the exit status 0."""
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
