"""``toolkit env remove``: remove packages from an environment."""

from pathlib import Path

import click
import msgspec

from toolkit.cli.env.common import ENV, OVER, make_again, names_of, print_made, requirements_of
from toolkit.cli.options.outputs import json_option
from toolkit.errors import BadInput
from toolkit.image.envs.lockfile import read_env
from toolkit.image.envs.requirements import parse_requirement


@click.command("remove")
@ENV
@click.argument("packages", nargs=-1, required=True, metavar="PACKAGE…")
@OVER
@json_option()
@click.pass_context
def command(
    ctx: click.Context, env: Path, packages: tuple[str, ...], over: str | None, as_json: bool
) -> None:
    """Remove each PACKAGE from the requirements of ENV. Also remove the packages that only PACKAGE needed."""
    lock = read_env(env)
    asked = {next(iter(names_of((parse_requirement(one, "").name,)))): one for one in lock.requirements}
    gone = names_of(packages)
    if unknown := sorted(gone - asked.keys()):
        raise BadInput(
            f"{unknown[0]}: not a requirement of {env}; choices: {', '.join(sorted(asked)) or 'none'}"
        )
    rest = tuple(line for name, line in asked.items() if name not in gone)
    wanted = msgspec.structs.replace(requirements_of(lock), requirements=rest)
    print_made(make_again(ctx, env, lock, wanted, over, frozenset()), as_json=as_json, changed=True)
