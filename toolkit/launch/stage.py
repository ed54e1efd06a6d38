"""Bring an image and data to where the job runs; a file that is already there, byte for byte, stays."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import BadInput, CheckFailed
from toolkit.model.progress import Tell
from toolkit.run.command import Command, Runner

_HASH_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Parcel:
    """A local file, the path that it gets on the cluster, and its SHA-256."""

    source: Path
    target: str
    sha256: str

    @classmethod
    def of(cls, source: Path, target: str) -> "Parcel":
        return cls(source, target, sha256(source))


def stage(runner: Runner, parcels: Iterable[Parcel], tell: Tell) -> int:
    """Copy what is missing or differs; return how many files were copied.

    Raises:
        CheckFailed: if a copy arrived with other bytes; it is removed again.
    """
    wanted = list(parcels)
    there = remote_hashes(runner, [p.target for p in wanted])
    missing = [p for p in wanted if there.get(p.target) != p.sha256]
    for parcel in missing:
        size = parcel.source.stat().st_size
        tell.step(f"Copying {parcel.source.name} ({size / 1e6:.0f} MB) to {runner.place}")
        runner.upload(parcel.source, parcel.target, lambda done, total: tell.detail(f"{done / total:.0%}"))
    arrived = remote_hashes(runner, [p.target for p in missing])
    for parcel in missing:
        if arrived.get(parcel.target) != parcel.sha256:
            runner.run(Command.of("rm", "-f", "--", parcel.target))
            raise CheckFailed(
                f"{runner.place}: {parcel.target} arrived with other bytes than {parcel.source}",
                fix="launch again; if it happens twice, the disk there may be full or failing",
            )
    return len(missing)


def remote_hashes(runner: Runner, paths: list[str]) -> dict[str, str]:
    """Return the SHA-256 of those files that exist there, in one command."""
    if not paths:
        return {}
    # --zero keeps odd names from being escaped; a file that is not there only makes the status 1.
    done = runner.run(Command.of("sha256sum", "--zero", "--", *paths, timeout=_HASH_SECONDS))
    found = {}
    for entry in done.text.split("\0"):
        digest, separator, path = entry.partition("  ")
        if separator:
            found[path] = digest
    return found


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
