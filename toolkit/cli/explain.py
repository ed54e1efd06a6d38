"""``toolkit explain``: what job output means."""

import sys
from pathlib import Path

import click
import msgspec

from toolkit.errors import BadInput, CheckFailed

_MOST = 64 << 20
"""Bytes of output that are read; causes stand at the beginning or the end, so the middle is left out."""


@click.command("explain")
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON")
def command(file: str, as_json: bool) -> None:
    """Say what the job output in FILE means and what mends it; - reads standard input.

    Exits 1 where nothing is recognised.

    Example: toolkit explain slurm-12.out
    """
    from toolkit.cli.styles import style_of_stdout, width_of_stdout
    from toolkit.engine.explain import explain
    from toolkit.report.doctor import findings

    found = explain(_read(file).decode("utf-8", "replace"))
    if as_json:
        value = {"schema": "toolkit.explain/1", "findings": found}
        click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))
    elif found:
        click.echo("\n".join(findings(found, style_of_stdout(), width_of_stdout())).rstrip())
    if not found:
        raise CheckFailed(
            f"{'standard input' if file == '-' else file}: nothing in it is recognised",
            fix="read what the rank that failed first wrote; toolkit doctor IMAGE judges the launch itself",
        )


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(_MOST)
    try:
        with Path(file).open("rb") as opened:
            head = opened.read(_MOST // 2)
            size = opened.seek(0, 2)
            opened.seek(max(len(head), size - _MOST // 2))
            return head + opened.read(_MOST // 2)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}", fix="give the file that sbatch wrote, or -") from error
