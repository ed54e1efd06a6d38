"""Open an SSH connection with fabric, only to hosts with a known key.

By default, fabric accepts unknown hosts and reads the user's configuration files for fabric and invoke.
toolkit makes fabric reject unknown host keys and ignore these configuration files.
"""

import contextlib
import logging
import re
import socket
from pathlib import Path
from typing import Any

from toolkit.errors import BadInput, Lost, Missing
from toolkit.folders import no_file
from toolkit.run.remote.ssh_destination import ssh_line
from toolkit.run.remote.ssh_trust import apply_trust, trust_of

_SECONDS = 15
"""The time limit in seconds for opening the TCP connection. The SSH key exchange that follows has a separate
limit of the same length.
"""
_AUTH_SECONDS = 30
"""The number of seconds within which the host must answer each user key that toolkit offers."""
_CHANNEL_SECONDS = 90
"""The number of seconds within which the host must open an SSH channel."""
_KEEPALIVE_SECONDS = 30
"""The number of seconds between two keepalive messages. Without these messages, a router may drop an idle
connection.
"""

_SILENT_SECONDS = 90
"""The kernel closes the connection if the host does not acknowledge data for this number of seconds.

This time is longer than the interval between two keepalive messages.
"""

_KEY_OF_ANOTHER_KIND = "key, expected"
"""A part of paramiko's error message for a user key that the host refused.

paramiko tries to read a key file as every type of key. If the host refuses the key, paramiko's error message
reports only the last failed read of the key file.
"""

_ERRNO = re.compile(r"(\S)?\[Errno [^\]]*\] ?")
"""A pattern for the number of a system error, such as ``[Errno 2]``. paramiko appends the system error to its
own message without a space.
"""

_CUT_OFF = "transport shut down or saw EOF"
"""A part of paramiko's message for a lost connection, which paramiko reports as a failed authentication."""

_CHECK = "check that this command works: "

_NO_SESSION = "No existing session"
"""paramiko's error message if the SSH key exchange exceeds its time limit."""


def connect(host: str, config: Path | None) -> Any:  # noqa: ANN401 - fabric has no types; the value stays in toolkit.run
    """Return an open ``fabric.Connection``. ``config`` replaces the user's ~/.ssh/config, as with ``ssh -F``.

    Raises:
        BadInput: if the destination or the configuration is invalid.
        Lost: if the host is unreachable.
        Missing: if the host's key is not trusted, or if the host refuses the login.
    """
    import fabric
    import paramiko
    from fabric.config import Config

    class PrivateConfig(Config):  # type: ignore[misc] # fabric has no types
        """A fabric configuration without the user's fabric files, because these files could change toolkit's
        commands.
        """

        prefix = "toolkit-internal"

    # Without a handler for paramiko's logger, Python would print a line for each error that paramiko raises.
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    if config is not None and not config.is_file():
        raise BadInput(f"{config}: {no_file(config)}")
    try:
        settings = PrivateConfig(runtime_ssh_path=str(config) if config else None)
        connection = fabric.Connection(host, config=settings, connect_timeout=_SECONDS)
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise BadInput(f"{config or '~/.ssh/config'}: {host}: {why(error)}") from error
    line = ssh_line(host, config, command=("true",))
    # Connect to one host after the other, gateways first, so that an error names the host that failed.
    for hop in reversed(_hops(connection)):
        _check_port(hop, host, config)
        _prepare(hop)
        apply_trust(hop, trust_of(hop, host if hop is connection else "", config), paramiko)
        _open(hop, line, paramiko)
        _notice_silence(hop.transport)
    connection.transport.set_keepalive(_KEEPALIVE_SECONDS)
    return connection


def why(error: Exception) -> str:
    """Return an error's message, or the name of its class if the message is empty. If the connection failed
    at several addresses of the host, join the messages for all addresses.
    """
    tried = getattr(error, "errors", None)  # NoValidConnectionsError has errors by address
    if isinstance(tried, dict) and tried:
        return ", ".join(dict.fromkeys(why(failure) for failure in tried.values()))
    text = _ERRNO.sub(lambda match: f"{match[1]}: " if match[1] else "", str(error)).strip()
    return text or ("the connection ended" if isinstance(error, EOFError) else type(error).__name__)


def _notice_silence(transport: Any) -> None:  # noqa: ANN401 - see connect
    """Make the kernel close a connection if the host does not acknowledge data, for example after a laptop
    was suspended.

    By default, the kernel closes such a connection only after about 15 minutes. If the connection to a
    gateway closes, the connections through this gateway close as well.
    """
    if isinstance(transport.sock, socket.socket) and hasattr(socket, "TCP_USER_TIMEOUT"):
        with contextlib.suppress(OSError):
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_SECONDS * 1000)


def _hops(connection: Any) -> list[Any]:  # noqa: ANN401 - see connect
    """Return ``connection``, followed by the connections to the gateways on its path. This machine connects
    directly to the host of the last connection in the list.
    """
    hops = []
    while connection is not None and not isinstance(connection, str):  # a string means a ProxyCommand
        hops.append(connection)
        connection = connection.gateway
    return hops


def _check_port(hop: Any, host: str, config: Path | None) -> None:  # noqa: ANN401 - see connect
    if not 0 < int(hop.port) < 1 << 16:
        raise BadInput(f"{config or '~/.ssh/config'}: {host}: {hop.port} is not a port; ports are 1 to 65535")


def _prepare(hop: Any) -> None:  # noqa: ANN401 - see connect
    """Set the time limits of the SSH connection ``hop``. If the SSH configuration has ``IdentitiesOnly yes``,
    toolkit offers only the keys that the SSH configuration names.
    """
    more: dict[str, Any] = {
        "banner_timeout": _SECONDS,
        "auth_timeout": _AUTH_SECONDS,
        "channel_timeout": _CHANNEL_SECONDS,
    }
    if hop.ssh_config.get("identitiesonly", "no").lower() == "yes":
        # A server closes the connection after a few wrong keys, and an ssh-agent may have many keys.
        more |= {"allow_agent": False, "look_for_keys": False}
    hop.connect_kwargs = {**dict(hop.connect_kwargs), **more}


def _open(hop: Any, line: str, paramiko: Any) -> None:  # noqa: ANN401 - see connect
    where = f"{hop.host} port {hop.port}"
    try:
        _open_checked(hop)
    except paramiko.AuthenticationException as error:
        if _CUT_OFF in str(error):
            raise Lost(
                f"{where}: the connection ended while {hop.user} logged in", fix=_CHECK + line
            ) from error
        raise _not_let_in(hop, where, str(error), line) from error
    except paramiko.SSHException as error:
        if _KEY_OF_ANOTHER_KIND in str(error):
            raise _not_let_in(hop, where, "the host accepted none of your keys", line) from error
        reason = "no answer in time" if _NO_SESSION in str(error) else why(error)
        raise Lost(f"{where}: SSH failed: {reason}") from error
    except (OSError, EOFError) as error:
        raise Lost(
            f"{where}: cannot be reached over SSH: {why(error)}",
            fix="check the name of the host, and whether the host is up",
        ) from error


def _open_checked(hop: Any) -> None:  # noqa: ANN401 - see connect
    """Open a connection. After a failure, close the connection to stop paramiko's thread."""
    try:
        hop.open()
    except BaseException:
        hop.client.close()
        raise


def _not_let_in(hop: Any, address: str, reason: str, line: str) -> Missing:  # noqa: ANN401 - see connect
    return Missing(
        f"{address}: the login of {hop.user} was refused: {reason}",
        fix=_CHECK + line,
        detail=[
            (
                "if the host asks for a password or a second factor, "
                "use ssh to open a connection that toolkit can share, as docs/ssh.md shows"
            ),
        ],
    )
