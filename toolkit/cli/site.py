"""``toolkit site``: list, show and check site profiles, and print a cluster's facts. The printed facts
contain no names of users and machines.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.frame.lazy import NearGroup
from toolkit.cli.frame.say import say, say_exact, say_json, say_text
from toolkit.cli.options.outputs import json_option
from toolkit.cli.options.places import place_options, wait_option
from toolkit.errors import BadInput
from toolkit.job.places import open_runner

if TYPE_CHECKING:
    from toolkit.model.site import Site
    from toolkit.probe.bundle import Bundle

_facts_option = click.option(
    "--facts", type=click.Path(path_type=Path), metavar="FILE", help="Facts file that toolkit probe -o wrote"
)


@click.group("site", cls=NearGroup)
def command() -> None:
    """List, show and check the profiles of clusters."""


@command.command("list", short_help="List the profiles")
@click.option(
    "--all", "historic", is_flag=True, help="Also list profiles of clusters that are out of service"
)
@json_option()
def list_sites(historic: bool, as_json: bool) -> None:
    """List the site profiles, including your own.

    Example: toolkit site list
    """

    from toolkit.cli.frame.styles import width_of_terminal
    from toolkit.knowledge import sites
    from toolkit.report.site import profile_table, row

    found: dict[str, Site] = {}
    trouble: list[BadInput] = []
    for name in sites.names(historic=historic):
        try:
            found[name] = sites.site(name)
        except BadInput as error:
            trouble.append(error)
    own = found.keys() & set(_own())
    if as_json:
        rows = [row(name, one, own=name in own) for name, one in found.items()]
        say_json({"schema": "toolkit.sites/1", "sites": rows})
    else:
        say_text(profile_table(found, own, width_of_terminal()))
    for more in trouble[1:]:
        say(f"error: {more.message}", err=True)
    if trouble:
        raise trouble[0]


@command.command("show", short_help="Show a profile")
@click.argument("name")
@json_option()
@click.option("--toml", "as_toml", is_flag=True, help="Print the profile's file")
def show(name: str, as_json: bool, as_toml: bool) -> None:
    """Show a profile.

    NAME is a profile in the output of `toolkit site list`, the path of a profile file, or `example`. The
    profile `example` explains every key.

    Example: toolkit site show juwels
    """

    from toolkit.cli.frame.styles import width_of_terminal
    from toolkit.knowledge import sites
    from toolkit.knowledge.sites import is_old, today
    from toolkit.knowledge.strict import text_of
    from toolkit.report.site import as_json as told
    from toolkit.report.site import page

    file = sites.find(name)
    site = sites.site(name)
    plain = file.name.removesuffix(sites.SUFFIX)
    if as_toml:
        say_exact(text_of(file))
    elif as_json:
        say_json(told(plain, site), indent=True)
    else:
        say(*page(plain, str(file), site, width_of_terminal()))
        if is_old(site, today()):
            say(
                f"warning: this profile has been out of date since {site.expires}; compare it with the "
                f"cluster: toolkit site check {plain}",
                err=True,
            )


@command.command("check", short_help="Compare a profile with its cluster")
@click.argument("name", required=False)
@place_options
@_facts_option
@wait_option()
@json_option()
@click.pass_context
def check(
    ctx: click.Context,
    name: str | None,
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    facts: Path | None,
    wait: int,
    as_json: bool,
) -> None:
    """Compare a profile with its cluster, and show the differences.

    You may leave out NAME if you wrote exactly one profile. The exit status is 1 if a value of the profile
    differs from the cluster. toolkit also lists values that it cannot check, but does not count these values
    as differences.

    Example: toolkit site check virtual --cluster demo
    """

    from toolkit.job.request.silence import check_ids
    from toolkit.knowledge import sites
    from toolkit.launch.sites.sitecheck import points
    from toolkit.report.site import check_json, check_lines

    name = name or _only()
    site = sites.site(name)
    check_ids(site.silence)
    bundle = _probe_site(site, host, cluster, ssh_config, facts, wait)
    found = tuple(points(site, bundle.host, bundle.site))
    if as_json:
        say_json(check_json(name, bundle.host.place, found), indent=True)
    else:
        say(*check_lines(name, bundle.host.place, found))
    if any(point.state == "differs" for point in found):
        ctx.exit(1)


@command.command("share", short_help="Print a cluster's facts without host and user names")
@click.argument("name", required=False)
@place_options
@_facts_option
@wait_option()
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
              help="Save a facts file")  # fmt: skip
def share(
    name: str | None,
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    facts: Path | None,
    wait: int,
    output: Path | None,
) -> None:
    """Print the facts of a cluster, but leave out accounts, machine names and users' folders.

    With -o, toolkit saves a facts file, which you can use with: toolkit doctor IMAGE --facts FILE. Before you
    share the file, check that it contains nothing private.

    NAME is the profile of the cluster. You may leave out NAME if you wrote exactly one profile, or none.

    Example: toolkit site share virtual --cluster demo -o virtual.json
    """

    from toolkit.cli.frame.files import write_whole
    from toolkit.cli.frame.outputs import check_facts_output
    from toolkit.knowledge import sites
    from toolkit.model.site import Site
    from toolkit.probe.probe import encode
    from toolkit.probe.share import without_users

    if output:
        check_facts_output(output)
    if name is None and not _own():
        plain, site = "cluster", Site(schema="toolkit.site/1", title="cluster")
    else:
        name = name or _only()
        plain, site = sites.find(name).name.removesuffix(sites.SUFFIX), sites.site(name)
    shared = encode(without_users(_probe_site(site, host, cluster, ssh_config, facts, wait), plain))
    if not output:
        say_exact(shared)
        return
    write_whole(output, shared)
    say(f"Wrote {output}: the facts of {plain}, without accounts, machine names and users' folders")


def _probe_site(
    site: "Site",
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    facts: Path | None,
    seconds: int,
) -> "Bundle":
    """Return the facts of a cluster from the file ``facts`` or, without a file, from a probe of the cluster.

    toolkit probes ``host`` or the virtual cluster ``cluster``. If neither is given, toolkit probes the host
    that the profile ``site`` names. If the profile names no host, toolkit probes this machine.
    """
    from msgspec.structs import replace

    from toolkit.launch.sites.sitecheck import words
    from toolkit.probe.probe import NodeChoice, gather, load_bundle

    if facts is not None:
        if host is not None or cluster is not None:
            raise BadInput("--facts: cannot be combined with --host or --cluster")
        # Drop the facts about modules and commands, because the probe that wrote the file may have checked
        # the modules and commands of another profile.
        said = load_bundle(facts)
        return replace(
            said, site=replace(said.site, loaded=None, commands=None, there=None, there_nodes=None)
        )
    runner = open_runner(host or (site.host or None if cluster is None else None), cluster, ssh_config)
    try:
        return gather(runner, NodeChoice("1", seconds, site.defaults.partition, site=words(site)))
    finally:
        runner.close()


def _only() -> str:
    """Return the name of the user's only profile.

    Raises:
        BadInput: if the user has no profile or several profiles.
    """
    from toolkit.knowledge import sites

    own = _own()
    if len(own) == 1:
        return own[0]
    raise BadInput(
        f"NAME is missing; choices: {', '.join(own or sites.names())}",
        fix="give the name of a profile as NAME",
    )


def _own() -> list[str]:
    """Return the names of the user's own profiles."""
    from toolkit.knowledge import sites

    return [name for name in sites.names() if sites.find(name).parent == sites.own_folder()]
