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
    option, 3 if the place cannot be reached. Without IMAGE it looks at the host alone, and
    exits 1 if nothing could be launched there.

    \b
    Examples:
      toolkit doctor my.sif --cluster virtual
      toolkit doctor my.sif --facts facts.json --nodes 4
    """
    if facts is not None and (host is not None or cluster is not None or ssh_config is not None):
        raise BadInput("--facts, --host, --cluster and --ssh-config: facts come from a file or from a place")
    if rules or page:
        _tell_rules(page, as_json=as_json)
        return
    from toolkit.engine.predict import examine, predict

    known = _host(facts, host, cluster, ssh_config)
    if image is None:
        found = examine(known)
        _show_host(known, found, as_json=as_json)
        ctx.exit(1 if any(f.severity == "error" for f in found) else 0)
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
        return load(facts)
    runner = open_runner(host, cluster, ssh_config)
    try:
        return probe(runner)
    finally:
        runner.close()


def _show(
    host: HostFacts,
    image: ImageFacts,
    verdict: Verdict,
    request: Request,
    next_command: str,
    *,
    as_json: bool,
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
            next_command=next_command,
            advice=_advice(verdict, request),
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
    """Return the command to type next, or empty text where no command helps."""
    if verdict.chosen is None:
        return (
            shlex.join(["toolkit", "probe", *place, "-o", "facts.json"]) if _missing(verdict, request) else ""
        )
    mode = ["--mode", request.mode] if request.mode else []
    ranks = ["--ranks-per-node", str(request.ranks_per_node)] if request.ranks_per_node > 1 else []
    what = ["mnist"] if image.stack and image.horovod else []
    words = ["toolkit", "launch", *what, "--image", image.path, "--nodes", str(request.nodes), *ranks]
    return shlex.join([*words, *mode, *place]) + ("" if what else " -- COMMAND")


def _advice(verdict: Verdict, request: Request) -> str:
    """Say what stands in the way where nothing works: the facts that are missing, or the worst finding."""
    if verdict.chosen is not None:
        return ""
    if missing := _missing(verdict, request):
        return f"These facts decide, and are not known: {', '.join(missing)}. Probe the cluster's login node."
    asked = [p.findings for p in verdict.predictions if request.mode in {None, p.mode}]
    ids = {name for names in asked for name in names}
    return next((f.fix for f in verdict.findings if f.severity != "info" and f.id in ids), "")


def _missing(verdict: Verdict, request: Request) -> tuple[str, ...]:
    asked = [p for p in verdict.predictions if request.mode in {None, p.mode} and p.outcome == "unknown"]
    return tuple(dict.fromkeys(name for p in asked for name in p.missing))


def _tell_rules(page: str | None, *, as_json: bool) -> None:
    from toolkit.engine.registry import RULES

    chosen = [rule for rule in RULES if page in {None, rule.id}]
    if not chosen:
        choices = ", ".join(rule.id for rule in RULES)
        raise BadInput(f"--explain {page}: there is no such rule; choices: {choices}")
    if as_json:
        from toolkit.report.doctor_json import rules_json

        click.echo(rules_json(chosen))
        return
    from toolkit.report.rules import rule_list, rule_page

    click.echo(rule_page(chosen[0]) if page else rule_list(chosen))
