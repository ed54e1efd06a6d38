"""Read job output of any size and explain it."""

from pathlib import Path
from typing import BinaryIO

from toolkit.engine.logs.explain import explanation, suspected
from toolkit.engine.logs.joblines import Output
from toolkit.files import open_given
from toolkit.model.finding import OutputExplanation

_MOST = 64 << 20
"""Bytes of output that are kept; causes are near the beginning or the end, so the middle is skipped."""


def of_file(path: Path) -> OutputExplanation:
    """Return the explanation of a file.

    Raises:
        BadInput: if the file does not exist or cannot be read.
    """
    with open_given(path, fix="give the file that sbatch wrote, or -") as opened:
        return of_stream(opened)


def of_stream(stream: BinaryIO) -> OutputExplanation:
    """Return the explanation of what a stream holds; of more than 64 MiB the middle is skipped."""
    return _of_output(Output(*ends(stream, _MOST // 2)))


def of_text(text: str | bytes) -> OutputExplanation:
    """Return the explanation of a text."""
    return _of_output(Output(text))


def _of_output(output: Output) -> OutputExplanation:
    found = explanation(output)
    suspects = () if found.findings else suspected(output)
    return OutputExplanation(findings=found.findings, suspects=suspects, unread=found.unread)


def ends(stream: BinaryIO, half: int) -> tuple[bytes, bytes, int]:
    """Return the beginning, the end, and how many line breaks were left out between them."""
    head = stream.read(2 * half)
    chunk = stream.read(1 << 20)
    if not chunk:
        return head, b"", 0
    tail, skipped = bytearray(head[half:]), 0
    head = head[:half]
    while chunk:
        tail += chunk
        over = len(tail) - half
        skipped += tail.count(b"\n", 0, over)
        del tail[:over]
        chunk = stream.read(1 << 20)
    return head, bytes(tail), skipped
