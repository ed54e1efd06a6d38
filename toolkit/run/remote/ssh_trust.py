"""Check whether the user trusts the key of an SSH host. If not, the error message says what to do.

toolkit parses the known_hosts files itself, because paramiko's parser supports neither patterns nor markers.
paramiko's parser also keeps only one key of each type for a host.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.errors import Missing
from toolkit.folders import at_home
from toolkit.run.remote.known_hosts import (
    HostKey,
    Judgement,
    KnownHost,
    judge,
    kinds_of,
    names_of,
    paths,
    read_entries,
)
from toolkit.run.remote.ssh_destination import ssh_line

_USER_FILES = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_SYSTEM_FILES = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
"""The default values of ``GlobalKnownHostsFile`` in ssh_config(5)."""
_HOST_KEY_FILE = "/etc/ssh/ssh_host_{}_key.pub"


@dataclass(frozen=True, slots=True)
class Trust:
    """The known keys of one host.

    ``place`` is the host's name in messages. ``names`` are the names under which known_hosts files may list
    the host. ``entries`` are all valid lines of the known_hosts files. ``add_command`` is the command with
    which the user can add the host's key to ``file``, the user's known_hosts file.
    """

    place: str
    names: tuple[str, ...]
    entries: tuple[KnownHost, ...]
    file: Path
    add_command: str

    def check(self, key: HostKey) -> None:
        """Accept a known host key, and raise an error for any other key.

        Raises:
            Missing: if the key is not known; the error has the key's fingerprint and a fix.
        """
        judgement = judge(self.entries, self.names, key)
        if judgement.verdict != "known":
            raise self._refusal(key, judgement)

    def in_order(self, algorithms: tuple[str, ...]) -> list[str]:
        """Return the host key algorithms ``algorithms`` in a new order: the algorithms of the host's known
        keys come first.
        """
        kinds = kinds_of(self.entries, self.names)
        return sorted(
            algorithms,
            key=lambda algorithm: ("ssh-rsa" if algorithm.startswith("rsa-") else algorithm) not in kinds,
        )

    def _refusal(self, key: HostKey, result: Judgement) -> Missing:
        where = result.entry.location if result.entry else ""
        known = str(result.entry.key) if result.entry else ""
        compare = (
            f"compare {key.fingerprint} with the fingerprint that the operators publish"
            f" (on the host, this command shows it: ssh-keygen -lf {_HOST_KEY_FILE.format(key.name.lower())})"
        )
        match result.verdict:
            case "revoked":
                return Missing(
                    f"{self.place}: its host key {key} is revoked in {where}; this may be an attack",
                    fix="do not connect; ask the operators for the new host key",
                )
            case "changed":
                return Missing(
                    f"{self.place}: its host key is {key}, but {where} has {known}; this may be an attack",
                    fix=f"{compare}; only if the operators publish the same fingerprint, replace the old "
                    f"key: {self._remove(result.entry)}, then: {self.add_command}",
                )
            case "authority":
                return Missing(
                    f"{self.place}: unknown host key {key}; {where} trusts a certificate authority for this"
                    " host, and toolkit's own SSH client does not read host certificates",
                    fix="let ssh open a connection that toolkit shares (ControlMaster, docs/ssh.md);"
                    f" or {compare}, then: {self.add_command}",
                )
            case "other-kind":
                return Missing(
                    f"{self.place}: unknown host key {key}; {where} has {known}, which the host does not "
                    "offer",
                    fix=f"{compare}, then: {self.add_command}",
                )
        return Missing(
            f"{self.place}: unknown host; its key {key} is not in {self.file}",
            fix=f"{compare}, then: {self.add_command}",
        )

    def _remove(self, entry: KnownHost | None) -> str:
        if entry is None or entry.has_patterns:
            return f"remove {entry.location if entry else 'the line of this host'}"
        file = shlex.quote(entry.location.rpartition(":")[0])
        name = next((name for name in self.names if name in entry.names), self.names[0])
        return f"ssh-keygen -f {file} -R {shlex.quote(name)}"


def trust_of(hop: Any, host: str, config: Path | None) -> Trust:  # noqa: ANN401 - fabric has no types
    """Return the known keys of the host to which the connection ``hop`` leads. ``host`` is the SSH
    destination that the user gave, or an empty string if ``hop`` leads to a gateway.
    """
    exists: Callable[[str], bool] = lambda path: at_home(path).is_file()  # noqa: E731 - a short function
    user = _files(hop.ssh_config.get("userknownhostsfile", _USER_FILES), exists)
    system = _files(hop.ssh_config.get("globalknownhostsfile", _SYSTEM_FILES), exists)
    entries: list[KnownHost] = []
    for file in (*user, *system):
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            entries += read_entries(text, str(file))
    alias = hop.ssh_config.get("hostkeyalias", "")
    return Trust(
        place=f"{hop.host} port {hop.port}",
        names=(alias.lower(),) if alias else names_of(hop.host, int(hop.port)),
        entries=tuple(entries),
        file=user[0] if user else at_home(_USER_FILES.split()[0]),
        add_command=_add_line(hop, host, config),
    )


def apply_trust(hop: Any, trust: Trust, paramiko: Any) -> None:  # noqa: ANN401 - see trust_of
    """Make the connection ``hop`` check the host's key with ``trust`` before the connection authenticates the
    user.
    """

    class Policy(paramiko.MissingHostKeyPolicy):  # type: ignore[misc] # paramiko has no types
        """Checks every host key. paramiko calls a policy only for unknown hosts, so toolkit gives paramiko no
        list of known hosts.
        """

        def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:  # noqa: ANN401, ARG002
            trust.check(HostKey(key.get_name(), key.asbytes()))

    def transport(*words: Any, **options: Any) -> Any:  # noqa: ANN401 - paramiko has no types
        transport = paramiko.Transport(*words, **options)
        security = transport.get_security_options()
        security.key_types = trust.in_order(tuple(security.key_types))
        return transport

    hop.connect_kwargs = {**dict(hop.connect_kwargs), "transport_factory": transport}
    hop.client.set_missing_host_key_policy(Policy())


def _files(setting: str, exists: Callable[[str], bool]) -> list[Path]:
    return [at_home(name) for name in paths(setting, exists) if name != "none"]


def _add_line(hop: Any, host: str, config: Path | None) -> str:  # noqa: ANN401 - see trust_of
    """Return the ``ssh`` command that shows the fingerprint of the host's key, asks the user, and adds the
    key to known_hosts.
    """
    strict = hop.ssh_config.get("stricthostkeychecking", "ask").lower()
    options = [] if strict == "ask" else ["-o", "StrictHostKeyChecking=ask"]
    if not host:
        host = f"{hop.user}@{hop.original_host}:{hop.port}"
        gateway = hop.gateway
        if gateway is not None and not isinstance(gateway, str) and "proxyjump" not in hop.ssh_config:
            options += ["-J", f"{gateway.user}@{gateway.host}:{gateway.port}"]
    return ssh_line(host, config, options, ("true",))
