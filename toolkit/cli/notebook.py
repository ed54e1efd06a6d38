"""``toolkit notebook``: start Jupyter in an image on a compute node, and open a tunnel to Jupyter."""

import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click

from toolkit.cli.frame.say import say, say_exact, say_json
from toolkit.cli.options.groups import GroupedHelp
from toolkit.cli.options.joboptions import given_fields, job_options_of
from toolkit.cli.options.keys import key_options
from toolkit.cli.options.outputs import json_option
from toolkit.cli.options.places import place_options
from toolkit.cli.options.renamed import RenamedOptions
from toolkit.cli.options.whole import WholeNumber
from toolkit.errors import BadInput
from toolkit.report.progress import Progress

if TYPE_CHECKING:
    from toolkit.launch.notebook import NotebookAddress
    from toolkit.model.job import JobRecord

SCHEMA = "toolkit.notebook/1"

_FIELDS = (
    *("image", "env_image", "runtime", "site", "directory", "cpus_per_rank", "gpus_per_node", "gpu"),
    *("memory", "memory_per_cpu", "tmp", "time", "partition", "account", "wckey", "qos", "constraint"),
    *("reservation", "nodelist", "exclude", "licenses", "exclusive", "modules", "sbatch"),
    *("env", "env_file", "binds"),
)
"""The job fields that are options of ``toolkit notebook``. A notebook is a job with one rank."""


class _NotebookCommand(RenamedOptions, GroupedHelp):
    RENAMED: ClassVar[Mapping[str, str]] = {"--cpus": "--cpus-per-rank", "--gpus": "--gpus-per-node"}


@click.command("notebook", cls=_NotebookCommand)
@job_options_of(*_FIELDS)
@click.option(
    "--packages",
    default="",
    metavar="DIR",
    help="Cluster folder with Jupyter's Python packages, for an image without Jupyter",
)
@click.option(
    "--folder", default="", metavar="DIR", help="Cluster folder that Jupyter shows  [default: $WORK or $HOME]"
)
@click.option(
    "--port", type=WholeNumber(0, 65535), default=0, help="Port on this machine  [default: a free port]"
)
@click.option("--keep", is_flag=True, help="Keep the job running when the tunnel closes")
@click.option("--attach", metavar="JOB", help="Open a tunnel to a notebook that is already running")
@click.option("--force", is_flag=True, help="Start even if a failure is predicted")
@key_options
@click.option("--dry-run", is_flag=True, help="Print the job script and stop")
@json_option("Print the URL and the job as one line of JSON")
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
    **given: object,
) -> None:
    """Start Jupyter in an image on a compute node, and open a tunnel from this machine to Jupyter.

    toolkit prints a URL that contains an access token: everyone who has the URL can use the notebook. Ctrl-C
    closes the tunnel. Unless you give --keep, Ctrl-C also cancels the job.

    \b
    Examples:
      toolkit notebook --host login --image my.sif --time 4:00:00
      toolkit notebook --cluster demo --packages /work/ada/jupyter
    """
    from toolkit.job.notebook import merge_notebook, prepare_notebook, unseen_script
    from toolkit.job.places import HostOptions
    from toolkit.job.request.flags import Flags
    from toolkit.job.request.inputs import image_of
    from toolkit.job.running.notebook_session import (
        TunnelSession,
        attach_to_notebook,
        listen,
        start_notebook,
    )
    from toolkit.job.submit import is_far_away, place_of, with_place

    if dry_run and as_json:
        raise BadInput("--json and --dry-run: cannot be combined; leave out one of them")
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"] or as_json) as tell:
        session = TunnelSession(port, keep, partial(_show, keep=keep, as_json=as_json, tell=tell))
        if attach is not None:
            attach_to_notebook(attach, session, tell)
            return
        flags = Flags(force=force, verify_key=verify_key, no_verify=no_verify)
        asking = merge_notebook(given_fields(given), folder, packages, flags, tell)
        site = asking.job.site
        host_options = HostOptions(host, cluster, ssh_config)
        if dry_run and site and is_far_away(host_options, asking.job):
            say_exact(unseen_script(asking, site, tell))
            return
        # Check the port and the image before toolkit connects to a host.
        with listen(session) as tunnel:
            host_options = place_of(host_options, asking.job)
            image_of(asking.job.job.image or "", site)
            with contextlib.closing(host_options.open()) as runner:
                job = prepare_notebook(runner, asking, tell, remote=host_options.remote)
                if dry_run:
                    say_exact(job.script)
                    return
                start_notebook(runner, with_place(job, host_options), tunnel, session, tell)


def _show(
    record: "JobRecord", place: "NotebookAddress", url: str, *, keep: bool, as_json: bool, tell: Progress
) -> None:
    """Print the URL of the open tunnel."""
    if as_json:
        say_json({"schema": SCHEMA, "url": url, "job": record.id, "key": record.key, "host": place.host})
        return
    end = "closes the tunnel; the job continues" if keep else "closes the tunnel and cancels the job"
    tell.step(f"Jupyter runs on {place.host}; Ctrl-C {end}")
    say(url)
