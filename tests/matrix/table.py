"""Write ``docs/matrix.md``, the record as tables, one table for each flavour.

python -m tests.matrix.table
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.matrix.launches import LAUNCHES, shape
from tests.matrix.record import Cell, Truth, load
from tests.matrix.trainings import Trained
from tests.matrix.trainings import load as load_trainings
from toolkit.engine.words import mpi_name

PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"
_SHAPES = ("2x1", "2x2", "1x2")
_MARKS = {"ok": "**ok**", "unavailable": "-"}
_HEAD = """# Recorded launches

`make matrix` launched each image in `tests/matrix/images.toml` in each launch mode, on virtual clusters of
several kinds (flavours), and recorded the outcomes in `tests/matrix/truth`. `python -m tests.matrix.table`
writes this page from the record. In each launch, each rank initialises MPI, prints the size of its world,
takes part in a sum and in a broadcast of 1 MiB, exchanges 1 MiB with another rank, and checks every byte.

The first outcome in a cell belongs to the command that a user would type: the launcher and `singularity exec
IMAGE`. In mode `bind`, this command also mounts the folder of the host's MPI, and adds its `lib` to
`LD_LIBRARY_PATH`. If the launch that `toolkit` writes has another outcome, it follows after `→`.

- `-`: the cluster lacks this launch mode.
- a number in parentheses: the number of attempts with another outcome.
- *pmix with X*: a cluster of the flavour *pmix* whose nodes also have the MPI of image X, first on `PATH`.
"""
_TRAP_HEAD = """
## One change that breaks a launch

Each row has a launch that works as `toolkit` writes it, and one changed variable or container option. If
`toolkit` corrects the launch because it knows the change, the corrected outcome follows after `→`.
"""
_TRAP_ROWS = ("| cluster | image | launch | changed | becomes |", "|---|---|---|---|---|")


_TRAININGS_HEAD = """
## Trainings

`toolkit launch mnist` trained MNIST with Horovod on two ranks, after its preflight
(`tests/matrix/trainings.toml`; `python -m tests.matrix.train`). For modes in **bold**, the engine chose the
mode; for the other modes, the command had `--mode`. If toolkit predicted a failure, the command had
`--force`. In this table, `mpirun-container` ran on one node; `tests/full/jobs/test_mpirun_nodes.py` tests
several nodes.

| cluster | image | mode | nodes | predicted | happened | test accuracy |
|---|---|---|---|---|---|---|
"""


def page(truth: Truth, trainings: Sequence[Trained] = ()) -> str:
    parts = [_HEAD, _summary(truth)]
    parts += [_flavour(truth, flavour) for flavour in truth.hosts]
    parts += [_traps(truth), _trainings(trainings)]
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def _summary(truth: Truth) -> str:
    cells = truth.cells
    silent = sum(cell.silent for cell in cells)
    fixed = sum(bool(cell.fixed_by) for cell in cells)
    counted = Counter(cell.outcome for cell in cells)
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in counted.most_common())
    return (
        f"{len(cells):,} launches of {len(truth.images)} images on {len(truth.hosts)} clusters: {told}. "
        f"{silent:,} failed silently, with exit status 0. {fixed:,} of the failed launches work as `toolkit` "
        "writes them, or in the mode that `toolkit` chooses: the record has both launches."
    )


def _flavour(truth: Truth, flavour: str) -> str:
    host = truth.hosts[flavour]
    slurm = host.slurm
    mpis = ", ".join(mpi_name(mpi) for mpi in host.mpis or ()) or "no MPI"
    types = " ".join(sorted((slurm.mpi_types if slurm else None) or ()))
    default = slurm.mpi_default if slurm else None
    offers = f"Slurm {slurm.version if slurm else '?'} accepts `--mpi` with {types}; default {default}; "
    lines = [f"## {flavour}", "", f"{offers}PMIx {host.pmix or 'none'}; on the nodes: {mpis}."]
    for form in _SHAPES:
        cells = [c for c in truth.cells if c.flavour == flavour and shape(c.request) == form]
        lines += _table(truth, cells, form)
    return "\n".join(lines)


def _table(truth: Truth, cells: list[Cell], form: str) -> list[str]:
    cells = [c for c in cells if c.variant in {"naive", "planned"}]
    launches = [launch for launch in (*LAUNCHES, "bind") if any(c.launch == launch for c in cells)]
    if not cells:
        return []
    nodes, ranks = form.split("x")
    rows = []
    for image in dict.fromkeys(c.image for c in cells):
        row = [
            _entry([c for c in cells if (c.image, c.launch, c.start) == (image, x, "batch")])
            for x in launches
        ]
        rows.append(f"| {image} | {_mpi(truth, image)} | {' | '.join(row)} |")
    heading = (
        f"### {nodes} node{'s' if nodes != '1' else ''}, {ranks} rank{'s' if ranks != '1' else ''} on each"
    )
    head = ["image", "MPI", *launches]
    return ["", heading, "", f"| {' | '.join(head)} |", "|" + "---|" * len(head), *rows]


def _mpi(truth: Truth, image: str) -> str:
    seen = truth.images.get(image)
    return mpi_name(seen.facts.mpi) if seen else ""


def _entry(cells: list[Cell]) -> str:
    by = {cell.variant: _shown(cell) for cell in cells}
    if "planned" not in by:
        return by.get("naive", "")
    return f"{by.get('naive', '')} → {by['planned']}".strip()


def _shown(cell: Cell) -> str:
    other = sum(cell.seen.values()) - cell.seen.get(cell.outcome, 0)
    return _MARKS.get(cell.outcome, cell.outcome) + (f" ({other})" if other else "")


def _traps(truth: Truth) -> str:
    cells = [cell for cell in truth.cells if cell.trap]
    lines = [
        _TRAP_HEAD.strip("\n"),
        "",
        "| cluster | image | launch | changed | becomes |",
        "|---|---|---|---|---|",
    ]
    seen: dict[tuple[str, ...], dict[str, Cell]] = {}
    for cell in cells:
        launch = f"{cell.launch} {shape(cell.request)}"
        seen.setdefault((cell.flavour, cell.image, launch, cell.trap), {})[cell.variant] = cell
    for key, pair in sorted(seen.items()):
        shown = " → ".join(_shown(pair[variant]) for variant in ("trap", "mended") if variant in pair)
        lines.append(f"| {' | '.join((*key[:3], f'`{key[3]}`'))} | {shown} |")
    return "\n".join(lines) if cells else ""


def _trainings(trainings: Sequence[Trained]) -> str:
    rows = []
    for one in trainings:
        wanted, mode = one.wanted, f"**{one.wanted.mode}**" if one.by_itself else one.wanted.mode
        accuracy = f"{one.accuracy:.4f}" if one.accuracy is not None else ""
        cells = (wanted.place, wanted.image, mode, wanted.nodes, one.predicted, one.outcome, accuracy)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return _TRAININGS_HEAD + "\n".join(rows) if rows else ""


def main() -> int:
    PAGE.write_text(page(load(), load_trainings().trainings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
