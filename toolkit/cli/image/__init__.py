"""``toolkit image``: work with recipes, Docker images and SIF files. Each subcommand has its own module."""

import click

from toolkit.cli.frame.lazy import LazyGroup

_COMMANDS = {
    "list": ("toolkit.cli.image.list", "List the recipes with their versions"),
    "show": ("toolkit.cli.image.show", "Show a recipe and its versions"),
    "solve": ("toolkit.cli.image.solve", "Show the versions that toolkit chooses for a recipe, and why"),
    "render": ("toolkit.cli.image.render", "Print the Dockerfile or Singularity definition of a recipe"),
    "lock": ("toolkit.cli.image.lock", "Write a recipe's lock file: each file of the build, with its hash"),
    "build": ("toolkit.cli.image.build", "Build and test the image of a recipe"),
    "sif": ("toolkit.cli.image.sif", "Convert an image into one SIF file"),
    "inspect": ("toolkit.cli.image.inspect", "Show the contents of an image without starting it"),
    "sbom": ("toolkit.cli.image.sbom", "Print the bill of materials of an image"),
    "sign": ("toolkit.cli.image.sign", "Sign a SIF with PGP, as Apptainer does"),
    "verify": ("toolkit.cli.image.verify", "Check the signature, checksum and contents of a SIF"),
    "push": ("toolkit.cli.image.push", "Copy an image to a registry, or to a cluster over SSH"),
    "pull": ("toolkit.cli.image.pull", "Download an image from a registry into one file"),
    "bundle": ("toolkit.cli.image.bundle", "Write an archive that installs toolkit and images offline"),
    "unbundle": ("toolkit.cli.image.unbundle", "Install the contents of a bundle"),
    "adopt": ("toolkit.cli.image.adopt", "Describe an image that toolkit did not build"),
}


@click.group("image", cls=LazyGroup, table=_COMMANDS)
def command() -> None:
    """Build, convert and inspect images.

    RECIPE is a name from `toolkit image list`, or the path of a TOML file.
    """
