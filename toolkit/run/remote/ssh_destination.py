"""Parse SSH destinations, and build ssh commands for them."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from toolkit.errors import BadInput

_PORT = re.compile(r"(?:.*@)?[^:@]*:([^:@]*)")
"""A pattern for HOST:PORT or USER@HOST:PORT. A host with more than one colon is an IPv6 address without a
port.
"""


def destination(host: str) -> tuple[str, str]:
    """Split an SSH destination into the part without a port, such as ``user@host``, and the port, which may
    be empty.

    Raises:
        BadInput: if the destination is invalid, or starts with ``-`` as an option does.
    """
    if not host or host.startswith("-") or any(c.isspace() for c in host):
        raise BadInput(f"--host {host!r}: not an SSH destination; give HOST, USER@HOST or USER@HOST:PORT")
    port = _PORT.fullmatch(host)
    if port is None:
        return host, ""
    if not (port[1].isdecimal() and len(port[1]) < 6 and 0 < int(port[1]) < 1 << 16):
        raise BadInput(f"--host {host}: {port[1]!r} is not a port; ports are 1 to 65535")
    return host[: -len(port[1]) - 1], port[1]


def ssh_words(host: str, config: Path | None, options: Sequence[str] = ()) -> list[str]:
    """Return the words of an ``ssh`` command that ends with the host. A port in the destination becomes the
    option ``-p``.
    """
    name, port = destination(host)
    configured = ["-F", str(config)] if config else []
    return ["ssh", *configured, *options, *(["-p", port] if port else []), "--", name]


def ssh_line(host: str, config: Path | None, options: Sequence[str] = (), command: Sequence[str] = ()) -> str:
    """Return an ``ssh`` command as one line that the user can copy into a shell."""
    words = [word for word in ssh_words(host, config, options) if word != "--"]
    return shlex.join([*words, *command])
