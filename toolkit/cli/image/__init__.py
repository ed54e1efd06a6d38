"""``toolkit image``: recipes, images in the Docker engine, SIF files; one module a command."""

import click

from toolkit.cli.frame.lazy import LazyGroup

_COMMANDS = {
    "list": ("toolkit.cli.image.list", "List the recipes and what is in them"),
    "show": ("toolkit.cli.image.show", "Show what a recipe asks for"),
    "solve": ("toolkit.cli.image.solve", "Say which versions a recipe gives, and why"),
    "render": ("toolkit.cli.image.render", "Print the text that an image is built from"),
    "lock": ("toolkit.cli.image.lock", "Write down every byte that an image is made from"),
    "build": ("toolkit.cli.image.build", "Build the image of a recipe, and try it"),
    "sif": ("toolkit.cli.image.sif", "Turn an image into one SIF file"),
    "inspect": ("toolkit.cli.image.inspect", "Say what is in an image without starting it"),
    "sbom": ("toolkit.cli.image.sbom", "Print the bill of materials of an image"),
    "sign": ("toolkit.cli.image.sign", "Sign a SIF by PGP, as Apptainer does"),
    "verify": ("toolkit.cli.image.verify", "Check signature and checksum of a SIF, and what is inside"),
    "push": ("toolkit.cli.image.push", "Send an image to a registry, or to a cluster over SSH"),
    "pull": ("toolkit.cli.image.pull", "Fetch an image from a registry into one file"),
    "bundle": ("toolkit.cli.image.bundle", "Write all that a machine without a network needs"),
    "unbundle": ("toolkit.cli.image.unbundle", "Put what a bundle holds in its places"),
    "adopt": ("toolkit.cli.image.adopt", "Describe an image that somebody else made"),
}


@click.group("image", cls=LazyGroup, table=_COMMANDS)
def command() -> None:
    """Build, convert and inspect images.

    RECIPE is a name that `toolkit image list` shows, or the path of a TOML file.
    """
