"""Write and read checkpoints. A trainer never loads an incomplete or damaged checkpoint.

A checkpoint is a folder with two files. ``state.npy`` contains the arrays of model and optimizer, one after
another, in the format of ``numpy.save``. ``manifest.json`` contains the progress of the training, the digest
of ``state.npy``, and a digest of all other fields of ``manifest.json``. toolkit writes a checkpoint under a
temporary name, synchronises the files to the disk, and renames the folder; see ``docs/checkpoints.md``.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy

FOLDER = "checkpoints"
SCHEMA = "toolkit.checkpoint/1"
STATE, MANIFEST = "state.npy", "manifest.json"
_NAME = re.compile(r"\d{6}-\d{12}")
_PART = re.compile(rf"\.{_NAME.pattern}\.\d+\.(part|gone)")


@dataclass(frozen=True, slots=True)
class EpochPart:
    """The progress of an epoch.

    ``images`` is the number of samples that all ranks together have used. ``loss`` and ``right`` are the sums
    of losses and correct predictions. ``seconds`` is the training time in this epoch. ``waited`` is the total
    time in seconds that training steps waited for samples.

    In a checkpoint, ``loss``, ``right`` and ``waited`` are sums over all ranks. During the training, each
    rank counts only its own values. JAX is an exception: rank 0 counts ``loss`` and ``right`` for all ranks,
    and both values are 0 on the other ranks.
    """

    images: int = 0
    loss: float = 0.0
    right: int = 0
    seconds: float = 0.0
    waited: float = 0.0


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """The progress of a training: ``epochs`` complete epochs, and a ``part`` of the next epoch.

    A run that resumes this training must have the same ``settings``. ``passes`` is the number of passes over
    the data in an epoch. ``records`` contains the lines of ``metrics.jsonl`` so far.
    """

    epochs: int
    part: EpochPart
    passes: int
    settings: Mapping[str, str | int | float]
    records: Sequence[Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The checkpoint's name. A checkpoint with more progress has an alphabetically later name."""
        return f"{self.epochs:06d}-{self.part.images:012d}"


class CheckpointDamage(Exception):
    """A file of a checkpoint is missing or does not have the bytes that the trainer wrote."""


def write(folder: Path, progress: TrainingProgress, arrays: "Sequence[numpy.ndarray]", count: int) -> Path:
    """Write a checkpoint, keep the newest ``count`` checkpoints, and return the new checkpoint's path.

    Raises:
        Trouble: if the checkpoint cannot be written; in this case, all earlier checkpoints stay.
    """
    path = folder / progress.name
    beside = folder / f".{progress.name}.{os.getpid()}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _tidy(folder)
        try:
            beside.mkdir()
            digest = _write_state(beside / STATE, arrays)
            _write_manifest(
                beside / MANIFEST, {"state_sha256": digest, "arrays": len(arrays), **asdict(progress)}
            )
            _to_disk(beside)
            if path.exists():
                # The existing checkpoint is damaged. Otherwise, this run would have resumed from it.
                _remove(path)
            beside.rename(path)
            _to_disk(folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        kept = names(folder)
        before = f"the previous checkpoint {kept[0]} is kept" if kept else "there is no previous checkpoint"
        raise Trouble(
            f"{path}: the checkpoint cannot be written: {error.strerror or error}; {before}. Free "
            "some disk space, and start the same command again",
            code=1,
        ) from error
    _prune(folder, path.name, count)
    return path


def newest(folder: Path) -> "tuple[TrainingProgress, list[numpy.ndarray]] | None":
    """Return the newest undamaged checkpoint, or ``None`` if there are no checkpoints. Print a line about
    each damaged checkpoint.

    Raises:
        Trouble: if all checkpoints are damaged. The trainer does not start a new training in this case,
            because a new training would remove the checkpoints.
    """
    known = names(folder)
    for name in known:
        try:
            return read(folder / name)
        except CheckpointDamage as why:
            print(f"{folder / name}: not loaded: {why}; trying the previous checkpoint", flush=True)
    if known:
        which = "the only checkpoint is" if len(known) == 1 else f"all {len(known)} checkpoints are"
        raise Trouble(
            f"{folder}: {which} damaged; restore an undamaged checkpoint, or start again with --fresh", code=1
        )
    return None


def read(path: Path) -> "tuple[TrainingProgress, list[numpy.ndarray]]":
    """Return a checkpoint after checking its digests.

    Raises:
        CheckpointDamage: if any byte differs from the bytes that the trainer wrote.
        Trouble: if the checkpoint cannot be read, or has a format that this toolkit release does not read.
    """
    import numpy as np

    manifest = _read_manifest(path / MANIFEST)
    with _reading(path / STATE), (path / STATE).open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != manifest["state_sha256"]:
            raise CheckpointDamage(f"{STATE} differs from what was written")
        file.seek(0)
        arrays = [np.lib.format.read_array(file) for _ in range(manifest["arrays"])]
    part = EpochPart(**manifest["part"])
    known = {name: manifest[name] for name in ("epochs", "passes", "settings", "records")}
    return TrainingProgress(part=part, **known), arrays


def names(folder: Path) -> list[str]:
    """Return the names of the checkpoints in a folder. The checkpoint with the most progress is first."""
    try:
        found = [entry.name for entry in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((name for name in found if _NAME.fullmatch(name)), reverse=True)


def remove_all(folder: Path) -> None:
    """Remove all checkpoints in a folder."""
    for name in names(folder):
        _remove(folder / name)
    _tidy(folder)


class _Hashing:
    """A file that computes the SHA-256 digest of the data written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.digest = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)


def _write_state(path: Path, arrays: "Sequence[numpy.ndarray]") -> str:
    import numpy as np

    with path.open("wb") as file:
        hashing = _Hashing(file)
        for array in arrays:
            np.lib.format.write_array(hashing, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return hashing.digest.hexdigest()


def _write_manifest(path: Path, values: Mapping[str, Any]) -> None:
    body = {"schema": SCHEMA, **values}
    with path.open("w", encoding="utf-8") as file:
        json.dump({**body, "manifest_sha256": _digest(body)}, file)
        file.flush()
        os.fsync(file.fileno())


def _read_manifest(path: Path) -> dict[str, Any]:
    with _reading(path):
        content = path.read_bytes()
    try:
        values = json.loads(content)
        told = values.pop("manifest_sha256")
    except (ValueError, AttributeError, KeyError, TypeError):
        raise CheckpointDamage(f"{MANIFEST} differs from what was written") from None
    if told != _digest(values):
        raise CheckpointDamage(f"{MANIFEST} differs from what was written")
    if values["schema"] != SCHEMA:
        raise Trouble(
            f"{path.parent}: the checkpoint has the format {values['schema']}, but this toolkit reads "
            f"{SCHEMA}; resume with the toolkit that wrote the checkpoint, or start again with --fresh"
        )
    return dict(values)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Run the body of the ``with`` statement, which reads the file ``path``. Raise ``CheckpointDamage`` if
    the file is missing, and ``Trouble`` if the file exists but is unreadable.
    """
    try:
        yield
    except FileNotFoundError:
        raise CheckpointDamage(f"{path.name} no longer exists") from None
    except OSError as error:
        raise Trouble(
            f"{path}: cannot be read: {error.strerror or error}; try again, or rename {path.parent} to "
            "resume from the previous checkpoint",
            code=1,
        ) from error


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _to_disk(folder: Path) -> None:
    """Synchronise the entries of a folder to the disk, if the file system supports it."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(number)


def _prune(folder: Path, newest_name: str, count: int) -> None:
    """Keep the new checkpoint ``newest_name``. Of the checkpoints with less progress, keep the ``count`` - 1
    checkpoints with the most progress. Remove all other checkpoints.

    A checkpoint with more progress than ``newest_name`` is damaged, because otherwise this run would have
    resumed from it. If the damaged checkpoint stayed, a later run would try it first.
    """
    known = names(folder)
    at = known.index(newest_name)
    for name in [*known[:at], *known[at + count :]]:
        # If a checkpoint cannot be removed, continue, because the training does not need the removal.
        with contextlib.suppress(OSError):
            _remove(folder / name)


def _remove(path: Path) -> None:
    """Rename a checkpoint before removing it, so that no reader finds a partly removed checkpoint."""
    gone = path.with_name(f".{path.name}.{os.getpid()}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    path.rename(gone)
    shutil.rmtree(gone)


def _tidy(folder: Path) -> None:
    """Remove the temporary files of interrupted runs."""
    if folder.is_dir():
        for entry in folder.iterdir():
            if _PART.fullmatch(entry.name):
                shutil.rmtree(entry, ignore_errors=True)
