"""Open an SSH connection through fabric, to hosts whose key is known and to no others.

fabric accepts unknown hosts and reads the person's own fabric and invoke files by default, hence the
strict policy and the configuration of our own.
"""

import contextlib
import logging
import re
import shlex
import socket
import tempfile
from pathlib import Path
from typing import Any

from toolkit.errors import BadInput, Lost, Missing
from toolkit.folders import at_home, no_file
from toolkit.run.known_hosts import paths, plain_lines

_SECONDS = 15
_KEEPALIVE_SECONDS = 30
"""Routers forget a connection on which nothing is said while a job waits in the queue."""

_SILENT_SECONDS = 90
"""How long what was sent may stay without an answer; a keepalive is sent before."""

_KEY_OF_ANOTHER_KIND = "key, expected"
"""paramiko reads a key file as every kind of key, and reports the last failure, not the refusal."""

_ERRNO = re.compile(r"(\S)?\[Errno [^\]]*\] ?")
"""How Python begins an error of the system; paramiko puts it right behind its own words."""

_CUT_OFF = "transport shut down or saw EOF"
"""paramiko calls this, too, a failure to authenticate."""

_CHECK = "check that this works: "

_DEFAULT_KNOWN = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_SYSTEM_KNOWN = "/etc/ssh/ssh_known_hosts"


def connect(host: str, config: Path | None) -> Any:  # noqa: ANN401 - fabric ships no types; stays in toolkit.run
    """Return an open ``fabric.Connection``; ``config`` replaces the person's ~/.ssh/config, as ``ssh -F``.

    Raises:
        BadInput: if the destination or the configuration cannot be understood.
        Lost: if the host cannot be reached just now.
        Missing: if it is not known, or does not let us in.
    """
    import fabric
    import paramiko
    from fabric.config import Config

    class PrivateConfig(Config):  # type: ignore[misc]  # fabric ships no types
        """Reads none of the person's fabric and invoke files, which would change our commands."""

        prefix = "toolkit-internal"

    # It logs what it also raises, and Python prints what nobody listens to.
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    if config is not None and not config.is_file():
        raise BadInput(f"{config}: {no_file(config)}")
    try:
        settings = PrivateConfig(runtime_ssh_path=str(config) if config else None)
        connection = fabric.Connection(host, config=settings, connect_timeout=_SECONDS)
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise BadInput(f"{config or '~/.ssh/config'}: {host}: {why(error)}") from error
    words = ["ssh", *(["-F", str(config)] if config else []), host, "true"]
    # Each is opened in its turn, so that what one of them refuses is told of that one.
    for hop in reversed(_hops(connection)):
        _check_port(hop, host, config)
        _open(hop, _trust(hop, paramiko), shlex.join(words), paramiko)
        _notice_silence(hop.transport)
    connection.transport.set_keepalive(_KEEPALIVE_SECONDS)
    return connection


def why(error: Exception) -> str:
    """Return what an error says without what it is called in Python; of several addresses what each said."""
    tried = getattr(error, "errors", None)  # paramiko's NoValidConnectionsError: address → its error
    if isinstance(tried, dict) and tried:
        return ", ".join(dict.fromkeys(why(one) for one in tried.values()))
    said = _ERRNO.sub(lambda found: f"{found[1]}: " if found[1] else "", str(error)).strip()
    return said or ("the connection ended" if isinstance(error, EOFError) else type(error).__name__)


def _notice_silence(transport: Any) -> None:  # noqa: ANN401 - see connect
    """Have the kernel end a connection whose other end answers nothing: a laptop slept, a cable was pulled.

    It would otherwise be believed in for a quarter of an hour. What runs through a gateway ends with it.
    """
    if isinstance(transport.sock, socket.socket) and hasattr(socket, "TCP_USER_TIMEOUT"):
        with contextlib.suppress(OSError):
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_SECONDS * 1000)


def _hops(connection: Any) -> list[Any]:  # noqa: ANN401 - see connect
    """Return the connection and the gateways that it goes through, the nearest last."""
    hops = []
    while connection is not None and not isinstance(connection, str):  # text is a ProxyCommand
        hops.append(connection)
        connection = connection.gateway
    return hops


def _check_port(hop: Any, host: str, config: Path | None) -> None:  # noqa: ANN401 - see connect
    if not 0 < int(hop.port) < 1 << 16:
        raise BadInput(f"{config or '~/.ssh/config'}: {host}: {hop.port} is no port; ports are 1 to 65535")


def _trust(hop: Any, paramiko: Any) -> Path:  # noqa: ANN401 - see connect
    """Make a hop refuse unknown hosts; return the file to which a person would add one."""
    names = paths(hop.ssh_config.get("userknownhostsfile", _DEFAULT_KNOWN), lambda p: Path(p).is_file())
    known = [at_home(name) for name in names]
    system = Path(hop.ssh_config.get("globalknownhostsfile", _SYSTEM_KNOWN))
    _load(hop.client, (*known, system), paramiko)
    if hop.ssh_config.get("identitiesonly", "no").lower() == "yes":
        # Servers end a connection after a few keys that they do not know, and an agent may hold many.
        hop.connect_kwargs.update(allow_agent=False, look_for_keys=False)
    hop.client.set_missing_host_key_policy(paramiko.RejectPolicy())
    return known[0] if known else at_home(_DEFAULT_KNOWN.split()[0])


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


def _open(hop: Any, known: Path, words: str, paramiko: Any) -> None:  # noqa: ANN401 - see connect
    where = f"{hop.host} port {hop.port}"
    name = hop.host if hop.port == 22 else f"[{hop.host}]:{hop.port}"
    file = shlex.quote(str(known))
    try:
        hop.open()
    except paramiko.BadHostKeyException as error:
        raise Missing(
            f"{where}: the host key is not the one in {known}; this may be an attack",
            fix=f"if the key was changed on purpose: ssh-keygen -f {file} -R {shlex.quote(name)}",
        ) from error
    except paramiko.AuthenticationException as error:
        if _CUT_OFF in str(error):
            raise Lost(
                f"{where}: the connection ended while {hop.user} was let in", fix=_CHECK + words
            ) from error
        raise _not_let_in(hop, where, str(error), words) from error
    except paramiko.SSHException as error:
        if "not found in known_hosts" in str(error):
            raise _unknown(hop, where, known, words) from error
        if _KEY_OF_ANOTHER_KIND in str(error):
            raise _not_let_in(hop, where, "none of its keys is accepted", words) from error
        raise Lost(f"{where}: SSH failed: {why(error)}") from error
    except (OSError, EOFError) as error:
        raise Lost(
            f"{where}: cannot be reached over SSH: {why(error)}", fix="is the host up and the name right?"
        ) from error


def _unknown(hop: Any, where: str, known: Path, words: str) -> Missing:  # noqa: ANN401 - see connect
    # What lies behind a gateway cannot be scanned from here; ssh goes the whole way, and asks.
    scan = f"ssh-keyscan -p {hop.port} {shlex.quote(hop.host)} >> {shlex.quote(str(known))}"
    return Missing(
        f"{where}: unknown host: its key is not in {known}",
        fix=f"compare the key with what the centre publishes, then: {words if hop.gateway else scan}",
    )


def _not_let_in(hop: Any, where: str, why: str, words: str) -> Missing:  # noqa: ANN401 - see connect
    return Missing(
        f"{where}: {hop.user} was not let in: {why}",
        fix=_CHECK + words,
        detail=[
            "if it asks for a password or a second factor: share a connection of ssh, as docs/jobs.md shows",
        ],
    )
