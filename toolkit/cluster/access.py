"""The folder of a cluster on this machine: its keys, and the SSH files that lead to it."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.cluster.plan import SSH_PORT
from toolkit.data import state_dir
from toolkit.errors import BadInput
from toolkit.model.cluster import USER, hosts
from toolkit.run.keys import new_key_pair
from toolkit.run.local import LocalRunner

_MUNGE_KEY_BYTES = 128


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """What is made once for each cluster and shared with none; containers that are remade get the same."""

    user_private: str
    user_public: str
    host_private: str
    host_public: str
    munge: bytes


@dataclass(frozen=True, slots=True)
class Access:
    """The folder of the cluster ``name``."""

    name: str

    @property
    def folder(self) -> Path:
        return clusters() / self.name

    @property
    def ssh_config(self) -> Path:
        return self.folder / "ssh_config"

    def secrets(self) -> Secrets | None:
        """Return the keys of the cluster, or ``None`` where it has no folder here.

        Raises:
            BadInput: if the file that holds them is damaged.
        """
        path = self.folder / "secrets.json"
        written = LocalRunner().read(str(path))
        try:
            return msgspec.json.decode(written, type=Secrets) if path.exists() else None
        except msgspec.DecodeError as error:
            raise BadInput(
                f"{path}: the keys of the cluster {self.name} are damaged: {error}",
                fix=f"toolkit cluster down --name {self.name}, then toolkit cluster up --name {self.name}",
            ) from error

    def keep(self, secrets: Secrets) -> None:
        """Write the keys, readable by their owner alone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        self._write("id_ecdsa", secrets.user_private, 0o600)
        self._write("secrets.json", msgspec.json.encode(secrets).decode(), 0o600)

    def point_at(self, port: int, nodes: int) -> None:
        """Write ``ssh_config`` and ``known_hosts`` for a login node on ``port`` of this machine.

        The port changes whenever the container is started; files that are right are left alone.
        """
        secrets = self.secrets()
        if secrets:
            self._write("known_hosts", known_hosts(secrets.host_public, port, nodes), 0o644)
            self._write("ssh_config", ssh_config(self.folder, port, nodes), 0o644)

    def forget(self) -> bool:
        """Remove the folder; tell whether there was one."""
        there = self.folder.is_dir()
        if there:
            shutil.rmtree(self.folder)
        return there

    def _write(self, name: str, content: str, mode: int) -> None:
        path = self.folder / name
        if LocalRunner().read(str(path)) != content.encode():
            LocalRunner().write(str(path), content.encode(), mode)


def clusters() -> Path:
    """Return where the folders of all clusters are."""
    return state_dir() / "clusters"


def new_secrets() -> Secrets:
    """Make the keys of a new cluster."""
    user, host = new_key_pair(), new_key_pair()
    return Secrets(
        user_private=user.private,
        user_public=user.public,
        host_private=host.private,
        host_public=host.public,
        munge=os.urandom(_MUNGE_KEY_BYTES),
    )


def ssh_config(folder: Path, port: int, nodes: int) -> str:
    """Return an SSH configuration that knows the hosts of one cluster, and trusts no other key."""
    lines = [
        "Host login",
        "    HostName 127.0.0.1",
        f"    Port {port}",
        "",
        f"Host {' '.join(hosts(nodes)[1:])}",
        "    ProxyJump login",
        "",
        "Host *",
        f"    User {USER}",
        f'    IdentityFile "{folder / "id_ecdsa"}"',
        "    IdentitiesOnly yes",
        f'    UserKnownHostsFile "{folder / "known_hosts"}"',
        "    GlobalKnownHostsFile /dev/null",
        "    StrictHostKeyChecking yes",
        "    UpdateHostKeys no",
        "    PasswordAuthentication no",
    ]
    return "\n".join(lines) + "\n"


def known_hosts(key: str, port: int, nodes: int) -> str:
    """Return a known_hosts file: one key for all nodes, as they are one cluster's."""
    names = [f"[127.0.0.1]:{port}", *hosts(nodes)]
    if port == SSH_PORT:
        names[0] = "127.0.0.1"
    return f"{','.join(names)} {key}\n"
