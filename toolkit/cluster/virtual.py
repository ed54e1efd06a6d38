"""Start, find and remove virtual clusters."""

import contextlib
import os
from collections.abc import Iterator

from toolkit.cluster import health
from toolkit.cluster.access import Access, Secrets, clusters, new_secrets, with_accounts
from toolkit.cluster.files import (
    CODE,
    MAKE_ACCOUNTS,
    accounts_archive,
    code_archive,
    code_files,
    code_folder,
    setup_archive,
)
from toolkit.cluster.flavour import check_flavour, default_flavour
from toolkit.cluster.image import ensure_image
from toolkit.cluster.plan import (
    COUNT,
    FLAVOUR,
    LABEL,
    LISTEN,
    SSH_PORT,
    Layout,
    check_listen,
    check_name,
    check_nodes,
    check_users,
    label,
)
from toolkit.errors import BadInput, Missing
from toolkit.model.cluster import DEFAULT_NAME, DEFAULT_NODES, Cluster, ClusterStatus, NodeStatus
from toolkit.model.progress import Silent, Tell
from toolkit.run import clone
from toolkit.run.command import Command
from toolkit.run.docker.engine import machine
from toolkit.run.docker.nodes import NodeContainer, Nodes, open_nodes
from toolkit.run.filelock import wait_for_lock
from toolkit.run.folders import make_writable

_ACCOUNTS_SECONDS = 60.0
"""The time limit in seconds for creating the students' accounts on one node. A node needs a few seconds for a
hundred accounts.
"""


def up(
    name: str = DEFAULT_NAME,
    nodes: int | None = None,
    tell: Tell | None = None,
    flavour: str | None = None,
    users: int | None = None,
    listen: str | None = None,
) -> Cluster:
    """Create or repair a cluster, and return when it accepts jobs. Working nodes keep running.

    ``nodes`` is the number of compute nodes. ``flavour`` names a combination of a Debian release, Slurm
    settings and MPI packages, such as ``pmix``. ``users`` is the number of students' accounts. ``listen`` is
    the address and port (``ADDRESS:PORT``) on this machine at which users reach the login node.

    If an argument is not given, an existing cluster keeps its present value. By default, a new cluster has
    two compute nodes, the default flavour and no students' accounts, and only this machine can reach it.
    A later call of ``up`` can add students' accounts. If the start of a new cluster fails or is interrupted,
    toolkit removes the new cluster. This function never removes an existing cluster.

    Raises:
        BadInput: if an argument is invalid, or differs from the present value of an existing cluster.
            ``users`` may be larger than the present value.
        CheckFailed: if the cluster does not work; the error contains the last log lines of its nodes.
        Missing: if the cluster exists, but the folder that :func:`clusters` returns does not contain the
            cluster's keys.
    """
    check_name(name)
    if flavour is not None:
        check_flavour(flavour)  # an unknown flavour fails before toolkit connects to the engine
    tell = tell or Silent()
    with _cluster_lock(tell), open_nodes() as engine:
        containers = engine.containers_with(label(name))
        _check_owner(name, containers)
        layout = _layout(engine, name, nodes, containers, flavour, listen)
        secrets = _secrets(name, users, existed=bool(containers))
        try:
            if _is_complete(layout, containers):
                tell.step(f"The cluster {name} exists; checking whether it works")
            else:
                _complete(engine, layout, secrets, containers, tell)
            _refresh_code(engine, layout)
            _make_accounts(engine, layout, secrets, tell)
            health.wait(engine, layout, tell)
            return _cluster(layout, engine.containers_with(label(name)))
        except BaseException:
            if not containers:
                _remove(engine, name)
            raise


def find(name: str = DEFAULT_NAME) -> Cluster:
    """Return the running cluster with this name.

    Raises:
        Missing: if a node of the cluster is not running, or the folder that :func:`clusters` returns does not
            contain the cluster's keys.
    """
    check_name(name)
    with open_nodes() as engine:
        containers = engine.containers_with(label(name))
        if not containers:
            raise _missing(engine, name, "not running")
        # This function does not use the cores (1) and the memory (0) of the layout, so any values will do.
        layout = Layout(name, _count(containers), 1, 0, listen=_listen(containers))
        states = {host: _state(containers, layout, host) for host in layout.hosts}
        broken = [f"{host} is {state}" for host, state in states.items() if state != "running"]
        if broken:
            raise _missing(engine, name, f"incomplete ({', '.join(broken)})")
    if Access(name).secrets() is None:
        raise _foreign(name)
    return _cluster(layout, containers)


def names() -> tuple[str, ...]:
    """Return the names of all clusters in the Docker engine, including clusters with missing nodes."""
    with open_nodes() as engine:
        return tuple(_other_clusters(engine, ""))


def status(name: str = DEFAULT_NAME) -> ClusterStatus:
    """Return the state of each node of a cluster, even if some nodes are missing.

    Raises:
        Missing: if no cluster has this name.
    """
    check_name(name)
    with open_nodes() as engine:
        node_containers = engine.containers_with(label(name))
        if not node_containers:
            raise _missing(engine, name, "not running")
        layout = _layout(engine, name, None, node_containers)
        containers = {host: _state(node_containers, layout, host) for host in layout.hosts}
        states = health.ask_states(engine, layout) if containers["login"] == "running" else {}
    access = Access(name)
    works = _is_complete(layout, node_containers) and health.takes_jobs(layout, states)
    return ClusterStatus(
        name=name,
        state="up" if works else "partial",
        nodes=tuple(NodeStatus(name=h, container=c, slurm=states.get(h)) for h, c in containers.items()),
        ssh_config=str(access.ssh_config) if access.ssh_config.is_file() else "",
        users=access.accounts,
    )


def down(name: str = DEFAULT_NAME, tell: Tell | None = None) -> None:
    """Remove a cluster with its containers, network, volumes and keys.

    Raises:
        Missing: if no cluster has this name; the error lists the existing clusters.
    """
    check_name(name)
    tell = tell or Silent()
    with _cluster_lock(tell), open_nodes() as engine:
        _check_owner(name, engine.containers_with(label(name)))
        tell.step(f"Removing the cluster {name}")
        if not _remove(engine, name):
            alternatives = ", ".join(_other_clusters(engine, name)) or "none"
            raise Missing(
                f"cluster {name}: not found", fix=f"check `--name`; existing clusters: {alternatives}"
            )


def _remove(engine: Nodes, name: str) -> bool:
    removed = engine.remove(label(name))
    return Access(name).forget() or removed > 0


def _cluster(layout: Layout, containers: dict[str, NodeContainer]) -> Cluster:
    access = Access(layout.name)
    port = containers[layout.container("login")].ports[SSH_PORT]
    access.point_at(port, layout.nodes, layout.address)
    keys = access.secrets()
    return Cluster(
        name=layout.name,
        nodes=layout.nodes,
        ssh_config=access.ssh_config,
        users=len(keys.accounts) if keys else 0,
    )


def _layout(
    engine: Nodes,
    name: str,
    nodes: int | None,
    containers: dict[str, NodeContainer],
    flavour: str | None = None,
    listen: str | None = None,
) -> Layout:
    listen = check_listen(listen) if listen else None
    existing_count = _count(containers) if containers else None
    if existing_count is not None and nodes not in (None, existing_count):
        raise _another(name, f"has {existing_count} compute nodes, not {nodes}")
    kind = _flavour(containers)
    if kind is not None and flavour not in (None, kind):
        raise _another(name, f"is of the flavour {kind}, not {flavour}")
    if containers and listen not in (None, _listen(containers)):
        raise _another(
            name,
            f"listens on {_listen(containers) or 'a port that only this machine can reach'}, not {listen}",
        )
    cpus, memory = machine(engine.client)
    count = existing_count or check_nodes(DEFAULT_NODES if nodes is None else nodes)
    kind = kind or check_flavour(flavour or default_flavour())
    address = _listen(containers) if containers else listen or ""
    return Layout(name, count, cpus, memory, kind, address, clone.labels())


def _check_owner(name: str, containers: dict[str, NodeContainer]) -> None:
    """If ``make`` started toolkit, check that ``make`` in the same clone of toolkit's repository created the
    cluster.

    Raises:
        BadInput: if a user created the cluster, or ``make`` created the cluster in another clone.
    """
    if not (own := clone.labels()):
        return
    if any(machine.labels.get(clone.LABEL) != own[clone.LABEL] for machine in containers.values()):
        raise BadInput(
            f"the cluster {name} exists, but `make` in this clone did not create the cluster",
            fix=f"remove the cluster if no other user needs it: `toolkit cluster down --name {name}`",
        )


def _another(name: str, fault: str) -> BadInput:
    return BadInput(
        f"the cluster {name} {fault}",
        fix=f"remove the cluster first: `toolkit cluster down --name {name}`; or give the new cluster "
        f"another "
        "`--name`",
    )


def _secrets(name: str, users: int | None, *, existed: bool) -> Secrets:
    """Return the keys of a cluster, and write new keys to disk.

    If the cluster is new (``existed`` is false), create all keys. ``users`` is the wanted number of students'
    accounts; ``None`` adds no accounts.
    """
    access = Access(name)
    secrets = access.secrets() if existed else new_secrets()
    if secrets is None:
        raise _foreign(name)
    account_count = len(secrets.accounts)
    if users is not None and check_users(users) < account_count:
        raise _another(
            name, f"has {account_count} users, not {users}: toolkit adds accounts but never removes them"
        )
    wanted = with_accounts(secrets, users or account_count)
    if not existed or wanted != secrets:
        access.keep(wanted)
    return wanted


def _make_accounts(engine: Nodes, layout: Layout, secrets: Secrets, tell: Tell) -> None:
    """Create the students' accounts on every node, and their home folders on the login node.

    On the login node, always create the folder ``/work/shared``, even if the cluster has no students'
    accounts.
    """
    if secrets.accounts:
        tell.detail(f"{len(secrets.accounts)} users")
    for host in layout.hosts if secrets.accounts else ("login",):
        name = layout.container(host)
        engine.put(name, accounts_archive(host, secrets))
        make = Command.of("sh", MAKE_ACCOUNTS, host, timeout=_ACCOUNTS_SECONDS)
        engine.run(name, make).require(f"creating accounts on {host} of the cluster {layout.name}")


def _complete(
    engine: Nodes, layout: Layout, secrets: Secrets, containers: dict[str, NodeContainer], tell: Tell
) -> None:
    """Create missing nodes and start stopped nodes. The login node starts first, because it runs Slurm's
    controller.
    """
    missing = any(_state(containers, layout, host) == "missing" for host in layout.hosts)
    image = ensure_image(engine.client, layout.flavour, tell) if missing else ""
    tell.step(f"Starting the cluster {layout.name}: a login node and {layout.nodes} compute nodes")
    engine.make_network(layout.network, layout.labels)
    for volume in layout.volumes:
        engine.make_volume(volume, layout.labels)
    code = code_archive(code_files())
    for host in layout.hosts:
        name, state = layout.container(host), _state(containers, layout, host)
        tell.detail(f"{host}: {state}")
        if state == "missing":
            engine.make(layout.machine(host, image))
        if state in ("missing", "created"):
            engine.put(name, setup_archive(layout, host, secrets))
            engine.put(name, code)
        if state != "running":
            engine.start(name, paused=state == "paused")
    if containers:
        # A restarted container may have a new network address.
        # `scontrol reconfigure` makes Slurm's daemons look up the nodes' addresses again.
        anew = "until scontrol reconfigure; do sleep 0.2; done"
        engine.run(layout.container("login"), Command.of("sh", "-c", anew, timeout=20))


def _refresh_code(engine: Nodes, layout: Layout) -> None:
    """Copy toolkit's code from this machine to all nodes, if the code on the login node is different.

    Then start the compilation to bytecode on the login node as root, because the cluster's ordinary user
    cannot write to the folder of the code.
    """
    code = code_files()
    folder, login = code_folder(code), layout.container("login")
    target = engine.run(login, Command.of("readlink", CODE, timeout=10)).text.strip()
    if target != folder:
        packed = code_archive(code)
        for host in layout.hosts:
            engine.put(layout.container(host), packed)
    compiling = f"ls {folder}/toolkit/__pycache__ || /opt/toolkit/venv/bin/python -m compileall -q {folder}"
    engine.run(login, Command.of("sh", "-c", f"({compiling}) > /dev/null 2>&1 &", timeout=10))


def _is_complete(layout: Layout, containers: dict[str, NodeContainer]) -> bool:
    return all(_state(containers, layout, host) == "running" for host in layout.hosts)


def _state(containers: dict[str, NodeContainer], layout: Layout, host: str) -> str:
    container = containers.get(layout.container(host))
    return container.state if container else "missing"


def _count(containers: dict[str, NodeContainer]) -> int:
    return int(next(iter(containers.values())).labels[COUNT])


def _listen(containers: dict[str, NodeContainer]) -> str:
    return next(iter(containers.values())).labels.get(LISTEN, "")


def _flavour(containers: dict[str, NodeContainer]) -> str | None:
    """Return the flavour of a cluster from the label of its containers; ``None`` if no container exists. If
    the label is missing, return the default flavour.
    """
    return next(iter(containers.values())).labels.get(FLAVOUR, default_flavour()) if containers else None


def _missing(engine: Nodes, name: str, fault: str) -> Missing:
    names = _other_clusters(engine, name)
    others_text = f"; running clusters: {', '.join(names)}" if names else ""
    return Missing(
        f"cluster {name}: {fault}{others_text}", fix=f"start the cluster: `toolkit cluster up --name {name}`"
    )


def _other_clusters(engine: Nodes, name: str) -> list[str]:
    return sorted({machine.labels[LABEL] for machine in engine.containers_with(LABEL).values()} - {name})


def _foreign(name: str) -> Missing:
    return Missing(
        f"the cluster {name} exists, but its keys are not in {Access(name).folder}: another user created the "
        f"cluster, or you created the cluster with another value of XDG_STATE_HOME",
        fix=f"use another `--name`, or remove the cluster: `toolkit cluster down --name {name}`",
    )


@contextlib.contextmanager
def _cluster_lock(tell: Tell) -> Iterator[None]:
    """Lock the folder of clusters, so that only one toolkit process changes clusters at a time.

    The kernel releases the lock when the process exits.
    """
    folder = make_writable(clusters(), "XDG_STATE_HOME")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        wait_for_lock(
            descriptor, tell, "Waiting for another toolkit process that creates or removes a cluster"
        )
        yield
    finally:
        os.close(descriptor)
