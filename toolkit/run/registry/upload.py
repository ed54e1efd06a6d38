"""Upload a blob in chunks if the registry does not have it yet, and resume interrupted uploads."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from toolkit.errors import CheckFailed, Missing
from toolkit.run.registry import memory
from toolkit.run.registry.images import has_blob, scope
from toolkit.run.registry.name import RegistryName
from toolkit.run.registry.session import RegistrySession
from toolkit.run.web.client import Response
from toolkit.run.web.http import pause_before

CHUNK = 8 << 20
"""The number of bytes of a blob in one request. Most proxies accept this size, and after an interruption
toolkit repeats only one request.
"""
_MOST_CHUNK = 32 << 20
"""The size of the largest chunk that toolkit keeps in memory, in bytes.

If a registry requires chunks of more bytes, toolkit sends the blob in one request.
"""
_TRIES = 6
_RANGE = re.compile(r"(?:bytes=)?0-(\d{1,15})")
_NO_CHUNKS = frozenset({400, 404, 405, 411, 413, 416, 501})


class Readable(Protocol):
    """Content that a caller can read from any position."""

    def read_at(self, offset: int, count: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Blob:
    """The blob to send; ``size`` is in bytes."""

    digest: str
    size: int
    source: Readable


OnSent = Callable[[int], None]
"""A function that toolkit calls with the number of the blob's bytes that the registry has received."""


@dataclass(slots=True)
class _Upload:
    """An upload that the registry has started. ``location`` is the address of the next request; ``offset`` is
    the number of bytes that the registry has received.
    """

    location: str
    offset: int = 0
    min_chunk: int = 0
    """The smallest chunk in bytes that the registry accepts (distribution-spec: ``OCI-Chunk-Min-Length``)."""


def send_blob(session: RegistrySession, name: RegistryName, blob: Blob, on_sent: OnSent) -> bool:
    """Upload a blob to a repository. Return False if no upload was necessary, because the repository already
    had the blob or the registry copied the blob from another repository.

    Raises:
        Missing: if the registry stops answering; the next call resumes the upload.
        CheckFailed: if the registry refuses the blob.
    """
    if has_blob(session, name, blob.digest):
        memory.remember_blob(session.host, blob.digest, name.repository)
        return False
    upload = _earlier_upload(session, name, blob) or _start_upload(session, name, blob)
    if upload is not None:
        on_sent(upload.offset)
        try:
            _send_chunks(session, name, blob, upload, on_sent)
        except _NoChunksError:
            _send_whole(session, name, blob)
        if not has_blob(session, name, blob.digest):
            raise CheckFailed(
                f"{session.host} accepted the blob {blob.digest[:19]}…, but does not have it afterwards"
            )
    memory.remember_blob(session.host, blob.digest, name.repository)
    return upload is not None


class _NoChunksError(Exception):
    """The registry does not accept the blob in chunks, so toolkit must send the blob in one request."""


def _earlier_upload(session: RegistrySession, name: RegistryName, blob: Blob) -> _Upload | None:
    """Return the unfinished upload of an earlier run, or ``None`` if toolkit cannot resume such an upload."""
    location = memory.recall(session.host, blob.digest).uploads.get(name.repository, "")
    return _ask_progress(session, name, location, blob) if location else None


def _ask_progress(session: RegistrySession, name: RegistryName, location: str, blob: Blob) -> _Upload | None:
    """Ask the registry how many bytes of an upload it has received. Return ``None`` if the upload no longer
    exists, or if the registry has received no bytes.
    """
    try:
        with session.ask("GET", location, statuses=(204,), scope=_scope(name)) as answer:
            upload = _Upload(
                answer.headers.get("Location", location), received_bytes(answer.headers.get("Range", ""))
            )
    except CheckFailed:
        return None
    return upload if 0 < upload.offset <= blob.size else None


def _start_upload(session: RegistrySession, name: RegistryName, blob: Blob) -> _Upload | None:
    """Start an upload. Return ``None`` if the registry copied the blob from another repository, so that no
    upload is necessary.
    """
    query = ""
    repositories = [r for r in memory.recall(session.host, blob.digest).repositories if r != name.repository]
    if repositories:
        query = f"?{urlencode({'mount': blob.digest, 'from': repositories[0]})}"
    where = f"/v2/{name.repository}/blobs/uploads/"
    allowed = _scope(name)
    if repositories:
        allowed += f" {scope(repositories[0], 'pull')}"
    try:
        answer = session.ask("POST", where + query, statuses=(201, 202), scope=allowed)
    except (CheckFailed, Missing):
        if not repositories:
            raise
        answer = session.ask("POST", where, statuses=(202,), scope=_scope(name))
    with answer:
        if answer.status_code == 201:
            return None
        least = answer.headers.get("OCI-Chunk-Min-Length", "")
        return _Upload(_location(answer, session), 0, int(least[:12]) if least.isdecimal() else 0)


def _send_chunks(
    session: RegistrySession, name: RegistryName, blob: Blob, upload: _Upload, on_sent: OnSent
) -> None:
    """Send the rest of a blob in chunks and finish the upload.

    After an interruption, toolkit asks the registry how many bytes arrived, and continues the upload after
    these bytes. toolkit gives up after six failures in a row.
    """
    if upload.min_chunk > _MOST_CHUNK:
        raise _NoChunksError
    step = max(CHUNK, upload.min_chunk)
    failures, furthest = 0, upload.offset
    while upload.offset < blob.size:
        data = blob.source.read_at(upload.offset, step)
        if not data:
            raise CheckFailed(
                f"{blob.digest[:19]}…: the file became shorter while toolkit sent it",
                fix="run the same command again",
            )
        try:
            _patch(session, name, upload, data)
            memory.remember_upload(session.host, blob.digest, name.repository, upload.location)
        except Missing:
            failures += 1
            if failures >= _TRIES:
                raise
            session.wait(pause_before(failures))
            again = _ask_progress(session, name, upload.location, blob) or _start_upload(session, name, blob)
            if again is None:
                return
            upload.location, upload.offset = again.location, again.offset
        if upload.offset > furthest:
            failures, furthest = 0, upload.offset
        on_sent(upload.offset)
    _finish(session, name, blob, upload.location, b"")


def _patch(session: RegistrySession, name: RegistryName, upload: _Upload, data: bytes) -> None:
    last = upload.offset + len(data) - 1
    headers = {"Content-Type": "application/octet-stream", "Content-Range": f"{upload.offset}-{last}"}
    answer = session.ask(
        "PATCH",
        upload.location,
        statuses=(202, 201, 204, *_NO_CHUNKS),
        scope=_scope(name),
        headers=headers,
        tries=1,
        data=data,
    )
    with answer:
        if answer.status_code in _NO_CHUNKS:
            if upload.offset:
                # The registry accepted earlier chunks, so this status means that the registry deleted the
                # upload.
                raise Missing(
                    f"{session.host} deleted an unfinished upload", fix="run the same command again"
                )
            raise _NoChunksError
        upload.location = _location(answer, session)
        byte_range = answer.headers.get("Range", "")
        upload.offset = received_bytes(byte_range) if byte_range else last + 1


def _send_whole(session: RegistrySession, name: RegistryName, blob: Blob) -> None:
    """Send a blob in one request, because some registries do not accept chunks."""
    upload = _start_upload(session, name, blob)
    if upload is not None:
        _finish(session, name, blob, upload.location, _BlobReader(blob))


def _finish(
    session: RegistrySession, name: RegistryName, blob: Blob, location: str, data: "bytes | _BlobReader"
) -> None:
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(len(data))}
    where = with_digest(session.absolute(location), blob.digest)
    answer = session.ask(
        "PUT", where, statuses=(201, 204), scope=_scope(name), headers=headers, tries=1, data=data
    )
    answer.close()


def with_digest(location: str, digest: str) -> str:
    """Return the address that finishes an upload: the upload's address with the digest added to its query."""
    parts = urlsplit(location)
    query = [*parse_qsl(parts.query, keep_blank_values=True), ("digest", digest)]
    return urlunsplit(parts._replace(query=urlencode(query)))


def received_bytes(header: str) -> int:
    """Return the number of bytes that the registry has received, according to its ``Range`` header. Return 0
    for an empty header.

    ``0-0`` means no bytes in old releases of the registry server ``distribution``, but one byte in the
    specification. For ``0-0``, toolkit assumes no bytes and starts the upload again, which is always safe.
    """
    match = _RANGE.fullmatch(header.strip())
    return int(match[1]) + 1 if match and match[1] != "0" else 0


def _location(answer: Response, session: RegistrySession) -> str:
    where = answer.headers.get("Location", "")
    if not where:
        raise CheckFailed(f"{session.host} sends no Location header with the next address of an upload")
    return session.absolute(where)


def _scope(name: RegistryName) -> str:
    return scope(name.repository, "pull,push")


class _BlobReader:
    """A file object from which the library ``requests`` reads a blob. ``requests`` needs the length of the
    object.
    """

    def __init__(self, blob: Blob) -> None:
        self._blob, self._at = blob, 0

    def __len__(self) -> int:
        return self._blob.size - self._at

    def read(self, size: int = -1) -> bytes:
        data = self._blob.source.read_at(self._at, size if size > 0 else CHUNK)
        self._at += len(data)
        return data

    def seek(self, offset: int) -> None:
        self._at = offset
