"""Copy files to a host, and skip files that the host already has."""

import os
import posixpath
import re
import shlex
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import CheckFailed
from toolkit.files import hash_file
from toolkit.model.progress import Tell
from toolkit.run.command import Command, Completed, Runner
from toolkit.run.patience import AWAY_SECONDS, PatientRunner, patiently, tell_of_loss
from toolkit.units import format_size

_HASH_SECONDS = 600.0
_MOVE_SECONDS = 60.0
_PIECE_BYTES = 64 << 10
"""The largest total size of the paths in one ``sha256sum`` command, in bytes.

SSH passes a command to a shell as one argument, which Linux limits to 128 KiB (execve(2), MAX_ARG_STRLEN).
"""

_NO_SUCH_OPTION = re.compile(r"(unrecognized|unknown|invalid) option", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parcel:
    """A file to copy: ``source`` is its path on this machine, and ``target`` is its path on the host.

    ``sha256`` is the SHA-256 of ``source``.
    """

    source: Path
    target: str
    sha256: str

    @classmethod
    def of(cls, source: Path, target: str) -> "Parcel":
        return cls(source, target, hash_file(source))


def stage(runner: Runner, parcels: Iterable[Parcel], tell: Tell) -> int:
    """Copy the files that are missing on the host or differ there, and return the number of copied files.

    toolkit renames a copy to its final name only after the host has computed the correct SHA-256 of the copy.
    After a lost connection, this call or the next call resumes the partial copy on the host.

    Raises:
        CheckFailed: if a copy has wrong bytes (toolkit deletes the copy), or if the host cannot compute a
            SHA-256.
        Missing: if the host is unreachable, or its disk is full.
    """
    patient = PatientRunner(runner, tell_of_loss(tell), AWAY_SECONDS)
    wanted = list(parcels)
    hashes = remote_hashes(patient, [p.target for p in wanted])
    missing = [p for p in wanted if hashes.get(p.target) != p.sha256]
    for parcel in missing:
        size = parcel.source.stat().st_size
        tell.step(f"Copying {parcel.source.name} ({format_size(size)}) to {runner.place}")
        _bring(runner, patient, parcel, tell)
    return len(missing)


def part_name(parcel: Parcel) -> str:
    """Return the path of the partial copy in the target's folder. The name of the partial copy contains the
    first 16 hexadecimal digits of the file's SHA-256.
    """
    folder, name = posixpath.split(parcel.target)
    return posixpath.join(folder, f".{name}.{parcel.sha256[:16]}.part")


def _bring(plain_runner: Runner, runner: Runner, parcel: Parcel, tell: Tell) -> None:
    part = part_name(parcel)
    resumed = _send(plain_runner, parcel, part, tell)
    hashes = remote_hashes(runner, [part])
    if resumed and hashes.get(part) not in {None, parcel.sha256}:
        # The partial copy from an earlier try contains wrong bytes, so delete it and copy the whole file.
        _remove(runner, part)
        _send(plain_runner, parcel, part, tell)
        hashes = remote_hashes(runner, [part])
    if part not in hashes:
        # Another process that copied the same file may have renamed the partial copy.
        if remote_hashes(runner, [parcel.target]).get(parcel.target) == parcel.sha256:
            return
        raise CheckFailed(f"{runner.place}: {parcel.target} was copied, but toolkit cannot read the copy")
    if hashes[part] != parcel.sha256:
        _remove(runner, part)
        raise CheckFailed(
            f"{runner.place}: {parcel.target} differs from {parcel.source} after the copy",
            fix="run the same command again; if it fails twice, check the disk of that host",
        )
    moved = runner.run(Command.of("mv", "-f", "--", part, parcel.target, timeout=_MOVE_SECONDS))
    # If the connection is lost during mv, the runner retries mv. This retry fails if the first mv has already
    # renamed the file.
    if not moved.ok and remote_hashes(runner, [parcel.target]).get(parcel.target) != parcel.sha256:
        moved.require(f"renaming {parcel.target} on {runner.place}")


def _remove(runner: Runner, path: str) -> None:
    runner.run(Command.of("rm", "-f", "--", path, timeout=_MOVE_SECONDS))


def _send(runner: Runner, parcel: Parcel, part: str, tell: Tell) -> bool:
    """Copy a file in a separate thread, so that an interrupt stops the copy between two network packets.

    An interrupt (Ctrl-C) within a packet would break the SSH connection. The function returns whether the
    last try resumed a partial copy on the host.
    """
    stopped = threading.Event()
    begun: list[int] = []
    furthest = 0

    def progress(transferred: int, total: int) -> None:
        nonlocal furthest
        if stopped.is_set():
            raise KeyboardInterrupt
        if not begun:
            begun.append(transferred)
            if transferred:
                tell.step(f"Resuming {parcel.source.name} after {format_size(transferred)}")
        furthest = max(furthest, transferred)
        tell.detail(f"{transferred / max(total, 1):.0%}")

    def once() -> None:
        begun.clear()
        pool.submit(runner.send, parcel.source, part, progress).result()

    with ThreadPoolExecutor(1) as pool:
        try:
            patiently(once, tell_of_loss(tell), AWAY_SECONDS, lambda: furthest)
        finally:
            stopped.set()
    return bool(begun and begun[0])


def remote_hashes(runner: Runner, paths: list[str]) -> dict[str, str]:
    """Return a mapping from path to SHA-256 for the files that exist on the host. The function runs as few
    commands on the host as possible.

    Raises:
        CheckFailed: if sha256sum fails for any reason other than a missing file.
    """
    return {path: digest for piece in _pieces(paths) for path, digest in _hashes(runner, piece).items()}


def _pieces(paths: Iterable[str]) -> Iterator[list[str]]:
    """Split a list of paths into parts, each of which fits into one command line."""
    piece: list[str] = []
    size = 0
    for path in paths:
        length = len(os.fsencode(shlex.quote(path))) + 1
        if piece and size + length > _PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(path)
        size += length
    if piece:
        yield piece


def _hashes(runner: Runner, paths: list[str]) -> dict[str, str]:
    # Without --zero, sha256sum escapes file names that contain a backslash or a line break.
    done = _sha256sum(runner, "--zero", "--", *paths)
    if not done.stdout and _NO_SUCH_OPTION.search(done.errors):  # no --zero: coreutils before 8.25, BusyBox
        return _one_by_one(runner, paths)
    digests = {}
    for entry in done.text.split("\0"):
        digest, separator, path = entry.partition("  ")
        if separator:
            digests[path] = digest
    return digests


def _one_by_one(runner: Runner, paths: list[str]) -> dict[str, str]:
    # Remove the backslash with which sha256sum starts a line that contains an escaped file name.
    answers = {path: _sha256sum(runner, "--", path).text.lstrip("\\").split(" ")[0] for path in paths}
    return {path: digest for path, digest in answers.items() if digest}


def _sha256sum(runner: Runner, *words: str) -> Completed:
    command = Command(("sha256sum", *words), env={"LC_ALL": "C"}, timeout=_HASH_SECONDS)
    done = runner.run(command)
    # For a missing file, sha256sum exits with 1 and prints a message that starts with "sha256sum: ".
    # Status 1 without this message may come from a shell that could not start.
    absent = done.status == 1 and "sha256sum: " in done.errors
    if done.timed_out or not (done.ok or absent):
        done.require(
            f"reading the SHA-256 of files on {runner.place}",
            "check whether the file system on that host is slow or unreachable",
        )
    return done
