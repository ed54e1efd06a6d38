"""``toolkit explain``: what job output means."""

import sys
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

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
    from toolkit.engine.explain import explain, suspects
    from toolkit.report.doctor import findings

    head, skipped, tail = _read(file)
    text, end = head.decode("utf-8", "replace"), tail.decode("utf-8", "replace")
    found = explain(text, end, skipped)
    looks = () if found else suspects(text, end, skipped)
    if as_json:
        value = {"schema": "toolkit.explain/1", "findings": found, "suspects": looks}
        click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))
    elif found:
        click.echo("\n".join(findings(found, style_of_stdout(), width_of_stdout())).rstrip())
    if not found:
        shown = ["the last lines that look like errors:", *looks] if looks else []
        raise CheckFailed(
            f"{'standard input' if file == '-' else file}: nothing in it is recognised",
            fix="read what the rank that failed first wrote; toolkit doctor IMAGE judges the launch itself",
            detail=[] if as_json else shown,
        )


def _read(file: str) -> tuple[bytes, int, bytes]:
    if file == "-":
        if sys.stdin is None:
            raise BadInput("standard input is closed", fix="give the file that sbatch wrote")
        return ends(sys.stdin.buffer, _MOST // 2)
    with open_given(Path(file), fix="give the file that sbatch wrote, or -") as opened:
        return ends(opened, _MOST // 2)


def ends(stream: BinaryIO, half: int) -> tuple[bytes, int, bytes]:
    """Return the beginning, how many line breaks were left out behind it, and the end."""
    head = stream.read(half)
    tail, skipped, whole = bytearray(), 0, True
    while chunk := stream.read(1 << 20):
        tail += chunk
        if (over := len(tail) - half) > 0:
            skipped += tail.count(b"\n", 0, over)
            del tail[:over]
            whole = False
    return (head + bytes(tail), 0, b"") if whole else (head, skipped, bytes(tail))
