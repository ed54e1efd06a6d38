"""Where a command does its work: this machine, a host over SSH, or a virtual cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from toolkit.errors import BadInput

if TYPE_CHECKING:
    from toolkit.model.job import JobRecord
    from toolkit.run.command import Runner


class Where(NamedTuple):
    """What was given as ``--host``, ``--cluster`` and ``--ssh-config``."""

    host: str | None
    cluster: str | None
    ssh_config: Path | None

    @property
    def remote(self) -> bool:
        return self.host is not None or self.cluster is not None

    def opened(self) -> "Runner":
        """Return what runs commands there, as :func:`open_runner` does."""
        return open_runner(*self)


def where_of(record: "JobRecord") -> Where:
    """Return where a job was launched."""
    return Where(record.host, record.cluster, Path(record.ssh_config) if record.ssh_config else None)


def open_runner(host: str | None, cluster: str | None, ssh_config: Path | None = None) -> "Runner":
    """Return what runs commands in the chosen place; this machine if none is chosen.

    Raises:
        BadInput: if two places are chosen, or the SSH configuration cannot be read as one.
        Missing: if the place cannot be reached, or there is no such cluster.
    """
    if host is not None and cluster is not None:
        raise BadInput("--host and --cluster: give one of them")
    if ssh_config is not None and host is None and cluster is None:
        raise BadInput("--ssh-config: give --host with it")
    if ssh_config is not None:
        from toolkit.run.remote.ssh_file import check_ssh_config

        check_ssh_config(ssh_config)
    if cluster is not None:
        from toolkit.cluster.virtual import find
        from toolkit.run.remote.ssh import SshRunner

        return SshRunner("login", ssh_config or find(cluster).ssh_config, f"cluster {cluster}")
    if host is not None:
        from toolkit.run.login_path import LoginPathRunner
        from toolkit.run.remote.ssh_shared import shared

        if (runner := shared(host, ssh_config)) is not None:
            return LoginPathRunner(runner)
        from toolkit.run.remote.ssh import SshRunner

        return LoginPathRunner(SshRunner(host, ssh_config))
    from toolkit.run.local import LocalRunner

    return LocalRunner()
