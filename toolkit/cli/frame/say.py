"""Print lines, texts, JSON and exact bytes. All texts and JSON go through :class:`SafeStream`.

A printed line never contains a line break, even if it quotes text with line breaks. JSON keeps its value,
because the stream escapes control characters as JSON does. A script, and the output of a program on a node,
reaches a file or a pipe byte for byte; a terminal shows it without control characters.
"""

import sys

import click

from toolkit.report.plain import join_lines
from toolkit.report.safe_stream import SafeStream


def say(*lines: object, err: bool = False) -> None:
    """Print lines, to standard error with ``err``."""
    if lines:
        click.echo(join_lines(map(str, lines)), err=err)


def say_text(text: str) -> None:
    """Print a text of several lines, made by :func:`toolkit.report.plain.join_lines`."""
    click.echo(text)


def say_json(value: object, *, indent: bool = False) -> None:
    """Print a value as JSON; bytes are JSON already."""
    import msgspec  # slow, so not needed for --help

    encoded = value if isinstance(value, bytes) else msgspec.json.encode(value)
    click.echo((msgspec.json.format(encoded, indent=2) if indent else encoded).decode())


def say_exact(content: str | bytes, *, err: bool = False) -> None:
    """Print a job script, or the output of a program on a node, without an added line break."""
    stream = sys.stderr if err else sys.stdout
    if isinstance(stream, SafeStream):
        stream.write_exact(
            content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        )
    else:
        click.echo(content, nl=False, err=err)
