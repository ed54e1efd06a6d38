"""``toolkit cluster``: run a virtual Slurm cluster in Docker, for learning and tests."""

import os
import shlex
import shutil
import sys

import click

from toolkit.cli.frame.lazy import NearGroup
from toolkit.cli.frame.say import say, say_exact, say_json
from toolkit.cli.options.outputs import json_option
from toolkit.cli.options.whole import WholeNumber
from toolkit.errors import BadInput, Missing
from toolkit.model.cluster import DEFAULT_NAME, DEFAULT_NODES, USER
from toolkit.report.progress import Progress

_name = click.option("--name", metavar="NAME", help=f"Name of the cluster  [default: {DEFAULT_NAME}]")
_FORMER_NAME = "virtual"
"""The default name of a cluster in toolkit's releases up to 0.3."""
_user = click.option(
    "--user",
    metavar="USER",
    default=USER,
    show_default=True,
    help="User on the node: ada, root, or an account that `up --users` created, such as user01",
)
_node = click.option(
    "--node",
    metavar="NODE",
    default="login",
    show_default=True,
    help="Node on which to run the command or the shell",
)

_json = json_option("Print the status as JSON")


@click.group("cluster", cls=NearGroup)
def command() -> None:
    """Run a virtual Slurm cluster in Docker.

    The cluster has a login node and compute nodes. Each node is a container with Slurm, PMIx, Open MPI,
    Apptainer and sshd. All nodes share /home and /work, and each node offers all cores of this machine.
    """


@command.command("up", short_help="Start a cluster, or repair it")
@_name
@click.option("--nodes", type=WholeNumber(), help=f"Number of compute nodes  [default: {DEFAULT_NODES}]")
@click.option(
    "--flavour",
    metavar="KIND",
    help="Kind of cluster; to list the kinds, give an unknown kind such as `x`  [default: pmix]",
)
@click.option(
    "--users", type=WholeNumber(), help="Number of accounts (user01, user02, …) for the students of a class"
)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Address and port at which other machines can connect  [default: only this machine can connect]",
)
@_json
@click.pass_context
def up(
    ctx: click.Context,
    name: str | None,
    nodes: int | None,
    flavour: str | None,
    users: int | None,
    listen: str | None,
    as_json: bool,
) -> None:
    """Start a cluster. If the cluster exists, create its missing nodes and start its stopped nodes.

    Real clusters differ in the MPI interfaces of srun and in the MPI library of the nodes; --flavour selects
    the interfaces and the library. With --users, toolkit creates accounts for a class, each with a home
    folder on the cluster. For each account, toolkit also writes a folder with an SSH key on this machine, and
    prints where these folders are. Give each student the folder of their account.

    \b
    Example: toolkit cluster up --nodes 2
             toolkit cluster up --users 20 --listen 192.168.1.10:2222
    """
    from toolkit.cluster import plan, virtual
    from toolkit.cluster.flavour import check_flavour

    if flavour is not None:
        check_flavour(flavour)  # an unknown flavour fails before toolkit connects to the Docker engine
    if listen and plan.is_reachable(plan.check_listen(listen)):
        say(
            f"warning: other machines can reach {listen}. A user who is root on a node of the cluster is "
            "root on this machine. Accounts that `--users` creates cannot become root; see docs/security.md",
            err=True,
        )
    name = _resolve_name(name)
    with _progress(ctx) as tell:
        cluster = virtual.up(name, nodes, tell, flavour, users, listen)
    if as_json:
        say_json(virtual.status(name))
        return
    option = "" if name == DEFAULT_NAME else f" --name {name}"
    say(f"The cluster {name} is up: login, {', '.join(cluster.hosts[1:])}; user {cluster.user}")
    say(f"  open a shell:     toolkit cluster shell{option}")
    say(f"  use ssh:          ssh -F {shlex.quote(str(cluster.ssh_config))} login")
    if cluster.users:
        first, last = cluster.accounts[0], cluster.accounts[-1]
        folder = shlex.quote(str(cluster.folder_of(first).parent))
        say(f"  {cluster.users} users, {first} to {last}; give each user their folder in {folder}")
    say(f"  remove it:        toolkit cluster down{option}")


@command.command("status", short_help="Show the state of each node")
@_name
@_json
@click.pass_context
def status(ctx: click.Context, name: str | None, as_json: bool) -> None:
    """Show the state of each node; exit with status 0 if all nodes run and the cluster accepts jobs, else 1.

    Example: toolkit cluster status --json
    """
    from toolkit.cluster import virtual

    found = virtual.status(_resolve_name(name))
    if as_json:
        say_json(found)
    else:
        say(f"cluster {found.name}: {found.state}")
        for node in found.nodes:
            say(f"  {node.name:<8} {node.container:<10} {node.slurm or ''}".rstrip())
        if not any(node.slurm for node in found.nodes):
            say("  Slurm does not answer")
        if found.users:
            say(f"  {len(found.users)} users, {found.users[0]} to {found.users[-1]}")
        by_ssh = f"ssh -F {shlex.quote(found.ssh_config)} login"
        say(f"  {by_ssh if found.ssh_config else 'another user made this cluster and has the SSH keys'}")
    ctx.exit(0 if found.state == "up" else 1)


@command.command("list", short_help="List the clusters of this machine")
@json_option("Print the names as JSON")
def list_clusters(as_json: bool) -> None:
    """List the virtual clusters of this machine.

    Example: toolkit cluster list
    """
    from toolkit.cluster import virtual

    found = virtual.names()
    if as_json:
        say_json({"schema": "toolkit.clusters/1", "clusters": list(found)})
        return
    for name in found:
        say(name)
    if not found:
        say("no virtual cluster on this machine; start a cluster: toolkit cluster up", err=True)


@command.command("exec", short_help="Run a command on a node")
@_name
@_node
@_user
@click.option(
    "-i",
    "--stdin",
    "with_input",
    is_flag=True,
    help="Read all of standard input, and pass the input to the command",
)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def execute(
    ctx: click.Context, name: str | None, node: str, user: str, with_input: bool, words: tuple[str, ...]
) -> None:
    """Run the command WORDS on a node, and exit with the status of the command. Without -i, the command's
    standard input is empty.

    \b
    Example: toolkit cluster exec -- srun -N2 hostname
             toolkit cluster exec -i -- sbatch < job.sh
    """
    from toolkit.cluster import use, virtual

    if with_input and sys.stdin is None:
        raise BadInput(
            "-i: standard input is closed",
            fix="leave out `-i`, or redirect a file to standard input: `< FILE`",
        )
    cluster = virtual.find(_resolve_name(name))
    given = sys.stdin.buffer.read() if with_input else None
    ctx.exit(use.execute(cluster, node, user, words, _pass_on, given))


@command.command("shell", short_help="Open a shell on a node")
@_name
@_node
@_user
def shell(name: str | None, node: str, user: str) -> None:
    """Open a shell on a node.

    Example: toolkit cluster shell --node node1
    """
    from toolkit.cluster import use, virtual

    words = use.shell_words(virtual.find(_resolve_name(name)), node, user)
    program = shutil.which(words[0])
    if program is None:
        raise Missing(f"{words[0]} is not installed on this machine", fix="install openssh-client")
    os.execv(program, words)  # noqa: S606 - the shell replaces this process in the same terminal


@command.command("down", short_help="Remove a cluster with all its data")
@_name
@click.pass_context
def down(ctx: click.Context, name: str | None) -> None:
    """Remove the cluster with all its data.

    Example: toolkit cluster down
    """
    from toolkit.cluster import virtual

    name = _resolve_name(name)
    with _progress(ctx) as tell:
        virtual.down(name, tell)


def _resolve_name(name: str | None) -> str:
    """Return ``name``, or a default name if ``name`` is ``None``.

    The default name is usually ``DEFAULT_NAME``. If a cluster named ``_FORMER_NAME`` exists, the default name
    is ``_FORMER_NAME``, and toolkit prints a warning.

    Raises:
        BadInput: if ``name`` is ``None``, and clusters named ``DEFAULT_NAME`` and ``_FORMER_NAME``
            both exist.
    """
    if name:
        return name
    from toolkit.cluster import virtual

    found = virtual.names()
    if _FORMER_NAME not in found:
        return DEFAULT_NAME
    if DEFAULT_NAME in found:
        raise BadInput(
            f"the clusters {DEFAULT_NAME} and {_FORMER_NAME} both exist, so --name is necessary",
            fix=f"give `--name {DEFAULT_NAME}` or `--name {_FORMER_NAME}`",
        )
    say(
        f"warning: using the cluster {_FORMER_NAME}, but the default name is now {DEFAULT_NAME}; "
        f"to avoid this warning, write --name {_FORMER_NAME}",
        err=True,
    )
    return _FORMER_NAME


def _progress(ctx: click.Context) -> Progress:
    return Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"])


def _pass_on(output: bytes, errors: bytes) -> None:
    say_exact(output)
    say_exact(errors, err=True)
