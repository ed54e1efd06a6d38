"""Store the SHA-256 of a large remote file in the cache, and use the stored hash while the file is unchanged.

For local files, see :func:`toolkit.image.files.digest.known_sha256`.
"""

import hashlib
import re

from toolkit import hints
from toolkit.run.command import Command, Runner
from toolkit.run.stage import remote_hashes

_FOLDER = "host-digests"
_MOST = 1000
_SECONDS = 60.0

_LOOK = 'stat -L -c "%d %i %s %.9Y %.9Z" -- "$1" && date +%s'
_STAT_OUTPUT = re.compile(r"(\d+ \d+ \d+ -?\d+\.\d{9} (-?\d+\.\d{9}))\n(\d+)\n")


def known_remote_hash(runner: Runner, path: str) -> str:
    """Return the SHA-256 of a file on the runner's host, or an empty string if the file does not exist.

    If the file has not changed since toolkit stored its hash, return the stored hash. toolkit compares the
    file's device, inode, size, modification time and change time. The host's kernel sets the change time at
    each write and rename, and programs cannot set it (inode(7)).

    toolkit does not store the hash of a file that changed within the last two seconds. A second change within
    the same clock tick would not alter the change time, so toolkit would not notice it. If the host does not
    print change times, toolkit computes the hash each time.

    Raises:
        CheckFailed: if sha256sum failed.
    """
    file_identity, _ = _identity(runner, path)
    name = hashlib.sha256(f"{runner.place}\0{path}\0{file_identity}".encode()).hexdigest()
    if file_identity and (cached := hints.recall(_FOLDER, name, str)):
        return cached
    digest = remote_hashes(runner, [path]).get(path, "")
    if file_identity and digest and _identity(runner, path) == (file_identity, True):
        hints.keep(_FOLDER, name, digest, _MOST)
    return digest


def _identity(runner: Runner, path: str) -> tuple[str, bool]:
    """Return two values: a text that differs after each change of the file, and True if the last change
    happened more than two seconds ago.

    The returned text is empty if the host does not print the file's change time.
    """
    done = runner.run(Command.of("sh", "-c", _LOOK, "sh", path, timeout=_SECONDS))
    match = _STAT_OUTPUT.fullmatch(done.text) if done.ok else None
    return (match[1], float(match[2]) < int(match[3]) - hints.SETTLED_SECONDS) if match else ("", False)
