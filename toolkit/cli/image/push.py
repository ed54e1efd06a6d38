"""``toolkit image push``: copy an image to a registry, or to a cluster over SSH."""

import posixpath
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import msgspec

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.image.registry import access, registry_options
from toolkit.cli.options.outputs import json_option
from toolkit.cli.options.places import place_options
from toolkit.errors import BadInput
from toolkit.files import check_given
from toolkit.job.places import open_runner
from toolkit.model.progress import Tell
from toolkit.report.progress import Progress
from toolkit.run.command import Runner
from toolkit.run.registry.name import is_registry_name, parse_name
from toolkit.units import format_size

_SSH = "ssh://"


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """The result of copying an image file to a host. ``bytes`` is the size of the file.

    ``reused`` is true if the host already had an identical file, so that toolkit copied nothing.
    """

    schema: str = "toolkit.copied/1"
    image: str
    place: str
    path: str
    sha256: str
    bytes: int
    reused: bool


@click.command("push")
@click.argument("image")
@click.argument("target")
@registry_options
@click.option(
    "--facts",
    is_flag=True,
    help="Write IMAGE's facts file beside the copy; users can then launch the copy from any machine",
)
@place_options
@json_option()
@click.pass_context
def command(
    ctx: click.Context,
    /,
    image: str,
    target: str,
    ca: Path | None,
    plain_http: bool,
    platform: str,
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    facts: bool,
    as_json: bool,
) -> None:
    """Copy IMAGE to a registry, or to a cluster over SSH.

    IMAGE is a SIF, an OCI layout or archive, an archive of docker save, or an image of the Docker engine
    (docker-daemon:NAME:TAG). TARGET is docker://HOST/NAME:TAG or oras://HOST/NAME:TAG. If IMAGE is a file,
    TARGET may also be ssh://HOST/PATH, or PATH with --host or --cluster. A path that ends with / is a folder.
    A path that does not start with / is relative to your home folder on the host.

    toolkit uses the credentials of docker login, skips parts that the target already has, and resumes an
    interrupted copy.

    \b
    Examples:
      toolkit image push my.sif oras://registry.my-centre.example/ml/tf:2.15
      toolkit image push docker-daemon:my/tf:1 docker://localhost:5000/tf:1
      toolkit image push my.sif ssh://login.my-centre.example/work/me/images/
      toolkit image push my.sif --facts --host login /project/course/images/
    """
    quiet = ctx.obj["quiet"]
    if is_registry_name(target):
        if host or cluster:
            raise BadInput(f"{target}: this target already contains the host; leave out --host and --cluster")
        if facts:
            raise BadInput(
                f"--facts: {target} is in a registry, but toolkit writes facts only beside a file; "
                "leave out --facts"
            )
        from toolkit.image.transfer.push import push

        name = parse_name(target)
        with Progress(verbose=ctx.obj["verbose"], quiet=quiet) as tell:
            pushed = push(image, name, access(ca, plain_http=plain_http), tell, platform=platform)
        if as_json:
            say_json(pushed, indent=True)
        else:
            say(f"{pushed.target}  {pushed.digest}  {pushed.sent} of {pushed.parts} parts sent")
        return
    host, path = read_target(target, host, cluster)
    source = Path(image)
    check_given(source, fix="make a SIF file first: `toolkit image sif RECIPE`")
    if facts:
        from toolkit.image.inspect import inspect

        inspect(source)  # check the image before toolkit connects to the host
    with Progress(verbose=ctx.obj["verbose"], quiet=quiet) as tell:
        runner = open_runner(host, cluster, ssh_config)
        try:
            copied = copy(runner, source, path, tell, facts=facts)
        finally:
            runner.close()
    if as_json:
        say_json(copied, indent=True)
    else:
        say(f"{copied.place}:{copied.path}  {format_size(copied.bytes)}  sha256:{copied.sha256}")


def copy(runner: Runner, source: Path, path: str, tell: Tell, *, facts: bool = False) -> Copied:
    """Copy a file to ``path`` on the host, unless the host has an identical file there.

    A ``path`` that ends with ``/`` is a folder. If ``facts`` is true, the function writes the image's facts
    file beside the copy. When a user without a local copy of the image launches the image, toolkit reads the
    facts file instead.

    Raises:
        BadInput: if ``facts`` is true and the file is not an image.
    """
    from toolkit.job.request.inputs import FACTS, facts_beside
    from toolkit.run.stage import Parcel, stage

    goal = posixpath.join(path, source.name) if path.endswith("/") or not path else path
    tell.step(f"Reading {source.name}")
    parcel = Parcel.of(source, goal)
    beside = facts_beside(source, parcel.sha256, tell) if facts else b""
    sent = stage(runner, [parcel], tell)
    if beside:
        runner.write(f"{goal}{FACTS}", beside)
    return Copied(
        image=str(source),
        place=runner.place,
        path=goal,
        sha256=parcel.sha256,
        bytes=source.stat().st_size,
        reused=not sent,
    )


def read_target(target: str, host: str | None, cluster: str | None) -> tuple[str | None, str]:
    """Return the host and the path of a target. A path that does not start with ``/`` is relative to the
    user's home folder on the host.

    Raises:
        BadInput: if the target has no host or two hosts, or the path is not valid.
    """
    if target.startswith(_SSH):
        if host or cluster:
            raise BadInput(f"{target}: this target already contains the host; leave out --host and --cluster")
        try:
            parts = urlsplit(target)
            port = parts.port
        except ValueError as error:
            raise BadInput(f"{target}: {error}") from error
        if parts.password or not parts.hostname:
            raise BadInput(
                f"{target}: expected ssh://HOST/PATH or ssh://USER@HOST:PORT/PATH, without a password"
            )
        user = f"{unquote(parts.username)}@" if parts.username else ""
        host, path = (
            f"{user}{parts.netloc.rpartition('@')[2] if port else parts.hostname}",
            unquote(parts.path),
        )
        path = path.removeprefix("/~/") if path.startswith("/~/") else path
    elif host or cluster:
        path = target.removeprefix("~/")
    elif re.match(r"[a-z][a-z0-9+.-]*://", target):
        raise BadInput(f"{target}: unknown kind of target; choices: docker://, oras://, ssh://")
    else:
        raise BadInput(
            f"{target}: the host or the registry is missing",
            fix="give docker://HOST/NAME:TAG, oras://HOST/NAME:TAG, ssh://HOST/PATH, or a path with `--host`",
        )
    if "\0" in path or "\n" in path or path.startswith("~"):
        raise BadInput(
            f"{target}: {path!r} is not a valid path",
            fix="give a path without line breaks; leave out `~` for a path in your home folder",
        )
    return host, path
