"""Download the files of a lock into the cache, verify each file, and download damaged files again.

In the cache, a complete and verified file has the path ``files/<sha256>/<name>``. A partial download has the
name ``.<name>.part`` in the same folder; the next command that needs the file resumes the download.
"""

import errno
import fcntl
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from toolkit.data import cache_dir
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.files import has_content, hash_file, write_all
from toolkit.image.locks.origins import addresses
from toolkit.model.lock import LockedFile
from toolkit.model.lock_grammar import file_faults, quote_value
from toolkit.model.progress import Tell
from toolkit.run.docker.mirrors import Mirrors, join_mirrors, of_machine
from toolkit.run.folders import in_cache
from toolkit.run.web.http import (
    Body,
    Busy,
    FileBody,
    RefusedRequest,
    open_address,
    open_file_address,
    pause_before,
    without_login,
)
from toolkit.units import format_size

_AT_ONCE = 8
_CHUNK = 1 << 20
_TOLD_EVERY = 1.0
"""The time in seconds between two progress messages."""
_PAUSES = (1.0, 3.0, 9.0)
"""The pause in seconds before each retry of an address. toolkit retries, because name servers and proxies may
fail if they receive many requests.
"""
_PATIENCE = 0.2
"""The time in seconds between two checks whether another process has finished its download of the same
file.
"""
_UPGRADE = "toolkit image lock RECIPE --upgrade"


class _Wrong(CheckFailed):
    """The error for an address that sent a file whose SHA-256 or size differs from the lock."""


def fetch_files(
    files: Iterable[LockedFile], tell: Tell, *, recipe: str = "RECIPE", mirrors: Mirrors | None = None
) -> dict[str, Path]:
    """Download the files that the cache lacks; return the path of each file by SHA-256.

    ``recipe`` is the recipe's name in error messages. For Debian packages, toolkit first tries the mirrors in
    this machine's configuration, then ``mirrors``.

    Raises:
        BadInput: if a field of a file is invalid, for example a name that cannot be part of a path.
        CheckFailed: if an address sends a wrong file and no address sends the correct file. Also if the disk
            is full, or toolkit cannot write a file.
        Missing: if no address sends a file, or the cache folder is not writable.
    """
    wanted = {file.sha256: file for file in files}
    # Check the file names: they may be from a package index, and they become parts of paths.
    for file in wanted.values():
        for fault in file_faults(file):
            raise BadInput(f"{quote_value(file.name)} {quote_value(file.version)}: {fault}")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        right = dict(zip(wanted, pool.map(is_fetched, wanted.values()), strict=True))
    absent = [wanted[digest] for digest, present in right.items() if not present]
    if absent:
        in_cache("files")
        tell.step(f"Fetching {cost(absent)} into {cache_dir() / 'files'}")
        _fetch(absent, addresses(absent, join_mirrors(of_machine(), mirrors or {})), tell, recipe)
    return {digest: path_of(file) for digest, file in wanted.items()}


def cost(files: Sequence[LockedFile]) -> str:
    """Return the number and the total size of files as text, for example "3 files (1.2 GB)"."""
    known = sum(file.size for file in files)
    unknown = sum(not file.size for file in files)
    count = f"{len(files)} file{'s' if len(files) != 1 else ''}"
    if unknown == len(files):
        return f"{count} (of unknown size)"
    more = f", and {unknown} of unknown size" if unknown else ""
    return f"{count} ({format_size(known)}{more})"


def path_of(file: LockedFile) -> Path:
    """Return the path of a file in the cache, even if the cache does not have the file."""
    return cache_dir() / "files" / file.sha256 / file.file


def is_fetched(file: LockedFile) -> bool:
    """Return whether the cache has the file with the size and the hash in the lock."""
    return has_content(path_of(file), file.size, file.sha256)


def _fetch(
    files: list[LockedFile], addresses: Mapping[str, tuple[str, ...]], tell: Tell, recipe: str
) -> None:
    """Download files in parallel, the largest file first. If one download fails, or the user interrupts
    toolkit, all downloads stop.
    """
    stop = threading.Event()
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        waiting = {
            pool.submit(_fetch_one, file, addresses[file.sha256], stop, recipe)
            for file in sorted(files, key=lambda f: -f.size)
        }
        while waiting:
            done, waiting = wait(waiting, timeout=_TOLD_EVERY, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            tell.detail(_so_far(files, len(files) - len(waiting)))
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _so_far(files: Sequence[LockedFile], byte_count: int) -> str:
    """Return the progress as text: the number of complete files, and the size of the downloaded bytes."""
    total = sum(file.size for file in files)
    fetched_bytes = sum(_size(path_of(file)) or _size(_part_of(file)) for file in files)
    whole = "" if any(not file.size for file in files) else f" of {format_size(total)}"
    return f"{byte_count} of {len(files)} fetched, {format_size(fetched_bytes)}{whole}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _part_of(file: LockedFile) -> Path:
    return path_of(file).with_name(f".{file.file}.part")


def _fetch_one(file: LockedFile, urls: Sequence[str], stop: threading.Event, recipe: str) -> None:
    target = path_of(file)
    failures: list[CheckFailed | Missing] = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _part_of(file).open("ab") as part:
            _take_turn(part.fileno(), stop)
            if is_fetched(file):
                return
            for url in urls:
                try:
                    _take_in_the_end(url, file, part.fileno(), stop)
                    Path(part.name).replace(target)
                except (_Wrong, Missing) as error:
                    failures.append(error)
                else:
                    return
    except OSError as error:
        raise _disk(error, target) from error
    raise _none_gave(file, failures, recipe)


def _take_turn(part: int, stop: threading.Event) -> None:
    """Lock the partial file ``part``; wait while another process downloads the same file.

    The function polls the lock, because an interrupt cannot stop a thread that waits for a lock in the
    kernel.
    """
    while True:
        try:
            return fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if stop.wait(_PATIENCE):
                raise _interrupted_fetch() from None


def _take_in_the_end(url: str, file: LockedFile, part: int, stop: threading.Event) -> None:
    """Download a file from one address; retry after network errors."""
    for pause in _PAUSES:
        try:
            return _take(url, file, part, stop)
        except RefusedRequest:
            raise
        except Missing as error:
            if stop.wait(_before_next(error, pause)):
                raise
    return _take(url, file, part, stop)


def _before_next(error: Missing, pause: float) -> float:
    """Return the seconds until the next retry: ``pause``, or the server's ``Retry-After`` if ``Retry-After``
    is longer.
    """
    retry_after = error.retry_after if isinstance(error, Busy) else ""
    return max(pause, pause_before(1, retry_after)) if retry_after else pause


def _take(url: str, file: LockedFile, part: int, stop: threading.Event) -> None:
    """Append the bytes from an address to the partial file, and verify the SHA-256 of the complete file."""
    begun = os.fstat(part).st_size
    if begun >= file.size:  # the partial file is damaged, or the lock does not state the size
        os.ftruncate(part, 0)
        begun = 0
    with (open_file_address if url.startswith("file:") else open_address)(url, start=begun) as body:
        if body.start != begun:
            os.ftruncate(part, body.start)
        for chunk in _chunks(body, stop):
            write_all(part, chunk)
            if file.size and os.fstat(part).st_size > file.size:
                os.ftruncate(part, 0)
                raise _Wrong(
                    f"{without_login(url)}: the download is longer than the {file.size} bytes in the lock"
                )
    size = os.fstat(part).st_size
    if file.size and size < file.size:
        raise Missing(f"{without_login(url)}: the download ended after {size} of {file.size} bytes")
    digest = hash_file(Path(f"/proc/self/fd/{part}"))
    if digest != file.sha256:
        os.ftruncate(part, 0)
        if begun:  # the bytes of an earlier download may be wrong, so start again
            return _take(url, file, part, stop)
        raise _Wrong(f"{without_login(url)}: the download has SHA-256 {digest}; the lock has {file.sha256}")
    os.fsync(part)
    return None


def _chunks(body: Body | FileBody, stop: threading.Event) -> Iterator[bytes]:
    while chunk := body.read(_CHUNK):
        if stop.is_set():
            raise _interrupted_fetch()
        yield chunk


def _interrupted_fetch() -> Missing:
    return Missing(
        "toolkit stopped this download, because another download failed or you interrupted the command"
    )


def _none_gave(file: LockedFile, failures: list[CheckFailed | Missing], recipe: str) -> CheckFailed | Missing:
    """Return the error for a file that toolkit could not download. If an address sent a wrong file, the error
    says so, even if other addresses sent nothing.
    """
    detail = [error.message for error in failures]
    again = _UPGRADE.replace("RECIPE", recipe)
    if any(isinstance(error, _Wrong) for error in failures):
        return CheckFailed(
            f"{file.file}: the download does not match the lock; toolkit deleted the download",
            detail=detail,
            fix=f"ask the publisher whether the file changed; or lock again and compare the changes: "
            f"`{again}`",
        )
    return Missing(
        f"{file.file}: the download failed from every address"
        if detail
        else f"{file.file}: no package index offers the file",
        detail=detail,
        fix=f"connect this machine to the Internet or set a proxy (https_proxy); if the publisher "
        f"removed the file, lock again: `{again}`",
    )


def _disk(error: OSError, target: Path) -> CheckFailed:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        what, fix = (
            f"the disk of {target.parent} is full",
            "delete some files, or set TOOLKIT_CACHE_DIR to a folder on another disk",
        )
    else:
        what = f"{target.parent} cannot be written: {error.strerror or error}"
        fix = "set TOOLKIT_CACHE_DIR to your own folder"
    return CheckFailed(what, fix=fix)
