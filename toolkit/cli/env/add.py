"""``toolkit env add``: add packages to an environment, or rebuild an environment for a newer image."""

from pathlib import Path

import click

from toolkit.cli.env.common import (
    ENV,
    LINKS,
    OVER,
    REPLACE,
    make_again,
    names_of,
    print_made,
    requirements_of,
    with_links,
)
from toolkit.cli.options.outputs import json_option
from toolkit.image.envs.lockfile import read_env
from toolkit.image.envs.requirements import EnvRequirements, parse_requirement


@click.command("add")
@ENV
@click.argument("packages", nargs=-1, metavar="[PACKAGE]…")
@OVER
@REPLACE
@LINKS
@json_option()
@click.pass_context
def command(
    ctx: click.Context,
    env: Path,
    packages: tuple[str, ...],
    over: str | None,
    replace: tuple[str, ...],
    links: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add packages to ENV. The packages that ENV already contains keep their versions if possible.

    If ENV already has a requirement for a PACKAGE, the new requirement replaces the old requirement. Without
    a PACKAGE, toolkit rebuilds ENV for the image that --over names.

    \b
    Examples:
      toolkit env add my.env "scipy>=1.14"
      toolkit env add my.env --over centre-2027.sif
    """
    lock = read_env(env)
    names = names_of(tuple(parse_requirement(one, "PACKAGE").name for one in packages))
    before = requirements_of(lock)
    rest = tuple(
        one for one in before.requirements if not names_of((parse_requirement(one, "").name,)) & names
    )
    wanted = EnvRequirements(
        requirements=rest,
        constraints=before.constraints,
        options=before.options,
        code_folders=before.code_folders,
        omissions=before.omissions,
    ).join(EnvRequirements(requirements=packages))
    made = make_again(ctx, env, lock, with_links(wanted, links), over, names_of(replace))
    print_made(made, as_json=as_json, changed=True)
