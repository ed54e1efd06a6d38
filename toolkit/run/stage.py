"""Copy files to a place; an identical existing file stays."""

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
from toolkit.run.patience import AWAY_SECONDS, Patient, patiently, tell_of_loss
from toolkit.units import format_size

_HASH_SECONDS = 600.0
_MOVE_SECONDS = 60.0
_PIECE_BYTES = 64 << 10
"""The most bytes of paths in one command: SSH passes its line to a shell as one argument, which Linux
limits to 128 KiB (execve(2), MAX_ARG_STRLEN).
"""

_NO_SUCH_OPTION = re.compile(r"(unrecognized|unknown|invalid) option", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parcel:
    """A local file, its path on the cluster, and its SHA-256."""

    source: Path
    target: str
    sha256: str

    @classmethod
    def of(cls, source: Path, target: str) -> "Parcel":
        return cls(source, target, hash_file(source))


def stage(runner: Runner, parcels: Iterable[Parcel], tell: Tell) -> int:
    """Copy the files that are missing or differ; return how many were copied.

    A file is renamed to its name after its bytes were checked on the target. A lost connection leaves a
    partial copy, and this or the next call resumes it.

    Raises:
        CheckFailed: if a copy arrived with other bytes; it is removed. Or if digests cannot be read.
        Missing: if the place is unreachable, or accepts no more bytes.
    """
    patient = Patient(runner, tell_of_loss(tell), AWAY_SECONDS)
    wanted = list(parcels)
    there = remote_hashes(patient, [p.target for p in wanted])
    missing = [p for p in wanted if there.get(p.target) != p.sha256]
    for parcel in missing:
        size = parcel.source.stat().st_size
        tell.step(f"Copying {parcel.source.name} ({format_size(size)}) to {runner.place}")
        _bring(runner, patient, parcel, tell)
    return len(missing)


def part_name(parcel: Parcel) -> str:
    """Return the path of a growing copy: beside the target, under a name that no other content has."""
    folder, name = posixpath.split(parcel.target)
    return posixpath.join(folder, f".{name}.{parcel.sha256[:16]}.part")


def _bring(direct: Runner, runner: Runner, parcel: Parcel, tell: Tell) -> None:
    part = part_name(parcel)
    kept = _send(direct, parcel, part, tell)
    found = remote_hashes(runner, [part])
    if kept and found.get(part) not in {None, parcel.sha256}:
        # The partial copy of an earlier try may be wrong.
        _remove(runner, part)
        _send(direct, parcel, part, tell)
        found = remote_hashes(runner, [part])
    if part not in found:
        # Another process that copied the same file may have finished first.
        if remote_hashes(runner, [parcel.target]).get(parcel.target) == parcel.sha256:
            return
        raise CheckFailed(f"{runner.place}: {parcel.target} was copied but cannot be read on the target")
    if found[part] != parcel.sha256:
        _remove(runner, part)
        raise CheckFailed(
            f"{runner.place}: {parcel.target} differs from {parcel.source} after the copy",
            fix="run the same command again; if it fails twice, check the disk of the target",
        )
    moved = runner.run(Command.of("mv", "-f", "--", part, parcel.target, timeout=_MOVE_SECONDS))
    # The answer to a first try may have been lost.
    if not moved.ok and remote_hashes(runner, [parcel.target]).get(parcel.target) != parcel.sha256:
        moved.require(f"renaming {parcel.target} on {runner.place}")


def _remove(runner: Runner, path: str) -> None:
    runner.run(Command.of("rm", "-f", "--", path, timeout=_MOVE_SECONDS))


def _send(runner: Runner, parcel: Parcel, part: str, tell: Tell) -> bool:
    """Copy in a separate thread, so that an interrupt stops it between two packets.

    An interrupt within a packet would break the connection. Returns whether a part of the file was there
    already.
    """
    stopped = threading.Event()
    begun: list[int] = []
    furthest = 0

    def progress(done: int, total: int) -> None:
        nonlocal furthest
        if stopped.is_set():
            raise KeyboardInterrupt
        if not begun:
            begun.append(done)
            if done:
                tell.step(f"Resuming {parcel.source.name} after {format_size(done)}")
        furthest = max(furthest, done)
        tell.detail(f"{done / max(total, 1):.0%}")

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
    """Return the SHA-256 of the files that exist there, in as few commands as sha256sum and SSH allow.

    Raises:
        CheckFailed: if sha256sum failed.
    """
    return {path: digest for piece in _pieces(paths) for path, digest in _hashes(runner, piece).items()}


def _pieces(paths: Iterable[str]) -> Iterator[list[str]]:
    """Cut a list of paths so that each piece fits in the line of one command."""
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
    # --zero keeps odd names from being escaped.
    done = _sha256sum(runner, "--zero", "--", *paths)
    if not done.stdout and _NO_SUCH_OPTION.search(done.errors):  # coreutils before 8.25, and BusyBox
        return _one_by_one(runner, paths)
    found = {}
    for entry in done.text.split("\0"):
        digest, separator, path = entry.partition("  ")
        if separator:
            found[path] = digest
    return found


def _one_by_one(runner: Runner, paths: list[str]) -> dict[str, str]:
    # A line about a name with a line break or a backslash begins with an additional backslash.
    answers = {path: _sha256sum(runner, "--", path).text.lstrip("\\").split(" ")[0] for path in paths}
    return {path: digest for path, digest in answers.items() if digest}


def _sha256sum(runner: Runner, *words: str) -> Completed:
    command = Command(("sha256sum", *words), env={"LC_ALL": "C"}, timeout=_HASH_SECONDS)
    done = runner.run(command)
    # A missing file causes status 1, and so does a shell that cannot be started; but sha256sum prints its
    # name.
    absent = done.status == 1 and "sha256sum: " in done.errors
    if done.timed_out or not (done.ok or absent):
        done.require(
            f"reading the SHA-256 of files on {runner.place}",
            "check whether the file system on that machine is slow or unreachable",
        )
    return done
