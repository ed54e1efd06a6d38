"""What the commands of ``toolkit image`` share."""

from pathlib import Path

import click
import msgspec

from toolkit.model.facts import HostFacts

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON")
FACTS = click.option(
    "--facts", metavar="FILE", type=click.Path(path_type=Path), help="Facts that toolkit probe -o saved"
)


def host_of(facts: Path | None) -> HostFacts | None:
    """Return the cluster that an image is for: the one place where an option becomes facts.

    Raises:
        BadInput: if the file holds none.
    """
    if facts is None:
        return None
    from toolkit.probe.probe import load

    return load(facts)


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
