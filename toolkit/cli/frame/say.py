"""Print lines, texts, JSON and exact bytes. Lines, texts and JSON pass through :class:`SafeStream`.

A printed line never contains a line break, even if it quotes text with line breaks. The stream writes control
characters as JSON escapes, so a parser reads the same JSON values. toolkit writes job scripts, and the
output of a program on a node, unchanged to a file or pipe. On a terminal, toolkit escapes control characters
in the scripts and the output.
"""

import sys

import click

from toolkit.report.plain import join_lines
from toolkit.report.safe_stream import SafeStream


def say(*lines: object, err: bool = False) -> None:
    """Print lines to standard output, or with ``err`` to standard error."""
    if lines:
        click.echo(join_lines(map(str, lines)), err=err)


def say_text(text: str) -> None:
    """Print a text of several lines that :func:`toolkit.report.plain.join_lines` returned."""
    click.echo(text)


def say_json(value: object, *, indent: bool = False) -> None:
    """Print a value as JSON; a value of type bytes is already JSON."""
    import msgspec  # slow import, which --help does not need

    encoded = value if isinstance(value, bytes) else msgspec.json.encode(value)
    click.echo((msgspec.json.format(encoded, indent=2) if indent else encoded).decode())


def say_exact(content: str | bytes, *, err: bool = False) -> None:
    """Print a job script, or the output of a program on a node, and add no line break."""
    stream = sys.stderr if err else sys.stdout
    if isinstance(stream, SafeStream):
        stream.write_exact(
            content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        )
    else:
        click.echo(content, nl=False, err=err)
