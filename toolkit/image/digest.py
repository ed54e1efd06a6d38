"""The checksum that stands beside a SIF, in the form that sha256sum writes and checks."""

import hashlib
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


def publish(part: Path, target: Path, digest: str) -> None:
    """Give a SIF its name and then its checksum; between the two it has none, never a wrong one."""
    noted = digest_file(target)
    noted.unlink(missing_ok=True)
    part.replace(target)
    with workspace.beside(noted) as line:
        line.write_text(f"{digest}  {target.name}\n", "utf-8")
        line.replace(noted)
