"""``toolkit init``: probe a cluster, ask the user for missing values, and write the site profile."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.frame.say import say
from toolkit.cli.options.places import place_options, wait_option
from toolkit.errors import BadInput
from toolkit.files import is_there
from toolkit.job.places import open_runner
from toolkit.report.plain import one_line

if TYPE_CHECKING:
    from toolkit.launch.sites.detect import Draft
    from toolkit.probe.bundle import Bundle
    from toolkit.run.command import Runner


@click.command("init")
@place_options
@click.option("--name", metavar="NAME", help="Name of the site (default: Slurm's ClusterName)")
@click.option("--account", metavar="NAME", help="Default account of jobs")
@click.option("--partition", metavar="NAME", help="Default partition of jobs")
@click.option(
    "--directory", metavar="DIR", help="Folder on the cluster for images and runs, such as $WORK/toolkit"
)
@click.option("--module", metavar="NAME", help="Environment module that provides the container runtime")
@wait_option()
@click.option("-y", "--yes", is_flag=True, help="Ask no questions; use the default answers")
@click.option("--force", is_flag=True, help="Replace an existing profile and its facts file")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the profile to FILE instead of your folder of profiles")  # fmt: skip
def command(
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    name: str | None,
    account: str | None,
    partition: str | None,
    directory: str | None,
    module: str | None,
    wait: int,
    yes: bool,
    force: bool,
    output: Path | None,
) -> None:
    """Probe a cluster and write its site profile.

    Without --host or --cluster, toolkit probes the cluster of this machine. toolkit reads facts from Slurm
    and from one compute node. toolkit asks you for values that only you can choose, such as the account. You
    can also give these values as options. The profile is a TOML file that you can edit.

    Example: toolkit init --cluster demo --yes
    """
    from toolkit.cli.frame.files import write_whole
    from toolkit.knowledge.sites import SUFFIX, checked_name, own_folder, parse
    from toolkit.launch.sites.detect import draft, with_answers
    from toolkit.probe.probe import encode
    from toolkit.report.site import profile

    if output is not None and output.suffix != SUFFIX:
        raise BadInput(f"-o {output}: expected the name of a TOML file", fix=f"give `-o {output}{SUFFIX}`")
    if output is not None or name is not None:
        _free(output or own_folder() / f"{checked_name(name or '')}{SUFFIX}", force)
    runner = open_runner(host, cluster, ssh_config)
    try:
        bundle = _probe_cluster(runner, partition or "", wait)
    finally:
        runner.close()
    called = name or bundle.site.cluster or cluster or bundle.host.place
    found = draft(called, bundle.host, bundle.site, destination=host or "", day=_today())
    file = output or own_folder() / f"{checked_name(called)}{SUFFIX}"
    _free(file, force)
    given = {"--account": account, "--partition": partition, "--directory": directory, "--module": module}
    site = with_answers(found, _answers(found, {o: v for o, v in given.items() if v is not None}, yes))
    text = profile(site)
    parse(text, str(file))
    if output is None:
        file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(_facts_of(file), encode(bundle))
    write_whole(file, text.encode())
    say(f"Wrote {file}, the profile of {called}, and a facts file beside it")
    for gap in found.gaps:
        say(f"warning: {gap}", err=True)
    where = shlex.quote(str(output) if output else called)
    place = f" --cluster {cluster}" if cluster else f" --host {shlex.quote(host)}" if host else ""
    place += f" --ssh-config {shlex.quote(str(ssh_config))}" if ssh_config else ""
    say(f"  show it:  toolkit site show {where}")
    say(f"  launch:   toolkit launch mnist --site {where}{place}")


def _probe_cluster(runner: "Runner", partition: str, seconds: int) -> "Bundle":
    """Return the facts of a cluster, from Slurm and from one node of ``partition``.

    ``seconds`` is the longest time to wait for a free node. If ``partition`` is empty, toolkit probes a node
    of the default partition. If Slurm has no default partition, toolkit uses the first partition that is up.
    """
    from toolkit.probe.asking import NodeChoice, SiteWords
    from toolkit.probe.probe import gather

    bundle = gather(runner, NodeChoice("1", seconds, partition, site=SiteWords()))
    parts = [part for part in bundle.site.partitions or () if part.up]
    if partition or bundle.groups or not parts or any(part.default for part in parts):
        return bundle
    return gather(runner, NodeChoice("1", seconds, parts[0].name, site=SiteWords()))


def _today() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).date().isoformat()


def _facts_of(profile: Path) -> Path:
    return profile.with_suffix(".facts.json")


def _free(profile: Path, force: bool) -> None:
    """Raise an error if the profile or the facts file beside the profile already exists.

    With ``force``, accept existing files. The check includes the facts file, because the user may have
    written this file with ``toolkit probe -o``.
    """
    for file in (profile, _facts_of(profile)):
        if is_there(file, label="-o") and not force:
            raise BadInput(
                f"{file} already exists",
                fix="replace the file with `--force`, or give another `--name` or `-o`",
            )


def _is_interactive() -> bool:
    """Return whether standard input is a terminal, on which toolkit can ask the user."""
    return sys.stdin is not None and sys.stdin.isatty()


def _answers(profile_draft: "Draft", option_answers: dict[str, str], yes: bool) -> dict[str, str]:
    """Return an answer to each question about the profile.

    ``option_answers`` maps options to the values that the user gave. If an option has no value, ``yes``
    selects the question's default. Without ``yes``, toolkit asks on the terminal.

    Raises:
        BadInput: if toolkit must ask the user, but standard input is not a terminal.
    """
    answers = dict(option_answers)
    for question in profile_draft.questions:
        if question.option in answers:
            continue
        if yes:
            answers[question.option] = question.default
        elif _is_interactive():
            kind = click.Choice(question.choices) if question.choices else None
            # readline prints the prompt itself and bypasses toolkit's output stream, which escapes control
            # characters. So escape the control characters before the call.
            answers[question.option] = click.prompt(
                one_line(question.text), default=one_line(question.default), type=kind, err=True
            )
        else:
            choices = f"; choices: {', '.join(question.choices)}" if question.choices else ""
            usual = f"accept the default {question.default}" if question.default else "leave the answer empty"
            raise BadInput(
                f"{question.option} is missing, and standard input is not a terminal: "
                f"{question.text}?{choices}",
                fix=f"give {question.option}, or {usual} with `--yes`",
            )
    return answers
