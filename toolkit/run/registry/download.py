"""Download a blob to a file, resume interrupted downloads, and check the blob's digest."""

import errno
import re
from collections.abc import Callable
from io import FileIO
from pathlib import Path

from toolkit.errors import CheckFailed, Missing
from toolkit.files import hash_file
from toolkit.run.registry.answers import unreachable_error
from toolkit.run.registry.images import scope, wrong
from toolkit.run.registry.manifest import Descriptor
from toolkit.run.registry.name import RegistryName
from toolkit.run.registry.session import RegistrySession
from toolkit.run.web.client import Response
from toolkit.run.web.http import pause_before
from toolkit.run.web.limits import broken_limit, of_transfer
from toolkit.units import format_size

_STEP = 1 << 16
"""The largest number of bytes that toolkit receives before it writes them to the file. An interruption of a
download loses at most this number of bytes.
"""
_TRIES = 6
_CONTENT_RANGE = re.compile(r"bytes (\d{1,15})-\d{1,15}/(?:\d{1,15}|\*)")

OnGot = Callable[[int], None]
"""A function that toolkit calls with the number of downloaded bytes of the blob."""


def fetch_blob(
    session: RegistrySession, name: RegistryName, blob: Descriptor, part: Path, on_got: OnGot
) -> None:
    """Download the missing bytes of a blob to the file ``part``, and check the digest of the complete file.

    Raises:
        Missing: if the registry stops answering; ``part`` keeps the received bytes.
        CheckFailed: if the disk is full (``part`` keeps the received bytes), or if the digest is wrong
            (toolkit deletes ``part``).
    """
    offset = part.stat().st_size if part.exists() else 0
    _fill(session, name, blob, part, on_got)
    digest = f"sha256:{hash_file(part)}"
    if digest != blob.digest and offset:
        # The bytes from an earlier run may be wrong, so download the whole blob again.
        part.unlink()
        _fill(session, name, blob, part, on_got)
        digest = f"sha256:{hash_file(part)}"
    if digest != blob.digest:
        part.unlink()
        raise wrong(f"{name}: a blob from {session.host}", blob.digest, digest)


def _fill(session: RegistrySession, name: RegistryName, blob: Descriptor, part: Path, on_got: OnGot) -> None:
    failures = 0
    with part.open("ab", buffering=0) as file:
        if file.tell() > blob.size:
            file.truncate(0)
        while (done := file.tell()) < blob.size or (blob.size == 0 and done > 0):
            try:
                _append(session, name, blob, file, on_got)
            except Missing as error:
                # If the failed transfer received bytes, the count of failures starts again at 1. A transfer
                # that exceeded a limit on time, bytes or rate always increases the count by 1, because such
                # transfers could otherwise repeat endlessly.
                failures = 1 if file.tell() > done and not broken_limit(error) else failures + 1
                if failures >= _TRIES:
                    raise
                session.wait(pause_before(failures))


def _append(
    session: RegistrySession, name: RegistryName, blob: Descriptor, file: FileIO, on_got: OnGot
) -> None:
    done = file.tell()
    where = f"/v2/{name.repository}/blobs/{blob.digest}"
    headers = {"Range": f"bytes={done}-"} if done else {}
    with session.ask(
        "GET", where, statuses=(200, 206, 404), scope=scope(name.repository, "pull"), headers=headers
    ) as answer:
        if answer.status_code == 404:
            raise CheckFailed(f"{name}: the registry has the manifest but not the blob {blob.digest[:19]}…")
        if begins_at(answer.status_code, answer.headers.get("Content-Range", "")) != done:
            file.truncate(0)  # the response does not start where the file ends
            file.seek(0)
            if answer.status_code != 200:
                raise Missing(
                    f"{session.host} sends a part of blob {blob.digest[:19]}… that toolkit did not request"
                )
        _copy(session, blob, answer, file, on_got)


def begins_at(status: int, content_range: str) -> int:
    """Return the offset in the blob at which a response's content starts. Return -1 if the header
    ``Content-Range`` of a partial response has no valid offset.
    """
    if status == 200:
        return 0
    match = _CONTENT_RANGE.fullmatch(content_range.strip())
    return int(match[1]) if match else -1


def _copy(session: RegistrySession, blob: Descriptor, answer: Response, file: FileIO, on_got: OnGot) -> None:
    import requests

    done = file.tell()
    try:
        for chunk in answer.chunks(_STEP, of_transfer(blob.size)):
            done += len(chunk)
            if done > blob.size:
                raise CheckFailed(
                    f"{session.host} sends more than the {blob.size} bytes of blob {blob.digest[:19]}…"
                )
            _write(file, chunk)
            on_got(done)
    except requests.exceptions.RequestException as error:
        raise unreachable_error(session.host, error) from error
    except OSError as error:
        raise _not_written(str(file.name), error) from error
    if done < blob.size:
        raise Missing(
            f"{session.host} interrupted the transfer after {format_size(done)} of {format_size(blob.size)}",
            fix="run the same command again to resume the transfer",
        )


def _write(file: FileIO, chunk: bytes) -> None:
    """Write all bytes of a chunk. Repeated calls of ``write`` are necessary, because one call may write only
    a part of the bytes, for example on a nearly full disk.
    """
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) or 0 :]


def _not_written(name: str, error: OSError) -> CheckFailed:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return CheckFailed(
            f"the disk is full: {Path(name).parent}",
            fix="delete files on this disk, and run the same command again to resume the transfer",
        )
    return CheckFailed(f"{name}: cannot be written: {error.strerror}")
