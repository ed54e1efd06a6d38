"""Read, verify and write the checksum file beside a SIF, in the format of ``sha256sum``."""

import hashlib
import posixpath
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from toolkit import hints
from toolkit.errors import BadInput, CheckFailed
from toolkit.files import hash_file
from toolkit.folders import behind_links
from toolkit.image.files import workspace
from toolkit.image.files.filelock import identity

_LINE = re.compile(
    r"\\?(?P<plain>[0-9a-fA-F]{64})(?:\s+\*?(?P<file>\S.*))?"
    r"|SHA256 \((?P<tagged>.+)\) = (?P<sum>[0-9a-fA-F]{64})"
)
"""A pattern for a line that ``sha256sum`` writes, with or without ``--tag``, and for a line with only a
SHA-256."""
_DIGESTS = "digests"
_MOST_DIGESTS = 1000
_MOST = 1 << 20
"""Maximum number of bytes that toolkit reads from a checksum file."""


class _Noted(NamedTuple):
    """A line of a checksum file; ``name`` is empty if the line has no file name."""

    digest: str
    name: str


def check_digest(sif: Path) -> str:
    """Compare a SIF with its checksum file, and return the SIF's SHA-256.

    Return an empty text if the SIF or its checksum file does not exist.

    Raises:
        CheckFailed: if the SIF's SHA-256 differs from the checksum file.
        BadInput: if the checksum file has no line for the SIF.
    """
    if not sif.is_file() or not digest_file(sif).is_file():
        return ""
    digest = known_sha256(sif)
    if digest != (wanted := noted_digest(sif, digest)):
        raise CheckFailed(
            f"{sif}: its content has changed since its checksum was written: its SHA-256 is {digest[:12]}…, "
            f"but {digest_file(sif).name} has {wanted[:12]}…",
            fix="build or copy the file again",
        )
    return wanted


def noted_digest(sif: Path, digest: str) -> str:
    """Return the SHA-256 that the checksum file has for a SIF; ``digest`` is the SIF's real SHA-256.

    Users may rename a SIF and its checksum file, so the file name in a line may differ from the SIF's name.
    A line with another file name applies to the SIF if the line contains the SIF's real SHA-256.

    Raises:
        BadInput: if the checksum file has no line for the SIF.
    """
    noted = digest_file(sif)
    lines = tuple(_read(noted))
    names = {"", sif.name, behind_links(sif).name}
    own = [line.digest for line in lines if line.name in names or line.digest == digest]
    if not own:
        raise BadInput(
            f"{noted}: contains no SHA-256 of {sif.name}",
            fix=f"download the checksum file again from the source of the image, or remove it: rm "
            f"{shlex.quote(str(noted))}",
        )
    return own[0]


def _read(checksum_file: Path) -> Iterator[_Noted]:
    try:
        with checksum_file.open("rb") as file:
            text = file.read(_MOST).decode("utf-8", "replace")
    except OSError as error:
        raise BadInput(
            f"{checksum_file}: {error.strerror}",
            fix="give yourself permission to read the file, or ask its owner",
        ) from error
    for line in text.splitlines():
        if match := _LINE.fullmatch(line.strip()):
            name = match["file"] or match["tagged"] or ""
            yield _Noted((match["plain"] or match["sum"]).lower(), posixpath.basename(name))


def digest_file(sif: Path) -> Path:
    """Return the path of a SIF's checksum file, ``NAME.sha256``."""
    return sif.with_name(f"{sif.name}.sha256")


def known_sha256(path: Path) -> str:
    """Return the SHA-256 of a file; use the cached value of an earlier command if the file is unchanged.

    toolkit treats a file as unchanged if its :func:`toolkit.image.files.filelock.identity`, which no program
    can forge, is the same as when toolkit cached the hash. toolkit does not cache the hash of a file that
    changed in the last two seconds. The file system's clock is coarse: if a file changes twice within one
    clock tick, both changes have the same timestamps. Checks of signatures do not use cached hashes but call
    :func:`toolkit.files.hash_file`.
    """
    file_identity, now = identity(path), time.time()
    name = hashlib.sha256(repr(file_identity).encode()).hexdigest()
    if cached := hints.recall(_DIGESTS, name, str):
        return cached
    digest = hash_file(path)
    if file_identity[-1] < (now - hints.SETTLED_SECONDS) * 1e9 and identity(path) == file_identity:
        hints.keep(_DIGESTS, name, digest, _MOST_DIGESTS)
    return digest


def publish(part: Path, target: Path, digest: str) -> None:
    """Rename a finished SIF to ``target``, then write its checksum file.

    toolkit first removes old checksum files, so that the new SIF is never beside an old checksum.

    Args:
        part: the path of the finished SIF, in the folder of ``target``, because a rename cannot move a file
            to another file system. If ``target`` is a link, ``part`` must be in the linked file's folder.
        target: the new path of the SIF, or a link to this path.
        digest: the SHA-256 of the SIF.
    """
    checksums = _checksums(target)
    for noted in checksums:
        noted.unlink(missing_ok=True)
    part.replace(behind_links(target))
    _write(checksums, digest)


def note(target: Path, digest: str) -> None:
    """Write the checksum file of the existing SIF ``target``; ``digest`` is the SIF's SHA-256."""
    _write(_checksums(target), digest)


def _checksums(target: Path) -> dict[Path, str]:
    """Return the paths of a SIF's checksum files, each with the file name that toolkit writes into it.

    If ``target`` is a link to the SIF and already has its own checksum file, the result contains both the
    checksum file beside the SIF and the checksum file beside the link.
    """
    real = behind_links(target)
    names = {digest_file(real): real.name}
    linked = digest_file(target)
    if linked.is_file() and behind_links(linked) != behind_links(digest_file(real)):
        names[linked] = target.name
    return names


def _write(checksums: Mapping[Path, str], digest: str) -> None:
    for noted, name in checksums.items():
        with workspace.beside(noted) as line:
            line.write_text(f"{digest}  {name}\n", "utf-8")
            line.replace(noted)
