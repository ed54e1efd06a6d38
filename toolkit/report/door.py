"""The door: the one stream through which toolkit writes text to standard output and standard error."""

import io
from typing import TextIO

from toolkit.report.plain import coloured, shown, uncoloured


class Door(io.TextIOBase):
    """A stream that makes visible all that could steer a terminal; only the styles of toolkit pass.

    It has no ``buffer``, so a library that wants to write bytes cannot go around it.
    """

    def __init__(self, below: TextIO) -> None:
        self._below = below
        self._terminal = below.isatty()

    @property
    def name(self) -> str:
        return self._below.name

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has an attribute; nothing sets it
        return self._below.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # the same
        return self._below.errors

    def write(self, text: str | bytes, /) -> int:
        # click writes shell completion as bytes, to a stream without ``buffer`` too.
        safe = shown(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
        self._below.write(coloured(safe) if self._terminal else uncoloured(safe))
        return len(text)

    def write_exact(self, content: bytes) -> None:
        """Write bytes as they are to a file or a pipe; on a terminal, as any other text."""
        if self._terminal:
            self.write(content.decode("utf-8", "replace"))
        else:
            self._below.flush()
            self._below.buffer.write(content)
        self.flush()

    def flush(self) -> None:
        # Python 3.13 reports an error of the flush with which a collected stream closes itself.
        if not self._below.closed:
            self._below.flush()

    def isatty(self) -> bool:
        return self._terminal

    def fileno(self) -> int:
        return self._below.fileno()

    def writable(self) -> bool:
        return True


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream below the door, for the animation of :mod:`toolkit.report.progress` alone."""
    return stream._below if isinstance(stream, Door) else stream  # noqa: SLF001 - the door's own module
