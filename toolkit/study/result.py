"""Read the metrics and the job record of a training, and summarise both as the training's result."""

from pathlib import Path

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, CheckFailed
from toolkit.files import is_there, read_given
from toolkit.model.job import JobRecord
from toolkit.model.metrics import METRICS, End, Epoch, MetricsHeader, Resumed, Training, parse_metrics

__all__ = [
    "METRICS", "RECORD", "End", "Epoch", "MetricsHeader", "Result", "Resumed", "Training",
    "parse_metrics", "read_record", "read_training", "summarise",
]  # fmt: skip

RECORD = "record.json"
_LARGEST = 256 << 20
"""Maximum size of a metrics file in bytes, enough for a million epochs."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of ``result.json``. The fields from ``mode`` to ``submitted`` come from the job record.
    These fields are null if the folder has no job record.
    """

    schema: str = "toolkit.result/1"
    trainer: str
    strategy: str
    complete: bool
    world_size: int
    nodes: int
    epochs: int
    """The number of epochs that each rank trained. ``epochs_planned`` is the requested number of epochs."""
    epochs_planned: int
    test_accuracy: float | None
    test_loss: float | None
    accuracy: float
    images_per_second: float | None
    """The training speed of all ranks together, in images per second, over all epochs. The time of
    evaluations and of the start does not count. The speed is null if the epochs took 0 s.
    """
    images: int
    seconds: float
    seconds_per_epoch: tuple[float, ...]
    start_seconds: float
    batch_size: int
    global_batch_size: int
    learning_rate: float
    seed: int
    mode: str | None
    image_digest: str | None
    job: str | None
    job_id: str | None
    place: str | None
    submitted: str | None
    versions: dict[str, str]
    resumed: int = 0
    """The number of times that the training resumed from a checkpoint."""


def read_training(folder: Path) -> Training:
    """Read the metrics of a training from a job's folder or a trainer's output folder.

    Raises:
        BadInput: if the folder has no metrics.
        CheckFailed: if the training finished no epoch.
    """
    path = folder / METRICS
    if not is_there(path):
        raise BadInput(
            f"{folder}: does not contain {METRICS}, and the job's output contains no metrics",
            fix="make the program print lines such as `epoch 1 loss: 0.31 accuracy: 0.9`, or read the output "
            "with `toolkit jobs logs`",
        )
    training = parse_metrics(read_given(path, limit=_LARGEST), str(path))
    if not training.epochs:
        raise CheckFailed(f"{path}: no epoch was finished", fix="see why: `toolkit jobs logs`")
    return training


def read_record(folder: Path) -> JobRecord | None:
    """Return the job record in a folder, or None if the folder has no record.

    Raises:
        BadInput: if ``record.json`` in the folder is not a valid job record.
    """
    path = folder / RECORD
    if not is_there(path):
        return None
    content = read_given(path, limit=_LARGEST)
    try:
        return msgspec.json.decode(content, type=JobRecord)
    except DECODE_ERRORS as error:
        raise BadInput(f"{path}: not a job record: {error}") from error


def summarise(training: Training, record: JobRecord | None) -> Result:
    """Return the result of a training that has finished at least one epoch. The training may still run or may
    have stopped early.
    """
    header, epochs, last = training.header, training.epochs, training.epochs[-1]
    seconds, images = sum(epoch.seconds for epoch in epochs), sum(epoch.images for epoch in epochs)
    return Result(
        trainer=header.trainer,
        strategy=header.strategy,
        complete=training.complete,
        world_size=header.world_size,
        nodes=header.nodes,
        epochs=len(epochs),
        epochs_planned=header.epochs,
        test_accuracy=last.test_accuracy,
        test_loss=last.test_loss,
        accuracy=last.accuracy,
        images_per_second=round(images / seconds, 1) if seconds else None,
        images=images,
        seconds=round(seconds, 4),
        seconds_per_epoch=tuple(epoch.seconds for epoch in epochs),
        start_seconds=header.start_seconds,
        batch_size=header.batch_size,
        global_batch_size=header.global_batch_size,
        learning_rate=header.learning_rate,
        seed=header.seed,
        mode=record.mode if record else None,
        image_digest=record.image_digest if record else None,
        job=record.key if record else None,
        job_id=record.id if record else None,
        place=record.place if record else None,
        submitted=record.submitted if record else None,
        versions=header.versions,
        resumed=training.resumed,
    )
