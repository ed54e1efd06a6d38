"""``toolkit doctor``: compare an image with a cluster, and say how it will run there."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.places import open_runner, place_options
from toolkit.errors import BadInput
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import MODES, Mode, Request, Verdict

if TYPE_CHECKING:
    from toolkit.model.finding import Finding

_COUNT = click.IntRange(min=1)


@click.command("doctor")
@click.argument("image", required=False, type=click.Path(path_type=Path))
@place_options
@click.option(
    "--facts", metavar="FILE", type=click.Path(path_type=Path), help="Facts that toolkit probe -o saved"
)
@click.option("--nodes", type=_COUNT, default=2, show_default=True, help="Number of nodes")
@click.option("--ranks-per-node", type=_COUNT, default=1, show_default=True, help="Ranks on each node")
@click.option("--mode", type=click.Choice(MODES), help="Judge by this mode alone")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON")
@click.option("--rules", is_flag=True, help="List the rules and stop")
@click.option("--explain", "page", metavar="ID", help="Print the page of one rule and stop")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    image: Path | None,
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    facts: Path | None,
    nodes: int,
    ranks_per_node: int,
    mode: Mode | None,
    as_json: bool,
    rules: bool,
    page: str | None,
) -> None:
    """Predict what every way of launching IMAGE will do, why, and what mends it.

    Exits 0 if a way works (with --mode: if that one does), 1 if none, 2 for a bad file or
    option, 3 if the place cannot be reached. Without IMAGE it looks at the host alone.

    \b
    Examples:
      toolkit doctor my.sif --cluster virtual
      toolkit doctor my.sif --facts facts.json --nodes 4
    """
    if rules or page:
        _tell_rules(page, as_json=as_json)
        return
    from toolkit.engine.predict import examine, predict

    known = _host(facts, host, cluster, ssh_config)
    if image is None:
        _show_host(known, examine(known), as_json=as_json)
        return
    from toolkit.image.inspect import inspect

    inside = inspect(image)
    request = Request(nodes=nodes, ranks_per_node=ranks_per_node, mode=mode)
    verdict = predict(known, inside, request)
    # Facts of a file are of another place than this one; which word of SSH leads there, nobody has said.
    there = "LOGIN_NODE" if facts else host
    place = ["--host", there] if there else ["--cluster", cluster] if cluster else []
    _show(known, inside, verdict, request, _next(verdict, inside, request, place), as_json=as_json)
    ctx.exit(0 if verdict.chosen else 1)


def _host(facts: Path | None, host: str | None, cluster: str | None, ssh_config: Path | None) -> HostFacts:
    from toolkit.probe.probe import load, probe

    if facts is not None:
        if host is not None or cluster is not None:
            raise BadInput("--facts, --host and --cluster: give one of them")
        return load(facts)
    runner = open_runner(host, cluster, ssh_config)
    try:
        return probe(runner)
    finally:
        runner.close()


def _show(
    host: HostFacts, image: ImageFacts, verdict: Verdict, request: Request, advice: str, *, as_json: bool
) -> None:
    if as_json:
        from toolkit.report.doctor_json import verdict_json

        click.echo(verdict_json(host, image, verdict))
        return
    from toolkit.cli.styles import style_of_stdout, width_of_stdout
    from toolkit.report.doctor import page

    click.echo(
        page(
            host,
            image,
            verdict,
            request,
            next_command=advice,
            style=style_of_stdout(),
            width=width_of_stdout(),
        )
    )


def _show_host(host: HostFacts, found: "tuple[Finding, ...]", *, as_json: bool) -> None:
    if as_json:
        from toolkit.report.doctor_json import host_json

        click.echo(host_json(host, found))
        return
    from toolkit.cli.styles import style_of_stdout, width_of_stdout
    from toolkit.report.doctor import host_page

    click.echo(host_page(host, found, style_of_stdout(), width_of_stdout()))


def _next(verdict: Verdict, image: ImageFacts, request: Request, place: list[str]) -> str:
    """Return the command to type next: the launch, or what mends the worst finding."""
    if verdict.chosen is None:
        mending = next((f.fix for f in verdict.findings if f.severity == "error"), "")
        return mending or "give the facts that are missing: toolkit probe on the cluster's login node"
    mode = ["--mode", request.mode] if request.mode else []
    ranks = ["--ranks-per-node", str(request.ranks_per_node)] if request.ranks_per_node > 1 else []
    what = ["mnist"] if image.stack and image.horovod else []
    words = ["toolkit", "launch", *what, "--image", image.path, "--nodes", str(request.nodes), *ranks]
    return shlex.join([*words, *mode, *place]) + ("" if what else " -- COMMAND")


def _tell_rules(page: str | None, *, as_json: bool) -> None:
    from toolkit.engine.registry import RULES

    if page is None and as_json:
        from toolkit.report.doctor_json import rules_json

        click.echo(rules_json(RULES))
        return
    if page is None:
        for rule in RULES:
            click.echo(f"{rule.severity:8} {rule.id:28} {rule.title}")
        return
    from toolkit.report.rules import rule_page

    chosen = next((rule for rule in RULES if rule.id == page), None)
    if chosen is None:
        choices = ", ".join(rule.id for rule in RULES)
        raise BadInput(f"--explain {page}: there is no such rule; choices: {choices}")
    click.echo(rule_page(chosen))
