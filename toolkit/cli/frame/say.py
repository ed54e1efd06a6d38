"""Print lines, texts of several lines, JSON, and output that toolkit must not change.

:class:`SafeStream` escapes control characters in lines, texts and JSON. The escapes are JSON escapes, so
they do not change the values that a JSON parser reads. A printed line never contains a line break, even if
the line quotes text with line breaks. toolkit writes job scripts, and the output of a program on a node,
unchanged to a file or pipe. On a terminal, toolkit escapes control characters in the scripts and the output.
"""

import sys

import click

from toolkit.report.plain import join_lines
from toolkit.report.safe_stream import SafeStream


def say(*lines: object, err: bool = False) -> None:
    """Print lines to standard output. If ``err`` is true, print the lines to standard error."""
    if lines:
        click.echo(join_lines(map(str, lines)), err=err)


def say_text(text: str) -> None:
    """Print a text of several lines, such as a table.

    Callers first escape line breaks inside a line, for example with :func:`~toolkit.report.plain.join_lines`.
    """
    click.echo(text)


def say_json(value: object, *, indent: bool = False) -> None:
    """Print a value as JSON. A value of type bytes must already be JSON."""
    import msgspec  # slow import, which --help does not need

    encoded = value if isinstance(value, bytes) else msgspec.json.encode(value)
    click.echo((msgspec.json.format(encoded, indent=2) if indent else encoded).decode())


def say_exact(content: str | bytes, *, err: bool = False) -> None:
    """Print a job script, or the output of a program on a node, without an added line break.

    The function prints to standard output. If ``err`` is true, it prints to standard error.
    """
    stream = sys.stderr if err else sys.stdout
    if isinstance(stream, SafeStream):
        stream.write_exact(
            content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        )
    else:
        click.echo(content, nl=False, err=err)
