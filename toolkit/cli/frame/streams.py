"""Standard input, output and error, which may be closed, full, or read by a program that has gone."""

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
from toolkit.report.door import Door

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


_OUTPUT = "standard output"


class _Named(io.FileIO):
    """A file without a name, whose errors have one; the system gives none, and any other file may be full."""

    def __init__(self, number: int, told: str) -> None:
        super().__init__(number, "w", closefd=False)
        self._told = told

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self._told
            raise


def prepare() -> None:
    """Open what is closed, name the outputs in their errors, and put the door in front of both of them."""
    _open_what_is_closed()
    sys.stdout, sys.stderr = _door(sys.stdout, _OUTPUT), _door(sys.stderr, "standard error")
    sys.excepthook = _print_traceback


@contextlib.contextmanager
def written() -> Iterator[None]:
    """Tell that standard output fails; click would end in 1 without a word for any broken pipe."""
    try:
        yield
    except BrokenPipeError as error:
        if not _is_unread():
            raise ToolkitError(f"a program that was being written to ended: {error.strerror}") from error
        # Whoever read our output has gone; that is no fault, and nobody is left to tell.
        _give_up()
        raise click.exceptions.Exit(0) from error
    except OSError as error:
        if error.filename != _OUTPUT:
            raise
        _give_up()
        raise ToolkitError(
            f"{_OUTPUT} cannot be written to: {error.strerror}",
            fix="make room where it goes, or send it elsewhere",
        ) from error


def _print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback without the colours that Python 3.13 adds, which the door would show as text."""
    import traceback  # for --debug alone

    traceback.print_exception(kind, error, trace)


def _door(stream: TextIO, told: str) -> TextIO:
    """Return the door to a stream, whose errors are named."""
    if isinstance(stream, Door):
        return stream
    below = _named(stream, told)
    if isinstance(below, io.TextIOWrapper):
        # A terminal of another encoding shows a question mark for a character that it does not have.
        below.reconfigure(errors="replace")
    return cast(TextIO, Door(below))


def _named(stream: TextIO, told: str) -> TextIO:
    """Return a stream whose errors are named; as it is where it is no file."""
    below = getattr(stream, "buffer", None)
    unbuffered = type(below) is io.FileIO  # python -u, PYTHONUNBUFFERED
    if not isinstance(stream, io.TextIOWrapper) or (not unbuffered and not _is_plain(below)):
        return stream
    file = _Named(stream.fileno(), told)
    return io.TextIOWrapper(
        file if unbuffered else io.BufferedWriter(file),
        encoding=stream.encoding,
        line_buffering=stream.line_buffering,
        write_through=unbuffered,
    )


def _is_plain(buffer: object) -> bool:
    return isinstance(buffer, io.BufferedWriter) and type(buffer.raw) is io.FileIO


def _open_what_is_closed() -> None:
    """Give what is closed to the null device: the next file that is opened would get its number.

    Python has ``None`` for such a stream. That of the input stays, so that whoever wants to read is told.
    """
    if sys.stdin is None:
        _null()
    if sys.stdout is None:
        sys.stdout = os.fdopen(_null(), "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_null(), "w", closefd=False)


def _null() -> int:
    number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free, which is that of the stream
    os.set_inheritable(number, True)
    return number


def _is_unread() -> bool:
    """Tell whether whoever read our standard output, a pipe, has gone."""
    try:
        polled = select.poll()
        polled.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in polled.poll(0))
    except (OSError, ValueError, AttributeError):  # not a file at all
        return False


def _give_up() -> None:
    """Let what waits to be written go nowhere, as it would fail once more at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
