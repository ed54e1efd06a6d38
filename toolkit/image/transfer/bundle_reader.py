"""Read a bundle once. Compare each file with its hash, and copy the files that toolkit will install.

toolkit copies the files to a new folder that only this user can write to. The copies have numbers as names,
so that a malicious name in an archive has no effect. toolkit does not call Python's ``TarFile.extractall``.
Python 3.11.2 lacks the argument ``filter`` of this function, and in later releases an archive can bypass
``filter`` (CVE-2025-4517).
"""

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import BadInput, CheckFailed, Damaged
from toolkit.files import open_given
from toolkit.image.files.bounded import Budget
from toolkit.image.files.source import ByteSource, FileSource, HashingSource
from toolkit.image.files.tar import TarMember, entries, padded_size
from toolkit.image.transfer.bundle_format import (
    INDEX,
    MOST_TEXT,
    SUMS,
    Index,
    is_path,
    read_index,
    read_sums,
    require_listed,
)
from toolkit.model.progress import Tell

_CHUNK = 1 << 20
_INSTALLED = ("files/", "images/", "recipes/")
"""The folders of a bundle whose files ``toolkit image unbundle`` installs. For files in other folders, this
command only checks the hashes.
"""
_COPY_AGAIN = "copy the bundle and its .sha256 file again, and run `sha256sum -c` on the .sha256 file"


@dataclass(frozen=True, slots=True)
class StagedBundle:
    """A bundle in which each file matches its hash.

    ``sums`` maps the path of each file in the bundle to its SHA-256. ``files`` has the files that toolkit
    will install: each path in the bundle maps to toolkit's copy. ``sha256`` is the hash of the archive. It is
    empty if the bundle is a folder.
    """

    sums: Mapping[str, str]
    index: Index
    files: Mapping[str, Path]
    sha256: str = ""


def stage(source: Path, folder: Path, tell: Tell) -> StagedBundle:
    """Compare all files of a bundle with their hashes, and copy the files that toolkit will install to
    ``folder``.

    Args:
        source: the archive, or a folder with the unpacked archive. If ``source`` is a folder, toolkit ignores
            files that the list of hashes does not name.
        folder: an empty folder that only this user can write to.

    Raises:
        BadInput: if ``source`` is not a bundle, or an archive contains a file that its list of hashes does
            not name.
        Damaged: if a file is missing, or its hash is wrong.
    """
    tell.step(f"Checking the files of {source.name or source}")
    return _folder(source, folder) if source.is_dir() else _archive(source, folder)


def _archive(source: Path, folder: Path) -> StagedBundle:
    with open_given(source) as file:
        whole = HashingSource(FileSource(file), "sha256:", str(source))
        members = _members(whole, source, os.fstat(file.fileno()).st_size)
        sums = read_sums(_text(whole, _next(members, SUMS, source), source), source)
        about = _text(whole, _next(members, INDEX, source), source)
        index = _index(about, sums, source)
        names, paths = {INDEX}, dict[str, Path]()
        for entry in members:
            if entry.name not in sums or entry.name in names:
                raise BadInput(
                    f"{source}: {SUMS} does not list {entry.name}, or the bundle contains this file twice"
                )
            names.add(entry.name)
            target = _target(entry.name, folder, len(names))
            _compare(_data(whole, entry), sums[entry.name], target, f"{source}: {entry.name}")
            if target is not None:
                paths[entry.name] = target
        if missing := sums.keys() - names:
            raise Damaged(f"{source}: {min(missing)} is missing", fix=_COPY_AGAIN)
        return StagedBundle(sums, index, paths, whole.finish())


def _members(archive: ByteSource, source: Path, size: int) -> Iterator[TarMember]:
    """Check that each member of an archive is an ordinary file with a valid name, and yield the members.

    Raises:
        BadInput: if a member is not an ordinary file or has an invalid name, or if the archive is damaged or
            truncated.
    """
    try:
        for entry in entries(archive, str(source), Budget(str(source))):
            if entry.kind != "file" or entry.hard or entry.sparse:
                raise BadInput(
                    f"{source}: the bundle contains {entry.name[:120]!r}, which is not an ordinary file"
                )
            if entry.name != SUMS and not is_path(entry.name):
                raise BadInput(f"{source}: the file name {entry.name[:120]!r} is not allowed in a bundle")
            if entry.offset + entry.size > size:
                raise Damaged(
                    f"{source}: the bundle is incomplete: the archive ends within {entry.name}",
                    fix=_COPY_AGAIN,
                )
            yield entry
    except CheckFailed as error:
        reason = error.message.removeprefix(f"{source}: ").removeprefix("the image is damaged: ")
        raise BadInput(
            f"{source}: the file is not a bundle, or is damaged: {reason}", fix=_COPY_AGAIN
        ) from error


def _next(members: Iterator[TarMember], name: str, source: Path) -> TarMember:
    entry = next(members, None)
    if entry is None or entry.name != name:
        raise BadInput(
            f"{source}: this archive is not a bundle: its first members are not {SUMS} and {INDEX}",
            fix="make a bundle with: `toolkit image bundle`",
        )
    return entry


def _text(archive: ByteSource, entry: TarMember, source: Path) -> bytes:
    if entry.size > MOST_TEXT:
        raise BadInput(f"{source}: {entry.name} is larger than {MOST_TEXT >> 20} MiB")
    return b"".join(_data(archive, entry))


def _data(archive: ByteSource, entry: TarMember) -> Iterator[bytes]:
    """Yield the bytes of a member, without the padding after it. Also read the padding, because the hash of
    the archive includes the padding.
    """
    end, last = entry.offset + entry.size, entry.offset + padded_size(entry.size)
    for at in range(entry.offset, last, _CHUNK):
        piece = archive.read_at(at, min(_CHUNK, last - at))
        yield piece[: max(0, end - at)]


def _folder(source: Path, folder: Path) -> StagedBundle:
    sums = read_sums(_read(source / SUMS), source)
    index = _index(_read(source / INDEX), sums, source)
    paths = {}
    for number, (name, digest) in enumerate(sums.items()):
        target = _target(name, folder, number)
        _compare(_pieces(source / name), digest, target, str(source / name))
        if target is not None:
            paths[name] = target
    return StagedBundle(sums, index, paths)


def _read(path: Path) -> bytes:
    content = bytearray()
    for piece in _pieces(path):
        content += piece
        if len(content) > MOST_TEXT:
            raise BadInput(f"{path}: larger than {MOST_TEXT >> 20} MiB")
    return bytes(content)


def _pieces(path: Path) -> Iterator[bytes]:
    if path.is_symlink():
        raise Damaged(
            f"{path}: this is a symbolic link; a bundle contains only ordinary files",
            fix="unpack the bundle again",
        )
    with open_given(path, fix="give a file that `toolkit image bundle` wrote") as file:
        while piece := file.read(_CHUNK):
            yield piece


def _index(text: bytes, sums: Mapping[str, str], source: Path) -> Index:
    if hashlib.sha256(text).hexdigest() != sums[INDEX]:
        raise _differs(f"{source}: {INDEX}")
    index = read_index(text, source)
    require_listed(index, sums, source)
    return index


def _target(name: str, folder: Path, number: int) -> Path | None:
    return folder / str(number) if name.startswith(_INSTALLED) else None


def _compare(pieces: Iterator[bytes], digest: str, target: Path | None, name: str) -> None:
    """Compare the SHA-256 of ``pieces``, the bytes of the file ``name``, with ``digest``. If ``target`` is
    given, also write the bytes to ``target``.

    Raises:
        Damaged: if the hash is wrong.
    """
    hasher = hashlib.sha256()
    with contextlib.nullcontext() if target is None else _new(target) as copy:
        for piece in pieces:
            hasher.update(piece)
            if copy is not None:
                copy.write(piece)
    if hasher.hexdigest() != digest:
        raise _differs(name)


def _differs(name: str) -> Damaged:
    return Damaged(f"{name}: its content does not match its hash in {SUMS}", fix=_COPY_AGAIN)


def _new(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o666), "wb")


def install(copy: Path, target: Path) -> None:
    """Move ``copy``, a file from :func:`stage`, to ``target``. ``target`` may be on a different file system.

    Raises:
        OSError: if toolkit cannot write to the folder of ``target``, or the disk is full.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        copy.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        part = target.parent / f".{os.urandom(6).hex()}.part"
        try:
            with copy.open("rb") as reading, _new(part) as writing:
                shutil.copyfileobj(reading, writing, _CHUNK)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
