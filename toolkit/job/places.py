"""Open a runner, which runs commands on this machine, an SSH host, or a virtual cluster's login node."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from toolkit.errors import BadInput, Missing

if TYPE_CHECKING:
    from toolkit.model.job import JobRecord
    from toolkit.run.command import Runner


class HostOptions(NamedTuple):
    """The values of ``--host``, ``--cluster`` and ``--ssh-config``."""

    host: str | None
    cluster: str | None
    ssh_config: Path | None

    @property
    def remote(self) -> bool:
        """Whether the options name another machine or a virtual cluster."""
        return self.host is not None or self.cluster is not None

    def open(self) -> "Runner":
        """Return a runner, which runs commands on this host. For the errors, see :func:`open_runner`."""
        return open_runner(*self)


def host_options_of(record: "JobRecord") -> HostOptions:
    """Return the host or virtual cluster on which a job runs, as values of command-line options."""
    return HostOptions(record.host, record.cluster, Path(record.ssh_config) if record.ssh_config else None)


def open_runner(host: str | None, cluster: str | None, ssh_config: Path | None = None) -> "Runner":
    """Return a runner, which runs commands on a host over SSH, or on the login node of a virtual cluster.

    If ``host`` and ``cluster`` are ``None``, the runner runs commands on this machine.

    Raises:
        BadInput: if the arguments name both a host and a cluster, or the SSH configuration is wrong.
        Missing: if the host is unreachable, or the virtual cluster does not exist.
    """
    if host is not None and cluster is not None:
        raise BadInput("--host and --cluster: cannot be combined; give only one of these options")
    if ssh_config is not None and host is None and cluster is None:
        raise BadInput("--ssh-config: this option also needs --host or --cluster")
    if ssh_config is not None:
        from toolkit.run.remote.ssh_file import check_ssh_config

        check_ssh_config(ssh_config)
    if cluster is not None:
        return _open_cluster(cluster, ssh_config)
    if host is not None:
        from toolkit.run.login_path import LoginPathRunner
        from toolkit.run.remote.ssh_shared import shared_runner

        if (runner := shared_runner(host, ssh_config)) is not None:
            return LoginPathRunner(runner)
        from toolkit.run.remote.ssh import SshRunner

        return LoginPathRunner(SshRunner(host, ssh_config))
    from toolkit.run.local import LocalRunner

    return LocalRunner()


def _open_cluster(name: str, ssh_config: Path | None) -> "Runner":
    """Return a runner, which runs commands on the login node of a virtual cluster.

    toolkit first tries the last known port, which the cluster's SSH configuration contains. If no login node
    with the recorded host key answers at this port, toolkit asks the Docker engine for the current port.
    """
    from toolkit.cluster.access import config_of
    from toolkit.run.remote.ssh import SshRunner

    place = f"cluster {name}"
    if ssh_config is not None:
        return SshRunner("login", ssh_config, place)
    if (known := config_of(name)) is not None:
        with contextlib.suppress(Missing):
            return SshRunner("login", known, place)
    from toolkit.cluster.virtual import find

    return SshRunner("login", find(name).ssh_config, place)
