"""``toolkit image sbom``: print what an image is made of."""

from pathlib import Path

import click

from toolkit.errors import BadInput
from toolkit.image.papers import sbom_of


@click.command("sbom")
@click.argument("sif", type=click.Path(path_type=Path))
def command(sif: Path) -> None:
    """Print the bill of materials of SIF, as CycloneDX JSON.

    It lists every Debian package, wheel and source archive with its hash, also what package lists cannot see:
    an MPI that was compiled, and what Horovod was built with.

    \b
    Examples:
      toolkit image sbom my.sif > my.cdx.json
    """
    if not sif.is_file():
        raise BadInput(f"{sif}: no such file")
    click.echo(sbom_of(sif), nl=False)
