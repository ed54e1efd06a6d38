"""``toolkit notebook``: start Jupyter in an image on a compute node, and open a tunnel to it."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import click

from toolkit.cli.frame.say import say_exact
from toolkit.cli.options.keys import key_options
from toolkit.cli.options.places import place_options
from toolkit.cli.options.renamed import RenamedOptions
from toolkit.cli.options.whole import WholeNumber
from toolkit.errors import BadInput
from toolkit.report.progress import Progress

_COUNT = WholeNumber(1)


class _NotebookCommand(RenamedOptions):
    RENAMED: ClassVar[Mapping[str, str]] = {"--cpus": "--cpus-per-rank", "--gpus": "--gpus-per-node"}


@click.command("notebook", cls=_NotebookCommand)
@click.option("--image", metavar="IMAGE", help="SIF file, or name of a recipe  [default: tf2.15-cpu]")
@click.option("--env-image", metavar="FILE", help="File of toolkit env with packages over the image")
@click.option("--packages", default="", metavar="DIR", help="Folder on the cluster with Jupyter")
@click.option("--folder", default="", metavar="DIR", help="Folder to show  [default: WORK or HOME]")
@click.option("--directory", metavar="DIR", help="Folder on the cluster for images and runs")
@click.option("--time", metavar="TIME", help="Time limit, as for sbatch  [default: 1 hour]")
@click.option("--cpus-per-rank", type=_COUNT, help="Cores")
@click.option("--gpus-per-node", type=_COUNT, help="GPUs")
@click.option("--memory", metavar="SIZE", help="Memory, such as 16G")
@click.option("--partition", metavar="NAME", help="Slurm partition")
@click.option("--account", metavar="NAME", help="Slurm account")
@click.option("--bind", multiple=True, metavar="SRC[:DST[:ro]]", help="Mount a folder of the cluster")
@click.option(
    "--env",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Set a variable; NAME without a value takes yours",
)
@click.option("--env-file", metavar="FILE", help="Read secret variables from a file of NAME=VALUE lines")
@click.option(
    "--port", type=WholeNumber(0, 65535), default=0, help="Port on this machine  [default: a free port]"
)
@click.option("--keep", is_flag=True, help="Keep the job running when the tunnel closes")
@click.option("--attach", metavar="JOB", help="Open a tunnel to a notebook that is already running")
@click.option("--site", metavar="NAME", help="Site profile: partition, account, modules, binds")
@click.option("--force", is_flag=True, help="Start even if a failure is predicted")
@key_options
@click.option("--dry-run", is_flag=True, help="Print the job script and stop")
@click.option("--json", "as_json", is_flag=True, help="Print URL and job as one line of JSON")
@place_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    attach: str | None,
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    dry_run: bool,
    as_json: bool,
    port: int,
    keep: bool,
    folder: str,
    packages: str,
    verify_key: str | None,
    no_verify: bool,
    force: bool,
    env: tuple[str, ...],
    **given: object,
) -> None:
    """Start Jupyter in an image on a compute node, and open a tunnel to it.

    The URL contains the token: everyone with the URL can use the notebook. Ctrl-C closes the tunnel and
    cancels the job.

    \b
    Examples:
      toolkit notebook --host login --image my.sif --time 4:00:00
      toolkit notebook --cluster demo --packages /work/ada/jupyter
    """
    from toolkit.cli.notebook_tunnel import TunnelSession, attach_to_notebook, listen, start_notebook
    from toolkit.cli.options.joboptions import environment
    from toolkit.job.notebook import merge_notebook, prepare_notebook, unseen_script
    from toolkit.job.places import Where
    from toolkit.job.request.flags import Flags
    from toolkit.job.request.inputs import image_of
    from toolkit.job.submit import is_far_away, place_of, with_place

    if dry_run and as_json:
        raise BadInput("--json and --dry-run: cannot be combined; leave out one of them")
    session = TunnelSession(port=port, keep=keep, as_json=as_json)
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"] or as_json) as tell:
        if attach is not None:
            attach_to_notebook(attach, session, tell)
            return
        given["env"] = environment(env)
        flags = Flags(force=force, verify_key=verify_key, no_verify=no_verify)
        asking = merge_notebook(given, folder, packages, flags, tell)
        site = asking.job.site
        where = Where(host, cluster, ssh_config)
        if dry_run and site and is_far_away(where, asking.job):
            say_exact(unseen_script(asking, site, tell))
            return
        # A port in use, or an unknown image, is an error before toolkit connects to a host.
        with listen(session) as tunnel:
            where = place_of(where, asking.job)
            image_of(asking.job.job.image or "", site)
            with contextlib.closing(where.opened()) as runner:
                job = prepare_notebook(runner, asking, tell, remote=where.remote)
                if dry_run:
                    say_exact(job.script)
                    return
                start_notebook(runner, with_place(job, where), tunnel, session, tell)
