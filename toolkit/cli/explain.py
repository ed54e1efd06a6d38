"""``toolkit explain``: what job output means."""

import sys
from pathlib import Path
from typing import BinaryIO

import click

from toolkit.cli.say import say, say_json
from toolkit.errors import BadInput, CheckFailed
from toolkit.files import open_given

_MOST = 64 << 20
"""Bytes of output that are kept; causes stand at the beginning or the end, so the middle is left out."""


@click.command("explain")
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON")
def command(file: str, as_json: bool) -> None:
    """Say what the job output in FILE means and what mends it; - reads standard input.

    Causes stand before their consequences. Exits 1 where nothing is recognised, and shows the
    last lines that look like errors.

    Example: toolkit explain slurm-12.out
    """
    from toolkit.cli.styles import style_of_stdout, width_of_stdout
    from toolkit.engine.explain import explanation, suspected
    from toolkit.engine.joblines import Output
    from toolkit.report.doctor import findings

    output = Output(*_read(file))
    found = explanation(output)
    looks = () if found.findings else suspected(output)
    if as_json:
        value = {
            "schema": "toolkit.explain/1",
            "findings": found.findings,
            "suspects": looks,
            "unread": found.unread,
        }
        say_json(value, indent=True)
    elif found.findings:
        *lines, _ = findings(found.findings, style_of_stdout(), width_of_stdout())  # the last one is empty
        say(*lines)
    name = "standard input" if file == "-" else file
    if found.unread:
        first, last = found.unread
        say(f"toolkit: {name}: lines {first} to {last} were not all read: too much output", err=True)
    if not found.findings:
        shown = ["the last lines that look like errors:", *looks] if looks else []
        raise CheckFailed(
            f"{name}: nothing in it is recognised",
            fix="read what the rank that failed first wrote; toolkit doctor IMAGE judges the launch itself",
            detail=[] if as_json else shown,
        )


def _read(file: str) -> tuple[bytes, bytes, int]:
    if file == "-":
        if sys.stdin is None:
            raise BadInput("standard input is closed", fix="give the file that sbatch wrote")
        return ends(sys.stdin.buffer, _MOST // 2)
    with open_given(Path(file), fix="give the file that sbatch wrote, or -") as opened:
        return ends(opened, _MOST // 2)


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
