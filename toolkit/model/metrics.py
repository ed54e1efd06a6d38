"""Parse a trainer's metrics file, ``metrics.jsonl``; ``docs/metrics.md`` describes the lines of the file."""

from typing import Annotated

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput

METRICS = "metrics.jsonl"
_SCHEMA = "toolkit.metrics/1"

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A whole number that every JSON parser represents exactly (RFC 8259, section 6)."""

Measure = Annotated[float, msgspec.Meta(ge=-1e40, le=1e40)]
"""A number that a plot can show. The limits allow all single-precision numbers, up to 3.4e38 (IEEE 754)."""

Name = Annotated[str, msgspec.Meta(max_length=255)]

Path = Annotated[str, msgspec.Meta(max_length=4096)]
"""A path; Linux allows at most PATH_MAX (4096) bytes."""


class MetricsHeader(msgspec.Struct, frozen=True, kw_only=True, tag="header", tag_field="record"):
    """The first line of the metrics file; see ``docs/metrics.md``. toolkit ignores unknown fields, which
    later releases may add.
    """

    schema: Name
    trainer: Name
    strategy: Name
    world_size: Count
    nodes: Count
    threads: Count
    batch_size: Count
    global_batch_size: Count
    epochs: Count
    learning_rate: Measure
    seed: Count
    samples: Count
    test_samples: Count
    parameters: Count
    start_seconds: Measure
    versions: Annotated[dict[Name, Name], msgspec.Meta(max_length=255)]


class Epoch(msgspec.Struct, frozen=True, kw_only=True, tag="epoch", tag_field="record"):
    """The measured values of one epoch for all ranks together.

    ``test_loss`` and ``test_accuracy`` are ``None`` if the trainer did not evaluate the model, as in a
    benchmark. A loss that is infinite or NaN is also ``None``. ``input_seconds`` is the time for which a rank
    waited for samples, averaged over all ranks.
    """

    epoch: Count
    seconds: Measure
    images: Count
    images_per_second: Measure
    loss: Measure | None
    accuracy: Measure
    test_loss: Measure | None = None
    test_accuracy: Measure | None = None
    input_seconds: Measure | None = None


class Resumed(msgspec.Struct, frozen=True, kw_only=True, tag="resumed", tag_field="record"):
    """The line that a trainer writes after it resumes from a checkpoint. The values in this line replace the
    header's values for the lines after this line; ``None`` keeps the earlier value.
    """

    world_size: Count | None = None
    nodes: Count | None = None
    threads: Count | None = None
    global_batch_size: Count | None = None
    learning_rate: Measure | None = None


class End(msgspec.Struct, frozen=True, kw_only=True, tag="result", tag_field="record"):
    """The last line of the metrics file. A training that did not finish has no such line."""

    epochs: Count
    test_loss: Measure | None = None
    test_accuracy: Measure | None = None
    seconds: Measure
    images: Count
    images_per_second: Measure
    model: Path | None = None


class Training(msgspec.Struct, frozen=True):
    """The content of one metrics file; ``complete`` is false if the training did not finish.

    ``header`` contains the values that apply after the training last resumed. ``resumed`` says how many times
    the training resumed from a checkpoint.
    """

    header: MetricsHeader
    epochs: tuple[Epoch, ...]
    complete: bool
    resumed: int = 0


def parse_metrics(text: bytes, name: str = METRICS) -> Training:
    """Return the training that a metrics file describes. The function ignores lines with an unknown
    ``record``, and a last line without a line break.

    ``name`` is the name of the file in error messages.

    Raises:
        BadInput: if the file is not a metrics file; the message names the line and the field.
    """
    whole, _, _ = text.rpartition(b"\n")
    read = (_line(line, f"{name}:{number}") for number, line in enumerate(whole.splitlines(), 1))
    lines = [line for line in read if line is not None]
    if not lines or not isinstance(lines[0], MetricsHeader):
        raise BadInput(f"{name}: the first line is not a metrics header with the schema {_SCHEMA}")
    header = lines[0]
    if header.schema != _SCHEMA:
        raise BadInput(f"{name}:1: unknown schema {header.schema}; this release of toolkit reads {_SCHEMA}")
    again = [line for line in lines if isinstance(line, Resumed)]
    for one in again:
        told = {key: value for key, value in msgspec.structs.asdict(one).items() if value is not None}
        header = msgspec.structs.replace(header, **told)
    epochs = tuple(line for line in lines if isinstance(line, Epoch))
    return Training(header, epochs, any(isinstance(line, End) for line in lines), len(again))


class _Any(msgspec.Struct):
    record: str


_KINDS = {"header", "resumed", "epoch", "result"}
# Create the decoders only once, because a file may have a million lines.
_KIND = msgspec.json.Decoder(_Any)
_Record = MetricsHeader | Resumed | Epoch | End
_LINE: "msgspec.json.Decoder[_Record]" = msgspec.json.Decoder(_Record)


def _line(line: bytes, source: str) -> _Record | None:
    try:
        if _KIND.decode(line).record not in _KINDS:
            return None
        return _LINE.decode(line)
    except DECODE_ERRORS as error:
        raise BadInput(f"{source}: {error}") from error


def are_whole(content: bytes) -> bool:
    """Return true if the bytes are a valid metrics file, and the training in this file finished."""
    try:
        return parse_metrics(content).complete
    except BadInput:
        return False
