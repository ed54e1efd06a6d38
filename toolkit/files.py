"""Read files that a user names, up to a maximum size. Write files completely or not at all."""

import contextlib
import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import BadInput
from toolkit.units import format_memory

_SHOWN = 50
"""The name of a temporary file contains at most this many characters of the final name. Without this limit,
the temporary name could exceed 255 bytes, the limit of Linux.
"""


def open_given(path: Path, *, label: str = "", fix: str = "") -> BinaryIO:
    """Open a regular file that a user named, for reading.

    The function follows symbolic links. It rejects devices, FIFOs, sockets and folders at once. An ordinary
    ``open`` of a FIFO would wait for a writer, and reading ``/dev/zero`` would never end. The caller closes
    the file.

    Args:
        path: the file as the user wrote it.
        label: the option that names the file, such as ``--facts``; messages begin with the option and the
            path.
        fix: the advice for the user if toolkit cannot read the file.

    Raises:
        BadInput: the path is not a regular file, or cannot be read.
    """
    name = f"{label} {path}".lstrip()
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise _unreadable(path, name, error, fix) from error
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        raise BadInput(f"{name}: {_kind(mode)}, not a regular file", fix=fix)
    try:
        os.pread(number, 1, 0)  # /proc/self/mem can be opened but not read
    except OSError as error:
        os.close(number)
        raise _unreadable(path, name, error, fix) from error
    return os.fdopen(number, "rb")


def read_given(path: Path, *, limit: int, label: str = "", fix: str = "") -> bytes:
    """Return the content of a regular file that a user named. See :func:`open_given` for ``path``,
    ``label`` and ``fix``.

    Args:
        limit: the maximum size of the content in bytes.

    Raises:
        BadInput: the path is not a regular file, cannot be read, or is longer than ``limit`` bytes.
    """
    name = f"{label} {path}".lstrip()
    with open_given(path, label=label, fix=fix) as file:
        content = _read(file, limit + 1, name, fix)
    if len(content) > limit:
        raise BadInput(f"{name}: the file is longer than {format_memory(limit)}", fix=fix)
    return content


def read_private(path: Path, *, limit: int, label: str = "") -> bytes:
    """Return the content of a file that no user except its owner and root may read. ssh has the same rule for
    private keys.

    See :func:`read_given` for the arguments.

    Raises:
        BadInput: the file's owner is neither this user nor root, other users may read or change the file, or
            :func:`read_given` rejects the file.
    """
    name = f"{label} {path}".lstrip()
    with open_given(path, label=label) as file:
        found = os.fstat(file.fileno())
        if found.st_uid not in {0, os.geteuid()}:
            raise BadInput(
                f"{name}: another user owns the file",
                fix="copy the file, run `chmod 600 COPY`, and use the copy instead",
            )
        if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise BadInput(
                f"{name}: other users may read or change the file (mode {stat.S_IMODE(found.st_mode):04o})",
                fix=f"run `chmod 600 {path}`, so that only you can read the file",
            )
    return read_given(path, limit=limit, label=label)


def check_given(path: Path, *, label: str = "", fix: str = "") -> None:
    """Check that a path is a readable regular file; see :func:`open_given` for the arguments.

    Raises:
        BadInput: the path is not a regular file, or cannot be read.
    """
    open_given(path, label=label, fix=fix).close()


def is_there(path: Path, *, label: str = "") -> bool:
    """Return whether anything exists at a path that a user named. A link to a missing file counts.

    Raises:
        BadInput: a name in the path is too long, a parent is not a folder, or toolkit may not search a parent
            folder.
    """
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"{label} {path}".lstrip(), error, "") from error
    return True


def is_dangling(path: Path) -> bool:
    """Return whether a path is missing or is a link to a missing file; False for a loop of links."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal.

    Raises:
        BadInput: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error


def has_content(path: Path, size: int, sha256: str) -> bool:
    """Return whether a file exists and has this size in bytes and this SHA-256. With ``size`` 0, the file may
    have any size.
    """
    try:
        found = path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return False
    return found == (size or found) and hash_file(path) == sha256


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file so that a reader sees either the whole old or the whole new content.

    The function writes a temporary file in the folder of ``path``, then renames the temporary file to
    ``path``. Without ``mode``, the umask decides the permissions, as for any new file. With ``mode``, the new
    file has these permissions. Until toolkit sets the permissions, only the owner can read the temporary
    file. If anything fails, the old file is unchanged and no temporary file remains.

    Raises:
        OSError: the folder does not exist or is not writable, or the disk is full; the error names ``path``.
    """
    beside = path.parent / f".{path.name[:_SHOWN]}.{os.urandom(6).hex()}.part"
    try:
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
        # Close the file before renaming it: a network file system may report a full disk only on close.
        try:
            write_all(number, content)
            if mode is not None:
                os.fchmod(number, mode)
        finally:
            os.close(number)
        beside.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):  # the temporary file may not exist
            beside.unlink()
        if isinstance(error, OSError):  # this error names the temporary file or no file
            error.filename, error.filename2 = str(path), None
        raise


def write_all(number: int, content: bytes) -> None:
    """Write all bytes to the file descriptor ``number``."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(number, rest) :]


def require_own(path: Path, mark: str, fix: str) -> None:
    """Check that toolkit may overwrite a file: the file does not exist, or toolkit wrote the file. The files
    that toolkit writes begin with the text ``mark``.

    Raises:
        BadInput: the file does not begin with ``mark``, or toolkit cannot read it. ``fix`` is the advice for
            the user in this error.
    """
    if not is_there(path):
        return
    try:
        with open_given(path) as file:
            own = file.read(len(mark.encode())) == mark.encode()
    except (OSError, BadInput):
        own = False
    if not own:
        raise BadInput(f"{path} exists, and toolkit did not write it", fix=fix)


def _read(file: BinaryIO, count: int, name: str, fix: str) -> bytes:
    try:
        return file.read(count)
    except OSError as error:
        raise BadInput(f"{name}: {error.strerror}", fix=fix) from error


def _unreadable(path: Path, name: str, error: OSError | ValueError, fix: str) -> BadInput:
    """Return the error for a file that toolkit cannot open. For a link to a missing file and for a socket,
    toolkit replaces the system's message with a clearer reason.
    """
    reason = error.strerror if isinstance(error, OSError) else str(error)
    with contextlib.suppress(OSError, ValueError):
        if isinstance(error, FileNotFoundError) and path.is_symlink():
            reason = "a link to a file that does not exist"
        elif isinstance(error, OSError) and error.errno == errno.ENXIO:
            reason = f"{_kind(path.stat().st_mode)}, not a regular file"
    return BadInput(f"{name}: {reason}", fix=fix)


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((name for test, name in kinds if test(mode)), "a special file")
