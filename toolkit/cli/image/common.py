"""What the commands of ``toolkit image`` share."""

import click
import msgspec

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON")


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
