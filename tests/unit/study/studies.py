"""Make studies in the format of ``toolkit scale``; some have invented measurements with a known result."""

from pathlib import Path

from toolkit.model.study import EpochFigure, Figures, Origin, Point, Shares, Size, Study
from toolkit.study import folder

DATA = Path(__file__).parent / "data"
BSC = DATA / "bsc"
TIMELINE = DATA / "two-ranks.json"

ORIGIN = Origin(
    job="mnist-20261121-000000-abc123",
    job_id="7",
    place="cluster demo",
    nodes="node[1-2]",
    mode="srun-pmix",
    launcher="srun --mpi=pmix",
    image="tf2.15-cpu.sif",
    image_digest="sha256:" + "ab" * 32,
)
SHARES = Shares(
    negotiate=0.1, queue=0.0, copy=0.05, reduce=0.25, compute=0.6, steps=40, step_seconds=0.01,
    last_ranks={"1": 0.9, "0": 0.1},
)  # fmt: skip
_SAMPLES = 1000


def point(ranks, seconds, *, nodes=1, number=1, series="", waiting=None, **more):
    figures = Figures(
        seconds=(seconds,),
        rates=(_SAMPLES / seconds,),
        epochs=tuple(
            EpochFigure(seconds=seconds * ranks, images=_SAMPLES * ranks, test_accuracy=0.8 + n / 20)
            for n in (1, 2, 3)
        ),
        samples=_SAMPLES,
        global_batch=10 * ranks,
        parameters=250_000,
        threads=1,
        versions={"tensorflow": "2.15.1"},
        waiting=waiting,
    )
    given = {"state": "measured", "tries": 1, "figures": figures, "origin": ORIGIN, **more}
    return Point(series=series, ranks=ranks, nodes=nodes, number=number, **given)


def study(sizes, **more):
    given = {
        "name": "mnist",
        "created": "2026-11-21T21:00:00+00:00",
        "repeats": 1,
        "said": {"trainer": "mnist"},
        **more,
    }
    return Study(sizes=tuple(Size(ranks, nodes) for ranks, nodes in sizes), **given)


def kept(where, made, points):
    folder.save(where, made)
    for one in points:
        folder.save_point(where, one)
    return where
