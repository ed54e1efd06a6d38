"""Manage the folder of a virtual cluster on this machine, with the cluster's keys and SSH files."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.cluster.plan import LOCAL_ADDRESS, SSH_PORT, check_name
from toolkit.data import state_dir
from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput
from toolkit.model.cluster import USER, USERS, accounts, hosts
from toolkit.run.local import LocalRunner
from toolkit.run.remote.keys import KeyPair, new_key_pair

_MUNGE_KEY_BYTES = 128

CONFIG = "config"
"""The name of a file in the folder of a learner's account: the SSH configuration for the learner's machine.

Learners (the students of a class) copy the folder of their account to their own machine, to the path that
:func:`place_of_learner` returns.
"""


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of one cluster. toolkit creates the keys once, and writes the same keys to new containers.

    ``accounts`` contains one key pair for each learner's account, in the order of the account names.
    """

    user_private: str
    user_public: str
    host_private: str
    host_public: str
    munge: bytes
    accounts: tuple[KeyPair, ...] = ()

    def by_account(self) -> dict[str, KeyPair]:
        """Return the keys of each account, by account name."""
        return dict(zip(accounts(len(self.accounts)), self.accounts, strict=True))


@dataclass(frozen=True, slots=True)
class Access:
    """The folder of the cluster ``name`` on this machine."""

    name: str

    @property
    def folder(self) -> Path:
        return clusters() / self.name

    @property
    def ssh_config(self) -> Path:
        return self.folder / "ssh_config"

    @property
    def accounts(self) -> tuple[str, ...]:
        """The names of the learners' accounts that have a folder on this machine. The teacher gives each
        folder to one learner.
        """
        return tuple(sorted(folder.name for folder in self.folder.glob(f"{USERS}/*")))

    def secrets(self) -> Secrets | None:
        """Return the keys of the cluster, or ``None`` if this machine has no key file of the cluster.

        Raises:
            BadInput: if the key file is damaged.
        """
        path = self.folder / "secrets.json"
        written = LocalRunner().read(str(path))
        try:
            return msgspec.json.decode(written, type=Secrets) if path.exists() else None
        except DECODE_ERRORS as error:
            raise BadInput(
                f"{path}: the keys of the cluster {self.name} are damaged: {error}",
                fix=f"create the cluster again: `toolkit cluster down --name {self.name}`, then `toolkit "
                f"cluster up --name {self.name}`",
            ) from error

    def keep(self, secrets: Secrets) -> None:
        """Write the keys to files that only their owner can read."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        self._write("id_ecdsa", secrets.user_private, 0o600)
        self._write("secrets.json", msgspec.json.encode(secrets).decode(), 0o600)
        for account, keys in secrets.by_account().items():
            self._write(f"{USERS}/{account}/id_ecdsa", keys.private, 0o600)

    def point_at(self, port: int, nodes: int, address: str = LOCAL_ADDRESS) -> None:
        """Write ``ssh_config`` and ``known_hosts`` for a login node that listens on ``port`` at ``address``.

        The port of the login node may change at each start of its container. Files that are already correct
        stay unchanged. This method also writes both files to the folder of each account, together with an SSH
        configuration for the learner's machine.
        """
        secrets = self.secrets()
        if secrets is None:
            return
        known = known_hosts(secrets.host_public, port, nodes, address)
        for user, folder in {USER: self.folder, **self._folders(secrets)}.items():
            below = folder.relative_to(self.folder)
            self._write(str(below / "known_hosts"), known, 0o644)
            self._write(str(below / "ssh_config"), ssh_config(str(folder), port, nodes, address, user), 0o644)
            if user != USER:
                config = ssh_config(place_of_learner(self.name), port, nodes, address, user)
                self._write(str(below / CONFIG), config, 0o644)

    def _folders(self, secrets: Secrets) -> dict[str, Path]:
        return {account: self.folder / USERS / account for account in secrets.by_account()}

    def forget(self) -> bool:
        """Delete the cluster's folder on this machine, and return whether the folder existed."""
        existed = self.folder.is_dir()
        if existed:
            shutil.rmtree(self.folder)
        return existed

    def _write(self, name: str, content: str, mode: int) -> None:
        path = self.folder / name
        if LocalRunner().read(str(path)) != content.encode():
            LocalRunner().write(str(path), content.encode(), mode)


def config_of(name: str) -> Path | None:
    """Return the path of a cluster's SSH configuration on this machine, or ``None`` if the file does not
    exist.

    Raises:
        BadInput: if the name is invalid.
    """
    config = Access(check_name(name)).ssh_config
    return config if config.is_file() else None


def clusters() -> Path:
    """Return the folder on this machine that contains one folder for each cluster."""
    return state_dir() / "clusters"


def new_secrets() -> Secrets:
    """Create the keys of a new cluster."""
    user, host = new_key_pair(), new_key_pair()
    return Secrets(
        user_private=user.private,
        user_public=user.public,
        host_private=host.private,
        host_public=host.public,
        munge=os.urandom(_MUNGE_KEY_BYTES),
    )


def with_accounts(secrets: Secrets, count: int) -> Secrets:
    """Return the cluster's keys, with keys for at least ``count`` accounts. Existing keys do not change."""
    more = (new_key_pair() for _ in range(count - len(secrets.accounts)))
    return msgspec.structs.replace(secrets, accounts=(*secrets.accounts, *more))


def place_of_learner(name: str) -> str:
    """Return the path on a learner's machine to which the learner copies the folder of the account."""
    return f"~/.ssh/toolkit-{name}"


def ssh_config(folder: str, port: int, nodes: int, address: str = LOCAL_ADDRESS, user: str = USER) -> str:
    """Return an SSH configuration for the nodes of one cluster. With this configuration, ssh trusts only the
    cluster's host key.

    ``folder`` is the folder with the user's private key and the ``known_hosts`` file, on the machine on which
    ssh reads the configuration. The login node listens on ``port`` at ``address``.
    """
    lines = [
        "Host login",
        f"    HostName {address}",
        f"    Port {port}",
        "",
        f"Host {' '.join(hosts(nodes)[1:])}",
        "    ProxyJump login",
        "",
        "Host *",
        f"    User {user}",
        f'    IdentityFile "{folder}/id_ecdsa"',
        "    IdentitiesOnly yes",
        f'    UserKnownHostsFile "{folder}/known_hosts"',
        "    GlobalKnownHostsFile /dev/null",
        "    StrictHostKeyChecking yes",
        "    UpdateHostKeys no",
        "    PasswordAuthentication no",
    ]
    return "\n".join(lines) + "\n"


def known_hosts(key: str, port: int, nodes: int, address: str = LOCAL_ADDRESS) -> str:
    """Return the text of a ``known_hosts`` file; all nodes of the cluster share the host key ``key``."""
    names = [f"[{address}]:{port}", *hosts(nodes)]
    if port == SSH_PORT:
        names[0] = address
    return f"{','.join(names)} {key}\n"
