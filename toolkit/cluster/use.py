"""Run commands or open a shell on the nodes of a running cluster."""

import contextlib
import shutil
import uuid
from collections.abc import Sequence

from toolkit.cluster.files import packed_file
from toolkit.cluster.plan import container
from toolkit.errors import BadInput, ToolkitError
from toolkit.model.cluster import Cluster
from toolkit.run.command import Command
from toolkit.run.docker.nodes import OnOutput, open_nodes

ROOT = "root"


def execute(
    cluster: Cluster,
    host: str,
    user: str,
    words: Sequence[str],
    on_output: OnOutput,
    stdin: bytes | None = None,
) -> int:
    """Run the command ``words`` on the node ``host`` as ``user``, and return the command's exit status.

    The command reads ``stdin`` from its standard input; without ``stdin``, the input is empty. If the user
    interrupts toolkit, toolkit stops the command.
    """
    check_host(cluster, host)
    check_user(cluster, user)
    name = container(cluster.name, host)
    # Docker cannot stop a command that it started in a running container.
    # The script writes the ID of its process group to a file, so that toolkit can kill the group.
    note = f"/tmp/.toolkit-{uuid.uuid4().hex}"  # noqa: S108 - on the node, with a random name
    script = 'echo $$ > "$0" && "$@"; status=$?; rm -f "$0"; exit $status'
    if stdin is not None:
        # Through a TLS socket, Docker's SDK cannot signal the end of the input.
        # So the command reads its input from a file, which the script opens and then removes.
        script = f'exec < "$0.in"; rm -f "$0.in"; {script}'
    words = ("setsid", "--wait", "sh", "-c", script, note, *words)
    env = {"HOME": home(user), "USER": user, "LOGNAME": user, "WORK": f"/work/{user}"}
    with open_nodes() as engine:
        try:
            if stdin is not None:
                engine.put(name, packed_file(f"{note}.in", stdin))
                engine.run(name, Command.of("chown", user, f"{note}.in", timeout=10)).require("giving input")
            return engine.stream(name, words, on_output, user=user, folder=home(user), env=env)
        except BaseException:
            end = Command.of("sh", "-c", 'kill -- -"$(cat "$0")"; rm -f "$0" "$0.in"', note, timeout=10)
            with contextlib.suppress(ToolkitError):
                engine.run(name, end, user)
            raise


def shell_words(cluster: Cluster, host: str, user: str) -> tuple[str, ...]:
    """Return the command that opens a shell on a node. The caller replaces the toolkit process with this
    command.

    The command is ``ssh``, as on a real cluster. For root, the command is ``docker exec``, because sshd
    refuses root. If this machine has no ``ssh``, the command is ``docker exec`` for all users.
    """
    check_host(cluster, host)
    check_user(cluster, user)
    if user != ROOT and shutil.which("ssh"):
        return ("ssh", "-t", "-F", str(cluster.config_of(user)), host)
    return (
        "docker",
        "exec",
        "-it",
        "-u",
        user,
        "-w",
        home(user),
        container(cluster.name, host),
        "bash",
        "-l",
    )


def home(user: str) -> str:
    """Return the path of a user's home folder on a cluster."""
    return "/root" if user == ROOT else f"/home/{user}"


def check_user(cluster: Cluster, user: str) -> str:
    """Return ``user`` if the cluster has this account.

    Raises:
        BadInput: if the account does not exist; the error lists the existing accounts.
    """
    known = (cluster.user, ROOT, *cluster.accounts)
    if user not in known:
        fix = (
            ""
            if cluster.users
            else f"create user01 to user20: `toolkit cluster up --name {cluster.name} --users 20`"
        )
        raise BadInput(
            f"--user {user}: no such user; the cluster {cluster.name} has {_name_range(known)}", fix=fix
        )
    return user


def _name_range(accounts: Sequence[str]) -> str:
    """Return account names as text, with the learners' accounts as a range such as ``user01 to user20``."""
    few, counted = accounts[:2], accounts[2:]
    return ", ".join((*few, *([f"{counted[0]} to {counted[-1]}"] if counted else [])))


def check_host(cluster: Cluster, host: str) -> str:
    """Return ``host`` if the cluster has this node.

    Raises:
        BadInput: if the node does not exist; the error lists the existing nodes.
    """
    if host not in cluster.hosts:
        raise BadInput(
            f"--node {host}: no such node; the cluster {cluster.name} has {', '.join(cluster.hosts)}"
        )
    return host
