"""Read files that toolkit finds without an option, such as ``toolkit.toml``. toolkit rejects such a file if
any user, except root and the user who runs toolkit, owns the file or can change it.

OpenSSH has the same rule for the owner of a file: ``StrictModes`` (sshd_config(5)). git's ``safe.directory``
has the same aim (CVE-2022-24765): a file that another user put into the current folder must not change what a
command runs.
"""

import os
import shlex
import stat
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.files import read_given

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def require_trusted(path: Path, fix: str = "") -> None:
    """Raise an error if any user, except root and the user who runs toolkit, owns a file, or can change or
    replace the file.

    The file and its folder must belong to the user or root, and neither may be writable by group or others.
    For a symbolic link, the rule applies to the folder of the link, to the target, and to the target's
    folder. The rule also rejects files in a sticky folder such as ``/tmp``, because another user can put a
    file there under the name that toolkit looks for.

    Args:
        path: an existing file.
        fix: another way to avoid the error, such as ``give the path of the file instead of its name``. The
            error's hint says how to make the file trusted, and then gives ``fix`` as the alternative.

    Raises:
        BadInput: the file is not trusted; the message has the reason, and the hint says how to make the file
            trusted.
    """
    real = Path(os.path.realpath(path))
    for place in dict.fromkeys((real, real.parent, path.absolute().parent)):
        try:
            found = place.stat()
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}") from error
        if why := _why(place, found):
            # Other users need write access to a sticky folder such as /tmp, so do not suggest chmod for such
            # a folder.
            own = found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX
            repair = (
                f"`chmod go-w {shlex.quote(str(place))}`" if own else "move the file into your own folder"
            )
            raise BadInput(f"{path}: not used: {why}", fix=f"{repair}{f'; or {fix}' if fix else ''}")


def read_trusted(path: Path, *, limit: int) -> bytes:
    """Check a file with :func:`require_trusted`, and return its content. Use this function for a file that no
    option names.

    The result of the check stays valid during the read, because only the user or root can replace the file.

    Raises:
        BadInput: the file is not trusted, is not a regular file, or is longer than ``limit`` bytes.
    """
    require_trusted(path)
    return read_given(path, limit=limit)


def _trusted_owners() -> set[int]:
    return {0, os.geteuid()}


def _why(place: Path, status: os.stat_result) -> str:
    if status.st_uid not in _trusted_owners():
        return f"{place} belongs to {_owner(status.st_uid)}, not to you or root"
    if status.st_mode & stat.S_IWOTH:
        return f"every user can write to {place}"
    if status.st_mode & _OTHERS:
        return f"the group of {place} can write to it"
    return ""


def _owner(number: int) -> str:
    import pwd  # needed only for the message

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
