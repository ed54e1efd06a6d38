"""The checksum that stands beside a SIF, in the form that sha256sum writes and checks."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from toolkit.errors import CheckFailed
from toolkit.image import workspace


def check_digest(sif: Path) -> str:
    """Compare a SIF with the checksum beside it; return that, empty text if there is none beside it.

    Raises:
        CheckFailed: if they differ.
    """
    noted = digest_file(sif)
    if not sif.is_file() or not noted.is_file():
        return ""
    wanted = noted.read_text("utf-8", "replace").partition(" ")[0].strip()
    if (found := sha256(sif)) != wanted:
        raise CheckFailed(
            f"{sif}: its content has changed since it was made: sha256 {found[:12]}…, "
            f"{digest_file(sif).name} says {wanted[:12]}…",
            fix="make or copy it again",
        )
    return wanted


def digest_file(sif: Path) -> Path:
    """Return where the checksum of a SIF stands, in the form of sha256sum."""
    return sif.with_name(f"{sif.name}.sha256")


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def behind_links(target: Path) -> Path:
    """Return the file that a name leads to: it is written anew, and a link to it stays a link."""
    # Path.resolve fails at a link to itself.
    return Path(os.path.realpath(target))


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
