"""``toolkit doctor``: compare an image with a cluster, and predict how it will run there."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.dashes import REST, SplitAtDashes
from toolkit.cli.frame.say import say_json, say_text
from toolkit.cli.options.keys import key_options
from toolkit.cli.options.places import place_options
from toolkit.cli.options.whole import WholeNumber
from toolkit.errors import BadInput
from toolkit.image.buildfile.steps import is_buildfile
from toolkit.job.places import Where
from toolkit.model.prediction import MODES, Mode, Verdict
from toolkit.model.runtime import NAMES
from toolkit.near import near
from toolkit.report.progress import Progress

if TYPE_CHECKING:
    from toolkit.cli.doctor_advice import DoctorRequest

_COUNT = WholeNumber(1)


@click.command("doctor", cls=SplitAtDashes)
@click.argument("image", required=False)
@place_options
@click.option(
    "--facts", metavar="FILE", type=click.Path(path_type=Path), help="Facts that toolkit probe -o saved"
)
@click.option("--site", metavar="NAME", help="Judge the launch with this site profile")
@click.option("--job", "job_file", metavar="FILE", help="Judge the launch of this job specification")
@click.option("--env-image", metavar="FILE", help="File of toolkit env with packages over the image")
@click.option(
    "--runtime",
    type=click.Choice(NAMES),
    metavar="RUNTIME",
    help=f"Container runtime, if the host has several: {', '.join(NAMES)}",
)
@click.option("--nodes", type=_COUNT, help="Number of nodes  [default: 2]")
@click.option("--ranks-per-node", type=_COUNT, help="Ranks on each node  [default: 1]")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(MODES),
    metavar="MODE",
    help=f"Judge only this mode; with --live, try it: {', '.join(MODES)}",
)
@click.option("--live", is_flag=True, help="Run a small job in the mode, and compare it with the prediction")
@click.option("--no-run", is_flag=True, help="Start no container to read variables")
@click.option("--partition", metavar="NAME", help="Slurm partition to probe, and for the job of --live")
@click.option("--account", metavar="NAME", help="Slurm account for --live")
@key_options
@click.option("--fix", is_flag=True, help="Write the needed change as a file for toolkit launch")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File that --fix writes  [default: fix.toml]"
)
@click.option("--ask", is_flag=True, help="Answer from a few facts: ask for them, or read --facts FILE.toml")
@click.option(
    "-a", "--all", "everything", is_flag=True, help="Show every launch mode, all findings and all facts"
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON")
@click.option("--rules", is_flag=True, help="List the rules and stop")
@click.option("--explain", "page", metavar="ID", help="Print the page of one rule and stop")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    image: str | None,
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    facts: Path | None,
    site: str | None,
    job_file: str | None,
    env_image: str | None,
    runtime: str | None,
    nodes: int | None,
    ranks_per_node: int | None,
    modes: tuple[Mode, ...],
    live: bool,
    no_run: bool,
    partition: str | None,
    account: str | None,
    verify_key: str | None,
    no_verify: bool,
    fix: bool,
    output: Path | None,
    ask: bool,
    everything: bool,
    as_json: bool,
    rules: bool,
    page: str | None,
) -> None:
    """Predict whether IMAGE runs on a cluster, in which launch mode, and why.

    The first line answers Yes, Perhaps (no recorded launch is like this one), No or Unknown
    (facts are missing), with the command to type next. --all shows every launch mode.

    IMAGE may be the name of a recipe, or a Dockerfile or Apptainer definition file (FILE.def): its
    text is then judged before you build it.

    After --, give the command of a rank: toolkit then judges the MPI that its program loads.

    If scripts of the image set variables, and the image is on the cluster, toolkit starts one
    container on a node, which prints these variables. --no-run skips this.

    The exit status is 0 if a launch mode works (with --mode, if this mode works), 1 if none works,
    2 for a bad file or option, 3 if the cluster is unreachable. Without IMAGE, the command checks
    only the host, and the status is 1 if no job can be launched there. With --live, the status is 0
    if the job does what was predicted. --fix never overwrites a file that it did not write.

    \b
    Examples:
      toolkit doctor my.sif --cluster demo
      toolkit doctor my.sif --cluster demo -- /opt/app/bin/solver
      toolkit doctor my.sif --facts facts.json --nodes 4
      toolkit doctor Dockerfile --host login
      toolkit doctor my.sif --host login --site juwels --job train.yaml
      toolkit doctor my.sif --cluster demo --live --mode srun-pmix
      toolkit doctor my.sif --host login --fix -o fix.toml
      toolkit doctor --ask --facts ticket.toml
    """
    if ask:
        from toolkit.cli import doctor_ask

        if image is not None or fix or live:
            raise BadInput("--ask: cannot be combined with IMAGE, --fix or --live")
        ctx.exit(doctor_ask.command(facts, as_json=as_json))
    of_job = bool(site or job_file)
    _check_options(image, facts, modes, live=live, of_job=of_job, fix=fix, output=output)
    _check_queue(facts, partition, account, live=live)
    _check_env(env_image, image, live=live)
    if (verify_key is not None or no_verify) and not live:
        raise BadInput("--verify-key and --no-verify: only with --live, which starts the image")
    if facts is not None and (host is not None or cluster is not None or ssh_config is not None):
        raise BadInput("--facts: cannot be combined with --host, --cluster or --ssh-config")
    if rules or page:
        _tell_rules(page, as_json=as_json)
        return
    where = Where(host, cluster, ssh_config)
    tell = Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"] or (live and as_json))
    if live and image is not None:
        from toolkit.cli import doctor_live
        from toolkit.image.startable import check_startable
        from toolkit.job.live import TrialRequest as Trial
        from toolkit.job.request.locations import named_image

        file = Path(named_image(image))
        check_startable(file, "IMAGE")
        queue = (partition, account, verify_key, no_verify)
        trial = Trial(file, nodes or 2, ranks_per_node or 1, modes, *queue)
        ctx.exit(doctor_live.command(trial, where, tell, as_json=as_json))
    # A facts file does not contain how to reach its host.
    there = "LOGIN_NODE" if facts else host
    place = ["--host", there] if there else ["--cluster", cluster] if cluster else []
    place += ["--ssh-config", str(ssh_config)] if ssh_config else []
    place += ["--partition", partition] if partition else []
    if image is None:
        ctx.exit(_host_alone(facts, where, partition, place, as_json=as_json))
    from toolkit.job.diagnosis import diagnose, wanted

    if is_buildfile(image) and Path(image).is_file():
        ctx.exit(_buildfile(Path(image), facts, where, partition, ctx, modes, nodes, ranks_per_node,
                            fix=fix, everything=everything, as_json=as_json))  # fmt: skip
    mode = modes[0] if modes else None
    program: tuple[str, ...] = ctx.meta.get(REST, ())
    with tell:
        job = wanted(
            image, site, job_file, partition, nodes, ranks_per_node, mode, tell, program, runtime, env_image
        )
        found = diagnose(image, facts, job, where, partition, tell, run=not no_run)
    if fix:
        from toolkit.cli import doctor_fix

        doctor_fix.command(
            found.host,
            found.image,
            job.request,
            found.verdict,
            output or doctor_fix.DEFAULT,
            [*place, *job.words],
            job.site,
            as_json=as_json,
        )
        return
    from toolkit.cli.doctor_advice import DoctorRequest

    looked = ("--facts", str(facts)) if facts else tuple(place)
    asked = DoctorRequest(found.host, found.image, job.request, tuple(place), looked, job.site, job.words)
    _show(asked, found.verdict, everything=everything, as_json=as_json)
    ctx.exit(0 if found.verdict.chosen else 1)


def _check_options(
    image: str | None,
    facts: Path | None,
    modes: tuple[Mode, ...],
    *,
    live: bool,
    of_job: bool,
    fix: bool,
    output: Path | None,
) -> None:
    """Refuse options that cannot be combined."""
    if of_job and image is None:
        raise BadInput("--site and --job need an IMAGE")
    if of_job and live:
        raise BadInput("--site and --job: cannot be combined with --live")
    if len(set(modes)) > 1 and not live:
        raise BadInput("--mode: more than one mode is possible only with --live")
    if live and fix:
        raise BadInput("--live and --fix: cannot be combined; give one of them")
    if live and facts is not None:
        raise BadInput(
            "--live and --facts: cannot be combined; a job needs --cluster, --host or this machine"
        )
    if output is not None and not fix:
        raise BadInput("-o: only with --fix, which writes a file")
    if image is None and (live or fix):
        raise BadInput("--live and --fix need an IMAGE")


def _check_env(env_image: str | None, image: str | None, *, live: bool) -> None:
    """Refuse an environment without its image."""
    if env_image is not None and (live or image is None):
        raise BadInput("--env-image: needs an IMAGE, and cannot be combined with --live")


def _check_queue(facts: Path | None, partition: str | None, account: str | None, *, live: bool) -> None:
    """Refuse a partition or an account that the command would not use."""
    if facts is not None and partition is not None:
        raise BadInput(
            f"--partition {partition}: cannot be combined with --facts, which has the facts of its nodes",
            fix=f"toolkit probe --partition {partition} -o {facts}",
        )
    if account is not None and not live:
        raise BadInput(f"--account {account}: only with --live, which submits a job", fix="leave it out")


def _buildfile(
    file: Path,
    facts: Path | None,
    where: Where,
    partition: str | None,
    ctx: click.Context,
    modes: tuple[Mode, ...],
    nodes: int | None,
    ranks_per_node: int | None,
    *,
    fix: bool,
    everything: bool,
    as_json: bool,
) -> int:
    """Judge a build file, and return the exit status."""
    from toolkit.cli import doctor_buildfile
    from toolkit.job.diagnosis import wanted
    from toolkit.job.facts import facts_of

    if fix:
        raise BadInput(f"--fix: {file} is not an image yet", fix="build it, and give the image")
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"] or as_json) as tell:
        mode, command = modes[0] if modes else None, ctx.meta.get(REST, ())
        job = wanted(str(file), None, None, partition, nodes, ranks_per_node, mode, tell, command)
        host = facts_of(facts, where, partition)
    return doctor_buildfile.command(file, host, job, everything=everything, as_json=as_json)


def _host_alone(
    facts: Path | None, where: Where, partition: str | None, place: list[str], *, as_json: bool
) -> int:
    """Show the facts of a host and their findings, and return the exit status."""
    from toolkit.engine.predict import judge_host
    from toolkit.job.facts import facts_of

    host = facts_of(facts, where, partition)
    found = judge_host(host)
    if as_json:
        from toolkit.report.doctor.as_json import host_json

        say_json(host_json(host, found))
    else:
        from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
        from toolkit.report.doctor.page import host_page

        looked = ["--facts", str(facts)] if facts else place
        command = shlex.join(["toolkit", "doctor", "IMAGE", *looked])
        say_text(host_page(host, found, command, style_of_stdout(), width_of_stdout()))
    return 1 if any(f.severity == "error" for f in found) else 0


def _show(asked: "DoctorRequest", verdict: Verdict, *, everything: bool, as_json: bool) -> None:
    if as_json:
        from toolkit.report.doctor.as_json import verdict_json

        say_json(verdict_json(asked.host, asked.image, verdict))
        return
    from toolkit.cli.doctor_advice import advise
    from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
    from toolkit.report.doctor.page import page

    advice = advise(asked, verdict)
    say_text(
        page(
            asked.host,
            asked.image,
            verdict,
            asked.request,
            next_command=advice.command,
            advice=advice.text,
            everything=everything,
            style=style_of_stdout(),
            width=width_of_stdout(),
        )
    )


def _tell_rules(page: str | None, *, as_json: bool) -> None:
    from toolkit.engine.registry import RULES

    chosen = [rule for rule in RULES if page in {None, rule.id}]
    if not chosen:
        known = [rule.id for rule in RULES]
        raise BadInput(
            f"--explain {page}: unknown rule{near(page or '', known)}",
            fix="list the rules: toolkit doctor --rules",
        )
    if as_json:
        from toolkit.report.doctor.as_json import rules_json

        say_json(rules_json(chosen))
        return
    from toolkit.report.rules import rule_list, rule_page

    say_text(rule_page(chosen[0]) if page else rule_list(chosen))
