"""What a command prints, in the four forms that there are; everything goes through the door.

A line cannot hold a second one, whatever it quotes. A text was composed of such lines. JSON keeps its value,
because the door writes a character that it makes visible as JSON does. A script, and the output of a
program on a node, reaches a file or a pipe byte for byte; on a terminal it is shown as any other text.
"""

import sys

import click

from toolkit.report.door import Door
from toolkit.report.plain import joined


def say(*lines: object, err: bool = False) -> None:
    """Print lines, to standard error with ``err``."""
    if lines:
        click.echo(joined(map(str, lines)), err=err)


def say_text(text: str) -> None:
    """Print a text of several lines, which toolkit composed by :func:`toolkit.report.plain.joined`."""
    click.echo(text)


def say_json(value: object, *, indent: bool = False) -> None:
    """Print a value, or bytes that are JSON already, as JSON."""
    import msgspec  # not for those who only ask for help

    encoded = value if isinstance(value, bytes) else msgspec.json.encode(value)
    click.echo((msgspec.json.format(encoded, indent=2) if indent else encoded).decode())


def say_exact(content: str | bytes, *, err: bool = False) -> None:
    """Print a job script, or the output of a program on a node; no line feed is added."""
    stream = sys.stderr if err else sys.stdout
    if isinstance(stream, Door):
        stream.write_exact(
            content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        )
    else:
        click.echo(content, nl=False, err=err)
