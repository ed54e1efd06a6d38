"""Collect the scaling evidence that a computing centre demands (pure functions): the measured values for
each number of nodes, and whether the study meets each demand.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from toolkit.model.study import Point, Study
from toolkit.study.forms import Form
from toolkit.study.statistics import MedianSpread, curves


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """The measured values for one number of nodes, from the runs with the most ranks on this number of nodes.

    ``seconds`` is the time in seconds of an epoch, or of 1,000 units of work if the study measured only a
    rate. ``wall`` is the median time of a whole job in seconds, or None if unknown. ``speedup`` is the time
    on the fewest nodes divided by the time on this number of nodes. ``efficiency`` is the speed-up divided by
    the growth of the number of ranks. For example, the growth is 4 if a job on the fewest nodes has 2 ranks,
    and a job on this number of nodes has 8. ``gpu`` is the median GPU utilisation from 0 to 1.
    """

    nodes: int
    ranks: int
    runs: int
    seconds: MedianSpread
    wall: float | None
    speedup: float
    efficiency: float
    gpu: float | None


@dataclass(frozen=True, slots=True)
class FormDemand:
    """One demand of a computing centre's application form. ``met`` says whether the study meets the demand.
    ``fix`` says what to do if the study does not meet the demand.
    """

    text: str
    met: bool
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The measured values of one series (the runs with one value of ``--compare``), sorted by the number of
    nodes, and the form's demands on this series.
    """

    label: str
    rows: tuple[NodeRow, ...]
    demands: tuple[FormDemand, ...]


def evidence(
    form: Form, study: Study, points: Sequence[Point], walls: Mapping[str, float], *, script: bool
) -> list[Series]:
    """Return the scaling evidence of each series of a study, for a computing centre's form.

    ``walls`` maps the key of each job to the run time of the whole job in seconds. ``script`` is true if the
    study has a job script that the applicant can attach to the form.
    """
    series = []
    for label in study.values or ("",):
        mine = [point for point in points if point.series == label]
        rows = _rows(study, label, mine, walls)
        if rows:
            demands = tuple(_demands(form, rows, mine, script=script))
            series.append(Series(label=label, rows=rows, demands=demands))
    return series


def _rows(
    study: Study, label: str, points: Sequence[Point], walls: Mapping[str, float]
) -> tuple[NodeRow, ...]:
    measured_sizes = [
        size for curve in curves(study, points) if curve.series == label for size in curve.points
    ]
    largest = {size.nodes: size for size in sorted(measured_sizes, key=lambda size: size.ranks)}
    sizes = [largest[nodes] for nodes in sorted(largest)]
    rows = []
    for size in sizes:
        speedup = sizes[0].seconds.value / size.seconds.value
        runs = [point for point in points if (point.ranks, point.nodes) == (size.ranks, size.nodes)]
        wall_times = [
            walls[p.origin.job] for p in runs if p.origin and not p.profile and p.origin.job in walls
        ]
        gpus = [point.figures.gpu for point in runs if point.figures and point.figures.gpu is not None]
        rows.append(
            NodeRow(
                nodes=size.nodes,
                ranks=size.ranks,
                runs=len(size.runs),
                seconds=size.seconds,
                wall=median(wall_times) if wall_times else None,
                speedup=speedup,
                efficiency=speedup * sizes[0].ranks / size.ranks,
                gpu=median(gpus) if gpus else None,
            )
        )
    return tuple(rows)


def _demands(
    form: Form, rows: Sequence[NodeRow], points: Sequence[Point], *, script: bool
) -> Iterator[FormDemand]:
    measured = ", ".join(str(row.nodes) for row in rows)
    several = len(rows) >= form.sizes
    yield FormDemand(
        f"at least {form.sizes} different numbers of nodes; measured: {measured}",
        several,
        ""
        if several
        else f"run the toolkit scale command again with sizes for {_further_sizes(form, rows)} nodes",
    )
    if form.nodes:
        low, high = form.nodes
        outside = [str(row.nodes) for row in rows if not low <= row.nodes <= high]
        text = f"all runs on {low} to {high} nodes" + (f"; outside: {', '.join(outside)}" if outside else "")
        fix = f"start a separate study without runs on {', '.join(outside)} nodes" if outside else ""
        yield FormDemand(text, not outside, fix)
    samples = {point.figures.samples for point in points if point.figures}
    same = len(samples) <= 1
    yield FormDemand(
        "the same data for all sizes", same, "" if same else "measure every size on the same data"
    )
    yield from _scaling(form, rows)
    if form.gpu:
        bare = [str(row.nodes) for row in rows if row.gpu is None]
        yield FormDemand(
            "the GPU utilisation"
            + (f"; the study did not record the GPU utilisation for {', '.join(bare)} nodes" if bare else ""),
            not bare,
            "run the study with --gpus-per-node; each job then records what nvidia-smi reports"
            if bare
            else "",
        )
    if form.script:
        fix = (
            ""
            if script
            else "make the report on the machine that ran `toolkit scale`: it has the job scripts"
        )
        yield FormDemand("a job script", script, fix)


def _scaling(form: Form, rows: Sequence[NodeRow]) -> Iterator[FormDemand]:
    largest = rows[-1]
    compared = len(rows) > 1
    if form.efficiency:
        reached = f"; measured: {100 * largest.efficiency:.0f} % on {largest.nodes} nodes" if compared else ""
        met = compared and largest.efficiency >= form.efficiency
        good = [row.nodes for row in rows[1:] if row.efficiency >= form.efficiency]
        fix = (
            f"apply for at most {good[-1]} nodes" if good else "give each rank more work" if compared else ""
        )
        yield FormDemand(
            f"parallel efficiency of {100 * form.efficiency:.0f} % or more{reached}", met, "" if met else fix
        )
    if form.doubling:
        pairs = [(small, large) for small in rows for large in rows if large.nodes == 2 * small.nodes]
        poor = [
            f"measured from {small.nodes} to {large.nodes} nodes: {large.speedup / small.speedup:.2f}"
            for small, large in pairs
            if large.speedup / small.speedup < form.doubling
        ]
        text = f"at least {form.doubling:g} times as fast on twice the nodes"
        fix = (
            ""
            if pairs and not poor
            else "add a size with twice as many nodes as a measured size"
            if not pairs
            else "use fewer nodes"
        )
        yield FormDemand("; ".join([text, *poor]), bool(pairs) and not poor, fix)


def _further_sizes(form: Form, rows: Sequence[NodeRow]) -> str:
    """Return text such as ``4 and 8``: the further numbers of nodes that the study must measure to meet the
    form's demand. If no further number is within the form's limits, return ``other numbers of``. The caller
    appends the word ``nodes``.
    """
    known = {row.nodes for row in rows}
    low, high = form.nodes or (1, 1 << 20)
    sizes: list[int] = []
    nodes = low
    while len(known | set(sizes)) < form.sizes and nodes <= high:
        if nodes not in known:
            sizes.append(nodes)
        nodes *= 2
    return " and ".join(str(size) for size in sizes) or "other numbers of"
