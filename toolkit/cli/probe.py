"""``toolkit probe``: show or save the facts of a machine or a cluster."""

from pathlib import Path

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.options.outputs import json_option
from toolkit.cli.options.places import place_options, wait_option


@click.command("probe")
@place_options
@click.option(
    "--nodes",
    default="1",
    show_default=True,
    metavar="N|all|LIST",
    help="Compute nodes to probe: a number (0: none), `all`, or node names such as n[01-04]",
)
@click.option("--partition", default="", metavar="NAME", help="Partition of the compute nodes to probe")
@wait_option(5)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Save the facts to FILE",
)
@json_option("Print the facts as JSON")
def command(
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    nodes: str,
    partition: str,
    wait: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Read the facts of this machine, of a host over SSH or of a virtual cluster.

    The facts are hardware, drivers, container runtimes, MPI and Slurm. toolkit runs one script, which changes
    nothing on the host. On a Slurm cluster, the same script also runs on compute nodes as a short job,
    because login and compute nodes differ. With -o, toolkit saves a facts file, which you can use with:
    toolkit doctor IMAGE --facts FILE. The facts file contains no user names, no addresses and no tokens.

    \b
    Examples:
      toolkit probe --cluster demo
      toolkit probe --host login.example.org --nodes all -o facts.json
    """
    from toolkit.cli.frame.files import write_whole
    from toolkit.cli.frame.outputs import check_facts_output
    from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
    from toolkit.job.facts import gather_facts
    from toolkit.job.places import HostOptions
    from toolkit.probe.probe import NodeChoice, encode
    from toolkit.report.doctor.sides import side_by_side
    from toolkit.report.nodes import machines

    if output:
        check_facts_output(output)
    bundle = gather_facts(HostOptions(host, cluster, ssh_config), NodeChoice(nodes, wait, partition))
    if output:
        write_whole(output, encode(bundle))
    if as_json:
        say_json(bundle.host, indent=True)
        return
    if output:
        say(f"Wrote {output}, the facts of {bundle.host.place}")
    style, width = style_of_stdout(), width_of_stdout()
    if not output:
        say(style(bundle.host.place, "bold"))
        say(*side_by_side(bundle.host, None, style, width))
    if lines := list(machines(bundle, style, width)):
        say(*([] if output else [""]), *lines)
