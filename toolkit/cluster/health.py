"""Check that a cluster works: wait for its nodes in Slurm, and run a test job."""

import time

from toolkit.cluster.plan import Layout, label
from toolkit.errors import CheckFailed
from toolkit.model.progress import Tell
from toolkit.run.command import Command
from toolkit.run.docker.nodes import Nodes

PATIENCE = 90.0
"""The time limit in seconds for starting a cluster. On two idle cores, a start takes about four seconds."""

_POLL = 0.2
_LOG_LINES = 8
_QUESTION_SECONDS = 10.0
_PROOF = "toolkit-proof"
_TAKES_JOBS = frozenset({"idle", "mixed", "allocated", "completing", "planned"})


def node_states(text: str) -> dict[str, str]:
    """Return the state of each node from the output of ``sinfo -h -N -o '%N %T'``. A mark such as the
    asterisk in ``idle*`` remains part of the state.
    """
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def ask_states(nodes: Nodes, layout: Layout) -> dict[str, str]:
    """Return the state of each node in Slurm; empty if Slurm does not answer."""
    command = Command.of("sinfo", "-h", "-N", "-o", "%N %T", timeout=_QUESTION_SECONDS)
    try:
        answer = nodes.run(layout.container("login"), command)
    except CheckFailed:  # the container of the login node has just stopped
        return {}
    return node_states(answer.text) if answer.ok else {}


def takes_jobs(layout: Layout, states: dict[str, str]) -> bool:
    """Return whether every compute node accepts jobs. A node in the state ``idle*`` does not respond, and so
    does not accept jobs.
    """
    return all(states.get(host) in _TAKES_JOBS for host in layout.hosts[1:])


def wait(nodes: Nodes, layout: Layout, tell: Tell, patience: float = PATIENCE) -> None:
    """Wait until every node accepts jobs. If all nodes are idle, also run a test job on all nodes.

    Raises:
        CheckFailed: if a container stops, the nodes are not ready after ``patience`` seconds, or the test job
            fails; the error contains the last log lines of the nodes.
    """
    deadline = time.monotonic() + patience
    states: dict[str, str] = {}
    while time.monotonic() < deadline:
        _all_running(nodes, layout)
        states = ask_states(nodes, layout)
        if takes_jobs(layout, states):
            break
        tell.detail(" ".join(f"{host} {state}" for host, state in states.items()) or "waiting for slurmctld")
        time.sleep(_POLL)
    else:
        states_text = ", ".join(
            f"{host} is {states.get(host, 'not known to Slurm')}" for host in layout.hosts[1:]
        )
        raise _unhealthy(nodes, layout, f"after {patience:.0f} s, not all nodes accept jobs: {states_text}")
    if set(states.values()) == {"idle"}:
        _prove(nodes, layout)


def _prove(nodes: Nodes, layout: Layout) -> None:
    # srun waits at most five seconds for nodes, because another job may occupy the nodes for hours.
    words = ("srun", f"-N{layout.nodes}", "--immediate=5", f"--job-name={_PROOF}", "--mpi=none", "hostname")
    answer = nodes.run(layout.container("login"), Command.of(*words, timeout=30.0))
    proven = answer.ok and sorted(answer.text.split()) == sorted(layout.hosts[1:])
    if not proven and not _another_job_runs(nodes, layout):
        raise _unhealthy(nodes, layout, f"{' '.join(words)} failed", answer.errors.splitlines()[-_LOG_LINES:])


def _another_job_runs(nodes: Nodes, layout: Layout) -> bool:
    command = Command.of("squeue", "-h", "-t", "running,completing", "-o", "%j", timeout=_QUESTION_SECONDS)
    return any(name != _PROOF for name in nodes.run(layout.container("login"), command).text.splitlines())


def _all_running(nodes: Nodes, layout: Layout) -> None:
    containers = nodes.containers_with(label(layout.name))
    for host in layout.hosts:
        machine = containers.get(layout.container(host))
        if machine is None or machine.state != "running":
            raise _unhealthy(
                nodes, layout, f"the container of {host} stopped during the start", stopped_host=host
            )


def _unhealthy(
    nodes: Nodes,
    layout: Layout,
    reason: str,
    details: list[str] | None = None,
    stopped_host: str | None = None,
) -> CheckFailed:
    detail = list(details or ())
    for host in [stopped_host] if stopped_host else layout.hosts:
        try:
            lines = nodes.log(layout.container(host), _LOG_LINES)
        except CheckFailed:
            lines = ["(the container and its log no longer exist)"]
        detail += [f"{host}: {line}" for line in lines]
    return CheckFailed(
        f"the cluster {layout.name} does not work: {reason}",
        fix=f"create the cluster again: `toolkit cluster down --name {layout.name}`, then "
        f"`toolkit cluster up --name {layout.name}`",
        detail=detail,
    )
