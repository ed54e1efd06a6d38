"""``toolkit launch``: ask the engine, render the job script, stage, submit, follow, explain."""

from pathlib import Path

import click
import msgspec

from toolkit.cli.places import open_runner, place_options
from toolkit.model.prediction import MODES
from toolkit.report.progress import Progress

_REST = "toolkit.rest"
_DEFAULT_IMAGE = "tf2.15-cpu"
_COUNT = click.IntRange(min=1)


class SplitAtDashes(click.Command):
    """A command that keeps what stands after ``--`` apart and untouched."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            cut = args.index("--")
            ctx.meta[_REST] = tuple(args[cut + 1 :])
            args = args[:cut]
        return super().parse_args(ctx, args)


@click.command("launch", cls=SplitAtDashes)
@click.argument("trainer", required=False)
@click.option("--image", default=_DEFAULT_IMAGE, show_default=True, help="SIF file, or name of a recipe")
@click.option("--nodes", type=_COUNT, default=1, show_default=True, help="Number of nodes")
@click.option("--ranks-per-node", type=_COUNT, default=1, show_default=True, help="Ranks on each node")
@click.option("--cpus-per-rank", type=_COUNT, help="Cores for each rank")
@click.option("--mode", type=click.Choice(MODES), help="Launch mode, in place of the engine's choice")
@click.option("--fix", metavar="FILE", help="Take over what toolkit doctor --fix wrote")
@click.option("--force", is_flag=True, help="Launch although a failure is predicted")
@click.option("--strategy", type=click.Choice(["single", "horovod"]), help="How the trainer is distributed")
@click.option("--data", metavar="DIR", help="Folder of the data set on this machine")
@click.option("--directory", metavar="DIR", help="Folder on the cluster for images, data and runs")
@click.option("--time", default="01:00:00", show_default=True, help="Time limit, as sbatch takes it")
@click.option("--partition", help="Slurm partition")
@click.option("--account", help="Slurm account")
@click.option("--name", help="Job name; the trainer's by default")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Set a variable inside the container")
@click.option("--bind", multiple=True, metavar="SRC[:DST[:ro]]", help="Bind a folder of the cluster")
@click.option("--preflight/--no-preflight", default=True, help="Check the MPI world before the training")
@click.option("--verify-key", metavar="FILE", help="Refuse an image that no public key in FILE has signed")
@click.option("--no-verify", is_flag=True, help="Do not look at the image's signatures; the record says so")
@click.option("--dry-run", is_flag=True, help="Print the job script and stop")
@click.option("--follow/--no-follow", default=True, help="Show the output until the job ends")
@click.option("--json", "as_json", is_flag=True, help="Print the job record as JSON")
@place_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    dry_run: bool,
    follow: bool,
    as_json: bool,
    **given: object,
) -> None:
    """Run TRAINER, or any command after --, as a Slurm job in a container.

    \b
    Examples:
      toolkit launch mnist --nodes 2
      toolkit launch mnist --nodes 2 --cluster demo -- --epochs 1
      toolkit launch --image my.sif --nodes 4 -- python train.py
    """
    from toolkit.cli.following import conclude, watch_job
    from toolkit.cli.prepare import Options, check, prepare
    from toolkit.launch import jobs
    from toolkit.run.stage import stage

    options = msgspec.convert(given, Options)
    words: tuple[str, ...] = ctx.meta.get(_REST, ())
    sources = check(options, words)
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"] or as_json) as tell:
        runner = open_runner(host, cluster, ssh_config)
        try:
            remote = host is not None or cluster is not None
            job = prepare(runner, options, words, sources, tell, remote=remote)
            if dry_run:
                click.echo(job.script, nl=False)
                return
            stage(runner, job.parcels, tell)
            tell.step(f"Submitting to Slurm on {runner.place}")
            config = str(ssh_config.resolve()) if ssh_config else None
            record = msgspec.structs.replace(job.record, host=host, cluster=cluster, ssh_config=config)
            record = jobs.submit(runner, record, job.script)
            if follow:
                record = watch_job(runner, record, tell, quiet=as_json)
        finally:
            runner.close()
        if as_json:
            click.echo(msgspec.json.encode(record).decode())
        if follow:
            conclude(record, tell)
    if not follow and not as_json:
        click.echo(f"job {record.id} is submitted; follow it: toolkit jobs logs --follow {record.key}")
