"""Format a training as text: a table of its epochs, and a summary."""

from collections.abc import Iterable, Sequence

from toolkit.number import number
from toolkit.report.plain import join_lines
from toolkit.report.table import table
from toolkit.study.result import METRICS, Epoch, Result, Training

ROWS = 200
"""If a training has more than this number of epochs, the table leaves out some of them."""

_TITLES = ("epoch", "loss", "accuracy", "test loss", "test accuracy", "seconds", "images/s")


def thin_epochs(epochs: Sequence[Epoch], limit: int) -> Sequence[Epoch]:
    """Return all epochs if there are at most ``limit`` epochs. If there are more, return at most
    ``limit + 1`` epochs: the first epoch, later epochs at equal distances, and the last epoch.
    """
    step = -(-len(epochs) // limit)
    return epochs if step <= 1 else [*epochs[:-1:step], epochs[-1]]


def epochs_table(training: Training) -> str:
    """Return a table with one row for each epoch. If the training is long, leave out some epochs."""
    shown = thin_epochs(training.epochs, ROWS)
    rows = _rows(shown)
    if len(shown) == len(training.epochs):
        return rows
    return f"{rows}\n{len(shown)} of {len(training.epochs):,} epochs are shown; {METRICS} contains all"


def _rows(epochs: Iterable[Epoch]) -> str:
    return table(
        _TITLES,
        [
            (
                result.epoch,
                _number(result.loss),
                f"{result.accuracy:.4f}",
                _number(result.test_loss),
                _number(result.test_accuracy),
                f"{result.seconds:.2f}",
                number(result.images_per_second).replace(",", ""),
            )
            for result in epochs
        ],
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def title(result: Result) -> str:
    """Describe the training in one line, for example ``mnist, horovod, 2 ranks on 2 nodes, srun-pmix``."""
    ranks = "1 rank" if result.world_size == 1 else f"{result.world_size} ranks"
    nodes = "1 node" if result.nodes == 1 else f"{result.nodes} nodes"
    return ", ".join(filter(None, (result.trainer, result.strategy, f"{ranks} on {nodes}", result.mode)))


def speed(result: Result) -> str:
    """Return the rate as ``N images/s``, or ``-`` if the training was too short to measure the rate."""
    return "-" if result.images_per_second is None else f"{number(result.images_per_second)} images/s"


def summary(result: Result) -> str:
    """Return the summary of a training with one value per line."""
    lines = [
        ("trained", title(result)),
        ("test accuracy", _number(result.test_accuracy) if result.test_accuracy is not None else None),
        ("speed", f"{speed(result)} over {result.seconds:.1f} s"),
        ("batch", f"{result.batch_size} per rank, {result.global_batch_size} on all ranks"),
        ("resumed", f"from a checkpoint; number of resumes: {result.resumed}" if result.resumed else None),
        ("image", result.image_digest),
        ("job", f"{result.job} ({result.job_id})" if result.job else None),
    ]
    if not result.complete:
        lines.insert(0, ("partial", f"{result.epochs} of {result.epochs_planned} epochs are finished"))
    return join_lines(f"{name:<15}{value}" for name, value in lines if value)
