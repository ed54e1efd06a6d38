"""The checksum that stands beside a SIF, in the form that sha256sum writes and checks."""

import hashlib
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from toolkit.errors import BadInput, CheckFailed
from toolkit.folders import behind_links
from toolkit.image.files import workspace

_LINE = re.compile(
    r"\\?(?P<plain>[0-9a-fA-F]{64})(?:\s+\*?(?P<file>\S.*))?"
    r"|SHA256 \((?P<tagged>.+)\) = (?P<sum>[0-9a-fA-F]{64})"
)
"""As sha256sum writes it, with or without ``--tag``; many write the sum alone."""
_MOST = 1 << 20
"""Bytes of a checksum file that are read; one of a whole folder has fewer."""


class _Noted(NamedTuple):
    """A line of a checksum file; ``name`` is empty where it is about whatever it lies beside."""

    digest: str
    name: str


def check_digest(sif: Path) -> str:
    """Compare a SIF with the checksum beside it; return that, empty text if there is none beside it.

    Raises:
        CheckFailed: if they differ.
        BadInput: if what is beside it holds no checksum of it.
    """
    if not sif.is_file() or not digest_file(sif).is_file():
        return ""
    found = sha256(sif)
    if found != (wanted := noted_digest(sif, found)):
        raise CheckFailed(
            f"{sif}: its content has changed since it was made: sha256 {found[:12]}…, "
            f"{digest_file(sif).name} says {wanted[:12]}…",
            fix="make or copy it again",
        )
    return wanted


def noted_digest(sif: Path, found: str) -> str:
    """Return what the file beside a SIF says of it; ``found`` is its real SHA-256.

    A SIF and its checksum may have been renamed together, so that a line that names another file and has
    the real sum is of this one.

    Raises:
        BadInput: if nothing in it is about the SIF.
    """
    noted = digest_file(sif)
    lines = tuple(_read(noted))
    names = {"", sif.name, behind_links(sif).name}
    own = [line.digest for line in lines if line.name in names or line.digest == found]
    if not own:
        raise BadInput(
            f"{noted}: holds no SHA-256 of {sif.name}",
            fix=f"take it anew from where the image is from, or remove it: rm {shlex.quote(str(noted))}",
        )
    return own[0]


def _read(noted: Path) -> Iterator[_Noted]:
    try:
        with noted.open("rb") as file:
            text = file.read(_MOST).decode("utf-8", "replace")
    except OSError as error:
        raise BadInput(f"{noted}: {error.strerror}", fix="make it readable for you") from error
    for line in text.splitlines():
        if match := _LINE.fullmatch(line.strip()):
            name = match["file"] or match["tagged"] or ""
            yield _Noted((match["plain"] or match["sum"]).lower(), posixpath.basename(name))


def digest_file(sif: Path) -> Path:
    """Return where the checksum of a SIF stands, in the form of sha256sum."""
    return sif.with_name(f"{sif.name}.sha256")


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def publish(part: Path, target: Path, digest: str) -> None:
    """Give a SIF its name and then its checksum; between the two it has none, never a wrong one.

    ``part`` lies in the folder of :func:`behind_links`, as a rename does not cross disks.
    """
    checksums = _checksums(target)
    for noted in checksums:
        noted.unlink(missing_ok=True)
    part.replace(behind_links(target))
    _write(checksums, digest)


def note(target: Path, digest: str) -> None:
    """Write the checksum of a SIF that is there."""
    _write(_checksums(target), digest)


def _checksums(target: Path) -> dict[Path, str]:
    """Return where the checksum of a SIF is written, a link's own too, and the name that it gives."""
    real = behind_links(target)
    found = {digest_file(real): real.name}
    linked = digest_file(target)
    if linked.is_file() and behind_links(linked) != behind_links(digest_file(real)):
        found[linked] = target.name
    return found


def _write(checksums: Mapping[Path, str], digest: str) -> None:
    for noted, name in checksums.items():
        with workspace.beside(noted) as line:
            line.write_text(f"{digest}  {name}\n", "utf-8")
            line.replace(noted)
