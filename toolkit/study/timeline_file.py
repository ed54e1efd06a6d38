"""Read the file of Horovod's timeline in parts. The file can have hundreds of megabytes. It can be truncated.

A timeline is one JSON array in the format of Chrome's trace viewer, with one or several events per line.
Horovod writes the closing bracket only at an orderly shutdown (horovod/common/timeline.cc).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput
from toolkit.files import open_given

_CHUNK = 4 << 20
_LONGEST = 64 << 20
"""Maximum size of one event in bytes. A file with a longer event is not a timeline."""


class Args(msgspec.Struct, gc=False):
    """The arguments of an event: the name of a tensor, its type and its shape."""

    name: str = ""
    dtype: str = ""
    shape: str = ""


class Event(msgspec.Struct, gc=False):
    """An event of a timeline. ``ts`` is the time in microseconds; ``pid`` identifies a tensor."""

    ph: str
    name: str = ""
    ts: int | float = 0
    pid: int = -1
    args: Args | None = None


def events(file: Path) -> Iterator[list[Event]]:
    """Yield the events of a timeline in several lists. Skip a truncated event at the end of the file.

    Raises:
        BadInput: if the file cannot be read or is not a timeline.
    """
    with open_given(file) as stream:
        try:
            yield from _events(stream, str(file))
        except OSError as error:
            raise BadInput(f"{file}: cannot be read: {error.strerror}") from error


def _events(stream: IO[bytes], name: str) -> Iterator[list[Event]]:
    decoder = msgspec.json.Decoder(list[Event])
    rest, at, begun = b"", 0, False
    while chunk := stream.read(_CHUNK):
        text = rest + chunk
        if not begun:
            text = _event_list(text, name)
            begun = True
        # Either `},{` or `},\n{` separates two events.
        # Within an event, only a tensor's name could contain a separator.
        # toolkit assumes that no tensor's name contains a separator.
        cut = max(text.rfind(b"},{"), text.rfind(b"},\n{"))
        if cut < 0:
            if len(text) > _LONGEST:
                raise BadInput(
                    f"{name}: not a timeline of Horovod: no event ends within the {len(text) >> 20} MiB "
                    f"after byte {at}"
                )
            rest = text
            continue
        whole, rest = text[: cut + 1], text[cut + 2 :]
        yield _decoded(decoder, whole, name, at)
        at += len(whole) + 1
    if not begun:
        raise BadInput(
            f"{name}: the file is empty; Horovod writes a timeline to the file that HOROVOD_TIMELINE names"
        )
    yield _last(decoder, rest, name, at)


def _event_list(text: bytes, name: str) -> bytes:
    start = text.lstrip()
    if not start.startswith(b"["):
        raise BadInput(f"{name}: not a timeline of Horovod: it does not begin with '['")
    return start[1:]


def _decoded(
    decoder: "msgspec.json.Decoder[list[Event]]", content: bytes, name: str, offset: int
) -> list[Event]:
    try:
        return decoder.decode(b"[" + content + b"]")
    except DECODE_ERRORS as error:
        raise BadInput(
            f"{name}: not a timeline of Horovod: {error}, in the events from byte {offset} on"
        ) from error


def _last(
    decoder: "msgspec.json.Decoder[list[Event]]", content: bytes, name: str, offset: int
) -> list[Event]:
    """Decode the last events of a timeline, and skip a truncated event and the closing bracket."""
    text = content.decode("utf-8", "replace").strip()
    whole: list[Any] = []
    scan = json.JSONDecoder()
    while text and text[0] == "{":
        try:
            value, end = scan.raw_decode(text)
        except ValueError:
            break  # the event is truncated
        whole.append(value)
        text = text[end:].lstrip().removeprefix(",").lstrip()
    return _decoded(decoder, json.dumps(whole)[1:-1].encode(), name, offset)
