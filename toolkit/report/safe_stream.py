"""Escape control characters in all text that toolkit writes to standard output and standard error."""

import io
from typing import TextIO

from toolkit.report.plain import colour_styles, make_visible, remove_styles


class SafeStream(io.TextIOBase):
    """A text stream that escapes control characters, and writes the result to another stream.

    If the other stream is a terminal, toolkit's style codes become colours. If the other stream is a file or
    a pipe, a :class:`SafeStream` removes the style codes. A :class:`SafeStream` has no attribute ``buffer``,
    so that no library can write unfiltered bytes.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()

    @property
    def name(self) -> str:
        return self._stream.name

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed declares an attribute
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # typeshed declares an attribute
        return self._stream.errors

    def write(self, text: str | bytes, /) -> int:
        # click writes the results of shell completion as bytes, even to a stream without ``buffer``.
        safe = make_visible(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
        self._stream.write(colour_styles(safe) if self._terminal else remove_styles(safe))
        return len(text)

    def write_exact(self, content: bytes) -> None:
        """Write bytes unchanged to a file or a pipe. On a terminal, write the bytes as text, with escaped
        control characters.
        """
        if self._terminal:
            self.write(content.decode("utf-8", "replace"))
        else:
            self._stream.flush()
            self._stream.buffer.write(content)
        self.flush()

    def flush(self) -> None:
        # Python 3.13 reports an error if its garbage collector flushes a closed stream.
        if not self._stream.closed:
            self._stream.flush()

    def isatty(self) -> bool:
        return self._terminal

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True


def unfiltered_stream(stream: TextIO) -> TextIO:
    """Return the stream to which a :class:`SafeStream` writes. If ``stream`` is not a :class:`SafeStream`,
    return ``stream``.

    Progress lines need the unfiltered stream, because they contain codes that move the cursor, and a
    :class:`SafeStream` escapes these codes.
    """
    return stream._stream if isinstance(stream, SafeStream) else stream  # noqa: SLF001 - the same module
