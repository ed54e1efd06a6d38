"""Open an SSH connection through fabric, to hosts whose key is known and to no others.

fabric accepts unknown hosts and reads the person's own fabric and invoke files by default, hence the
strict policy and the configuration of our own.
"""

import shlex
import tempfile
from pathlib import Path
from typing import Any

from toolkit.errors import BadInput, Missing
from toolkit.run.known_hosts import paths, plain_lines

_SECONDS = 15
_KEEPALIVE_SECONDS = 30
"""Routers forget a connection on which nothing is said while a job waits in the queue."""

_KEY_OF_ANOTHER_KIND = "key, expected"
"""paramiko reads a key file as every kind of key, and reports the last failure, not the refusal."""

_DEFAULT_KNOWN = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_SYSTEM_KNOWN = "/etc/ssh/ssh_known_hosts"


def connect(host: str, config: Path | None) -> Any:  # noqa: ANN401 - fabric ships no types; stays in toolkit.run
    """Return an open ``fabric.Connection``; ``config`` replaces the person's ~/.ssh/config, as ``ssh -F``.

    Raises:
        BadInput: if the destination or the configuration cannot be understood.
        Missing: if the host cannot be reached, is not known, or does not let us in.
    """
    import fabric
    import paramiko
    from fabric.config import Config

    class PrivateConfig(Config):  # type: ignore[misc]  # fabric ships no types
        """Reads none of the person's fabric and invoke files, which would change our commands."""

        prefix = "toolkit-internal"

    if config is not None and not config.is_file():
        raise BadInput(f"{config}: no such file of SSH configuration")
    try:
        settings = PrivateConfig(runtime_ssh_path=str(config) if config else None)
        connection = fabric.Connection(host, config=settings, connect_timeout=_SECONDS)
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise BadInput(f"{config or '~/.ssh/config'}: {host}: {error}") from error
    known = _trust(connection, paramiko)
    _open(connection, host, config, known, paramiko)
    connection.transport.set_keepalive(_KEEPALIVE_SECONDS)
    return connection


def _trust(connection: Any, paramiko: Any) -> Path:  # noqa: ANN401 - see connect
    """Make every hop refuse unknown hosts; return the file to which a person would add one."""
    first = Path(_DEFAULT_KNOWN.split()[0]).expanduser()
    hop = connection
    while hop is not None and not isinstance(hop, str):  # text is a ProxyCommand, which ssh itself verifies
        names = paths(hop.ssh_config.get("userknownhostsfile", _DEFAULT_KNOWN), lambda p: Path(p).is_file())
        known = [Path(name).expanduser() for name in names]
        if hop is connection and known:
            first = known[0]
        system = Path(hop.ssh_config.get("globalknownhostsfile", _SYSTEM_KNOWN))
        _load(hop.client, (*known, system), paramiko)
        if hop.ssh_config.get("identitiesonly", "no").lower() == "yes":
            # Servers end a connection after a few keys that they do not know, and an agent may hold many.
            hop.connect_kwargs.update(allow_agent=False, look_for_keys=False)
        hop.client.set_missing_host_key_policy(paramiko.RejectPolicy())
        hop = hop.gateway
    return first


def _load(client: Any, files: tuple[Path, ...], paramiko: Any) -> None:  # noqa: ANN401 - see connect
    lines: list[str] = []
    for file in files:
        try:
            lines += file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
    with tempfile.NamedTemporaryFile("w", suffix=".known_hosts") as plain:
        plain.writelines(f"{line}\n" for line in plain_lines(lines) if _is_readable(line, paramiko))
        plain.flush()
        # load_host_keys remembers the name as the place to save to; nothing is ever saved.
        client.load_host_keys(plain.name)


def _is_readable(line: str, paramiko: Any) -> bool:  # noqa: ANN401 - see connect
    """Tell whether paramiko can read the line; one that it cannot must not hide all others."""
    try:
        return paramiko.hostkeys.HostKeyEntry.from_line(line) is not None
    except Exception:  # noqa: BLE001 - it raises whatever the decoder of that kind of key raises
        return False


def _open(connection: Any, host: str, config: Path | None, known: Path, paramiko: Any) -> None:  # noqa: ANN401 - see connect
    where = f"{connection.host} port {connection.port}"
    name = connection.host if connection.port == 22 else f"[{connection.host}]:{connection.port}"
    file, words = shlex.quote(str(known)), ["ssh", *(["-F", str(config)] if config else []), host, "true"]
    try:
        connection.open()
    except paramiko.BadHostKeyException as error:
        raise Missing(
            f"{where}: the host key is not the one in {known}; this may be an attack",
            fix=f"if the key was changed on purpose: ssh-keygen -f {file} -R {shlex.quote(name)}",
        ) from error
    except paramiko.AuthenticationException as error:
        raise _not_let_in(connection, where, str(error), words) from error
    except paramiko.SSHException as error:
        if "not found in known_hosts" in str(error):
            raise Missing(
                f"{where}: unknown host: its key is not in {known}",
                fix="compare the key with what the centre publishes, then: "
                f"ssh-keyscan -p {connection.port} {shlex.quote(connection.host)} >> {file}",
            ) from error
        if _KEY_OF_ANOTHER_KIND in str(error):
            raise _not_let_in(connection, where, "none of its keys is accepted", words) from error
        raise Missing(f"{where}: SSH failed: {error}") from error
    except (OSError, EOFError) as error:
        raise Missing(
            f"{where}: cannot be reached over SSH: {error}", fix="is the host up and the name right?"
        ) from error


def _not_let_in(connection: Any, where: str, why: str, words: list[str]) -> Missing:  # noqa: ANN401 - see connect
    return Missing(
        f"{where}: {connection.user} was not let in: {why}",
        fix=f"check that this works: {shlex.join(words)}",
    )
