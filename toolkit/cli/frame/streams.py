"""Standard input, output and error, which may be closed or full, or whose reader may have exited."""

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
    """A file descriptor whose errors name it, because the system's errors name no descriptor."""

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
    """Open closed streams, and wrap both outputs: errors name the stream, control characters are replaced."""
    _open_closed_streams()
    sys.stdout, sys.stderr = _safe(sys.stdout, _OUTPUT), _safe(sys.stderr, "standard error")
    sys.excepthook = _print_traceback


@contextlib.contextmanager
def report_write_error() -> Iterator[None]:
    """Report an error of standard output; click alone exits with status 1 silently for a broken pipe."""
    try:
        yield
    except BrokenPipeError as error:
        if not _is_unread():
            raise ToolkitError(
                f"the program that reads toolkit's output has exited: {error.strerror}"
            ) from error
        # The reader of standard output has exited, as `head` does; this is not an error.
        _give_up()
        raise click.exceptions.Exit(0) from error
    except OSError as error:
        if error.filename != _OUTPUT:
            raise
        _give_up()
        raise ToolkitError(
            f"{_OUTPUT}: cannot be written: {error.strerror}",
            fix="free space on that disk, or redirect the output to another file",
        ) from error


def _print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback without the colours of Python 3.13, which the wrapped stream would show as text."""
    import traceback  # only for --debug

    traceback.print_exception(kind, error, trace)


def _safe(stream: TextIO, name: str) -> TextIO:
    """Return a stream that replaces control characters, and whose errors have a name."""
    if isinstance(stream, SafeStream):
        return stream
    below = _with_name(stream, name)
    if isinstance(below, io.TextIOWrapper):
        # A terminal of another encoding shows a question mark for a character that it does not have.
        below.reconfigure(errors="replace")
    return cast(TextIO, SafeStream(below))


def _with_name(stream: TextIO, name: str) -> TextIO:
    """Return a stream whose errors have a name; a stream that is not a file is returned unchanged."""
    below = getattr(stream, "buffer", None)
    unbuffered = type(below) is io.FileIO  # python -u, PYTHONUNBUFFERED
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
    """Open closed streams on the null device, because the next file would otherwise get their numbers.

    Python has ``None`` for a closed stream. ``sys.stdin`` stays ``None``, so that reading it is an error.
    """
    if sys.stdin is None:
        _null()
    if sys.stdout is None:
        sys.stdout = os.fdopen(_null(), "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_null(), "w", closefd=False)


def _null() -> int:
    number = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, the stream's
    os.set_inheritable(number, True)
    return number


def _is_unread() -> bool:
    """Return whether standard output is a pipe whose reader has exited."""
    try:
        polled = select.poll()
        polled.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in polled.poll(0))
    except (OSError, ValueError, AttributeError):  # not a file at all
        return False


def _give_up() -> None:
    """Discard buffered output, because Python would fail again when it writes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
