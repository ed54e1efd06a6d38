"""Download a data set. Each file comes from the first source that has the expected bytes."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from toolkit.data import cache_dir
from toolkit.dataset.archives import ARCHIVE_ERRORS
from toolkit.dataset.catalogue import DataFile, Dataset
from toolkit.dataset.download import Full
from toolkit.dataset.sources import open_source
from toolkit.errors import CheckFailed, Missing
from toolkit.files import has_content
from toolkit.model.progress import Tell
from toolkit.run.command import Runner
from toolkit.run.folders import in_cache, make_writable

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The names of the downloaded files, and the names of the files that already existed."""

    fetched: tuple[str, ...]
    existing: tuple[str, ...]


def get(dataset: Dataset, folder: Path, runner: Runner, tell: Tell) -> FetchResult:
    """Download the files of a data set into a folder. Skip files that exist there with the right SHA-256.

    An interrupted download stays in the cache, and the next call resumes the download.

    Raises:
        BadInput: if toolkit cannot write to the folder.
        CheckFailed: if the disk is full. Also, if a source sends a file with a wrong hash or size, and no
            other source has the right file.
        Missing: if no source provides a file, or toolkit cannot write to the cache.
    """
    tell.step(f"Verifying {dataset.name} in {folder}")
    wanted = [file for file in dataset.files if not has_content(folder / file.name, file.size, file.sha256)]
    missing = tuple(file.name for file in wanted)
    if wanted:  # do not check the folder of a complete data set, which may be read-only
        if folder.is_relative_to(cache := cache_dir().absolute()):
            in_cache(*folder.relative_to(cache).parts)
        else:
            make_writable(folder, "-o")
        in_cache("downloads")
    failures: list[CheckFailed | Missing] = []
    store = cache_dir() / "downloads" / hashlib.sha256(dataset.name.encode()).hexdigest()[:16]
    for source in dataset.sources:
        if not wanted:
            break
        tell.step(f"Fetching {dataset.name} from {source.place}")
        try:
            with open_source(source, runner, store, tell) as open_file:
                while wanted:
                    with open_file(wanted[0]) as stream:
                        _keep(stream, wanted[0], folder, source.place, tell)
                    del wanted[0]
        except Full:
            raise
        except (CheckFailed, Missing) as error:
            tell.step(f"Skipping {source.place}: {error.message}")
            failures.append(error)
    if wanted:
        raise _none_gave(dataset, wanted[0], failures)
    shutil.rmtree(store, ignore_errors=True)  # all files are complete, so delete partial downloads
    return FetchResult(missing, tuple(file.name for file in dataset.files if file.name not in missing))


def _keep(stream: IO[bytes], file: DataFile, folder: Path, place: str, tell: Tell) -> None:
    """Write a file under a temporary name, verify its SHA-256, and rename it to its final name."""
    beside = folder / f".{file.name}.{os.getpid()}.part"
    try:
        with beside.open("wb") as writing:
            digest = _copy(stream, writing, file, place, tell)
        if digest != file.sha256:
            raise CheckFailed(
                f"{file.name} from {place} has a wrong checksum: SHA-256 {digest} instead of {file.sha256}",
                fix="run the same command again; if the checksum is wrong again, the file at this source was "
                "changed: do not use this source",
            )
        beside.replace(folder / file.name)
    except OSError as error:
        raise Full(
            f"{folder}: {file.name} cannot be written: {error.strerror or error}",
            fix="delete some files, or choose another folder with -o",
        ) from error
    finally:
        beside.unlink(missing_ok=True)


def _copy(stream: IO[bytes], target: IO[bytes], file: DataFile, place: str, tell: Tell) -> str:
    """Copy a file and return its SHA-256. Read at most one byte more than the expected size, because one
    extra byte is enough to show that the file is too long.
    """
    digest, done = hashlib.sha256(), 0
    while chunk := _read(stream, min(_CHUNK, file.size + 1 - done), file, place):
        digest.update(chunk)
        target.write(chunk)
        done += len(chunk)
        tell.detail(f"{file.name} {done / max(file.size, 1):.0%}")
    if done < file.size:
        raise Missing(f"{file.name} from {place}: the download ended after {done} of {file.size} bytes")
    if done > file.size:
        raise CheckFailed(f"{file.name} from {place} is longer than the expected {file.size} bytes")
    return digest.hexdigest()


def _read(stream: IO[bytes], size: int, file: DataFile, place: str) -> bytes:
    try:
        return stream.read(size) if size else b""
    except EOFError as error:
        raise Missing(f"{file.name} from {place} is incomplete") from error
    except ARCHIVE_ERRORS as error:
        # The cause may also be a network that sends its login page instead of the file.
        raise Missing(f"{file.name} from {place} cannot be unpacked: {error}") from error


def _none_gave(
    dataset: Dataset, file: DataFile, failures: list[CheckFailed | Missing]
) -> CheckFailed | Missing:
    """Return the error for a file that no source provided. If a source sent a file with a wrong hash or size,
    return the error of the first such source.
    """
    detail = [error.message for error in failures]
    for error in failures:
        if isinstance(error, CheckFailed):
            return CheckFailed(error.message, fix=error.fix, detail=detail)
    return Missing(
        f"no source provided the file {file.name} of the data set {dataset.name}",
        fix="connect this machine to the Internet, set a proxy (https_proxy), install npm, or copy the "
        "files of the data set to this machine yourself",
        detail=detail,
    )
