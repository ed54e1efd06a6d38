"""Replace closed standard streams, and report errors of writing to standard output, such as a full disk."""

import contextlib
import io
import os
import select
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, TextIO, cast

import click

from toolkit.errors import ToolkitError
from toolkit.report.safe_stream import SafeStream

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


_OUTPUT = "standard output"


class _NamedFile(io.FileIO):
    """A file that adds the stream's name to errors, because the system's errors do not name the stream."""

    def __init__(self, number: int, name: str) -> None:
        super().__init__(number, "w", closefd=False)
        self._name = name

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self._name
            raise


def prepare() -> None:
    """Open closed standard streams, and wrap standard output and standard error.

    A wrapped stream escapes control characters. An error of writing to a wrapped stream names the stream.
    """
    _open_closed_streams()
    sys.stdout, sys.stderr = _safe(sys.stdout, _OUTPUT), _safe(sys.stderr, "standard error")
    sys.excepthook = _print_traceback


@contextlib.contextmanager
def report_write_error() -> Iterator[None]:
    """Exit with status 0 if the reader of standard output has exited. Report other errors of writing to it.

    Without this function, click would treat all broken pipes alike: exit with status 1 and print no message.
    """
    try:
        yield
    except BrokenPipeError as error:
        if not _is_unread():
            raise ToolkitError(
                f"toolkit wrote to a pipe, but the program that reads the pipe has exited: {error.strerror}"
            ) from error
        # The reader of standard output has exited, as `head` does, so toolkit reports no error.
        _give_up()
        raise click.exceptions.Exit(0) from error
    except OSError as error:
        if error.filename != _OUTPUT:
            raise
        _give_up()
        raise ToolkitError(
            f"{_OUTPUT}: cannot be written: {error.strerror}",
            fix="delete files on the disk of the output file, or redirect the output to another file",
        ) from error


def _print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback without Python 3.13's colours, which the wrapped stream would show as text."""
    import traceback  # needed only with --debug

    traceback.print_exception(kind, error, trace)


def _safe(stream: TextIO, name: str) -> TextIO:
    """Return a stream that escapes control characters, and whose errors contain ``name``."""
    if isinstance(stream, SafeStream):
        return stream
    below = _with_name(stream, name)
    if isinstance(below, io.TextIOWrapper):
        # Print a question mark for a character that the stream's encoding cannot represent.
        below.reconfigure(errors="replace")
    return cast(TextIO, SafeStream(below))


def _with_name(stream: TextIO, name: str) -> TextIO:
    """Return a stream whose errors contain ``name``. If ``stream`` is not a file, return ``stream``."""
    below = getattr(stream, "buffer", None)
    unbuffered = type(below) is io.FileIO  # python -u or PYTHONUNBUFFERED
    if not isinstance(stream, io.TextIOWrapper) or (not unbuffered and not _is_plain(below)):
        return stream
    file = _NamedFile(stream.fileno(), name)
    return io.TextIOWrapper(
        file if unbuffered else io.BufferedWriter(file),
        encoding=stream.encoding,
        line_buffering=stream.line_buffering,
        write_through=unbuffered,
    )


def _is_plain(buffer: object) -> bool:
    return isinstance(buffer, io.BufferedWriter) and type(buffer.raw) is io.FileIO


def _open_closed_streams() -> None:
    """Open each closed standard stream on the null device.

    If a descriptor stayed closed, the next file that toolkit opens would get this descriptor, and output
    could overwrite the file. If a stream is closed when Python starts, Python sets the stream in :mod:`sys`
    to ``None``. This function leaves ``sys.stdin`` at ``None``, so that commands report closed standard input
    as an error.
    """
    if sys.stdin is None:
        _null()
    if sys.stdout is None:
        sys.stdout = os.fdopen(_null(), "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_null(), "w", closefd=False)


def _null() -> int:
    # os.open returns the lowest free descriptor, which is the descriptor of the closed stream.
    number = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(number, True)
    return number


def _is_unread() -> bool:
    """Return whether standard output is a pipe whose reader has exited."""
    try:
        polled = select.poll()
        polled.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in polled.poll(0))
    except (OSError, ValueError, AttributeError):  # standard output is not a file
        return False


def _give_up() -> None:
    """Discard the output in Python's buffers. At exit, Python would try to write this output, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
