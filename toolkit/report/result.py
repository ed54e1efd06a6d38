"""Read what a training wrote, join it with the record of its job, and say what came of it."""

from pathlib import Path

import msgspec

from toolkit.errors import BadInput, CheckFailed
from toolkit.model.job import JobRecord

METRICS = "metrics.jsonl"
RECORD = "record.json"
_SCHEMA = "toolkit.metrics/1"


class Header(msgspec.Struct, frozen=True, kw_only=True, tag="header", tag_field="record"):
    """First line of the metrics; see ``docs/metrics.md``. Fields of a later release are passed over."""

    schema: str
    trainer: str
    strategy: str
    world_size: int
    nodes: int
    threads: int
    batch_size: int
    global_batch_size: int
    epochs: int
    learning_rate: float
    seed: int
    samples: int
    test_samples: int
    parameters: int
    start_seconds: float
    versions: dict[str, str]


class Epoch(msgspec.Struct, frozen=True, kw_only=True, tag="epoch", tag_field="record"):
    """One epoch of all ranks."""

    epoch: int
    seconds: float
    images: int
    images_per_second: float
    loss: float
    accuracy: float
    test_loss: float
    test_accuracy: float


class Resumed(msgspec.Struct, frozen=True, kw_only=True, tag="resumed", tag_field="record"):
    """The training went on from a checkpoint; what it says of its size holds from here on."""

    world_size: int | None = None
    nodes: int | None = None
    threads: int | None = None
    global_batch_size: int | None = None
    learning_rate: float | None = None


class End(msgspec.Struct, frozen=True, kw_only=True, tag="result", tag_field="record"):
    """Last line: that it is there says that the training came to its end."""

    epochs: int
    test_loss: float
    test_accuracy: float
    seconds: float
    images: int
    images_per_second: float
    model: str


class Training(msgspec.Struct, frozen=True):
    """The metrics of one run; ``complete`` is false for one that was cut off or still goes on.

    ``header`` holds what was so in the end, ``resumed`` how often it went on from a checkpoint.
    """

    header: Header
    epochs: tuple[Epoch, ...]
    complete: bool
    resumed: int = 0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """``result.json``. What the job's record tells is null for metrics that belong to no record."""

    schema: str = "toolkit.result/1"
    trainer: str
    strategy: str
    complete: bool
    world_size: int
    nodes: int
    epochs: int
    """Epochs that each rank trained; ``epochs_planned`` is how many it should have."""
    epochs_planned: int
    test_accuracy: float
    test_loss: float
    accuracy: float
    images_per_second: float | None
    """Of all ranks together, over all epochs; evaluation and start are left out. Null if they took 0 s."""
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
    """How often the training went on from a checkpoint."""


def parse_metrics(text: bytes, name: str = METRICS) -> Training:
    """Read metrics line by line; a last line that was cut off, and lines of a later kind, are passed over.

    Raises:
        BadInput: naming the line and the field, if it is no file of metrics.
    """
    whole, _, _ = text.rpartition(b"\n")
    read = (_line(line, f"{name}:{number}") for number, line in enumerate(whole.splitlines(), 1))
    lines = [line for line in read if line is not None]
    if not lines or not isinstance(lines[0], Header):
        raise BadInput(f"{name}: does not begin with a header of {_SCHEMA}")
    header = lines[0]
    if header.schema != _SCHEMA:
        raise BadInput(f"{name}:1: schema {header.schema} is not known; this toolkit reads {_SCHEMA}")
    again = [line for line in lines if isinstance(line, Resumed)]
    for one in again:
        told = {key: value for key, value in msgspec.structs.asdict(one).items() if value is not None}
        header = msgspec.structs.replace(header, **told)
    epochs = tuple(line for line in lines if isinstance(line, Epoch))
    return Training(header, epochs, any(isinstance(line, End) for line in lines), len(again))


def read_training(folder: Path) -> Training:
    """Read the metrics in the folder of a job or of a trainer's output.

    Raises:
        BadInput: if there are none, or no epoch was finished.
    """
    path = folder / METRICS
    try:
        training = parse_metrics(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise BadInput(f"{folder}: holds no {METRICS}; only trainers of toolkit write it") from None
    if not training.epochs:
        raise CheckFailed(f"{path}: not one epoch was finished", fix="see why: toolkit jobs logs")
    return training


def read_record(folder: Path) -> JobRecord | None:
    """Return the record of the job in a folder, ``None`` if there is none."""
    path = folder / RECORD
    try:
        return msgspec.json.decode(path.read_bytes(), type=JobRecord)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise BadInput(f"{path}: not a job record: {error}") from error


def summarise(training: Training, record: JobRecord | None) -> Result:
    """Say what came of a training; of one that was cut off, what came until then."""
    header, epochs, last = training.header, training.epochs, training.epochs[-1]
    seconds, images = sum(one.seconds for one in epochs), sum(one.images for one in epochs)
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
        seconds_per_epoch=tuple(one.seconds for one in epochs),
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


class _Any(msgspec.Struct):
    record: str


_KINDS = {"header", "resumed", "epoch", "result"}


def _line(line: bytes, where: str) -> Header | Resumed | Epoch | End | None:
    try:
        if msgspec.json.decode(line, type=_Any).record not in _KINDS:
            return None
        return msgspec.json.decode(line, type=Header | Resumed | Epoch | End)
    except msgspec.DecodeError as error:
        raise BadInput(f"{where}: {error}") from error
