"""The lines of known_hosts files that paramiko can be trusted with; pure."""

from collections.abc import Callable, Iterable

_REVOKED = "@revoked"


def plain_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines that name a host and its key, without marker lines and without revoked keys.

    paramiko raises on a line that begins with ``@`` (5.1) and knows nothing of what they mean. A key
    that is marked ``@revoked`` anywhere is therefore left out everywhere, so that its host is unknown
    and refused; and so is one that only a ``@cert-authority`` vouches for, as paramiko does not verify
    host certificates.
    """
    fields = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    revoked = {f[3] for f in fields if f[0] == _REVOKED and len(f) > 3}
    return [
        " ".join(f[:3]) for f in fields if len(f) > 2 and not f[0].startswith("@") and f[2] not in revoked
    ]


def paths(setting: str, exists: Callable[[str], bool]) -> list[str]:
    """Return the files that ``UserKnownHostsFile`` names: several with spaces between, or one with spaces.

    paramiko takes the quotes off the value, so that only the disk can tell which it is.
    """
    return [setting] if exists(setting) else setting.split()
