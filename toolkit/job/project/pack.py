"""Pack a project into a tar archive that depends only on the names, modes and contents of its files."""

import os
import tarfile
import tempfile
import time
from pathlib import Path

from toolkit.data import cache_dir
from toolkit.errors import BadInput
from toolkit.files import hash_file
from toolkit.job.project.collect import CollectedFiles, File
from toolkit.run.stage import Parcel

_SHORT = 12
_KEPT_SECONDS = 7 * 24 * 3600
MOMENT = 946684800
"""The modification time of every file in an archive, in Unix seconds (2000-01-01)."""


def pack(collected_files: CollectedFiles, name: str, folder: str) -> Parcel:
    """Write a project's files to an archive in the local cache, and return the archive and its cluster path.

    Args:
        collected_files: the files of the project.
        name: the start of the archive's file name, to which toolkit appends a part of the archive's digest.
        folder: the folder on the cluster to which toolkit copies the archive.

    Raises:
        BadInput: if toolkit cannot read a file.
    """
    store = cache_dir() / "projects"
    store.mkdir(parents=True, exist_ok=True, mode=0o700)
    _clear(store)
    with tempfile.NamedTemporaryFile(dir=store, prefix=".", delete=False) as part:
        try:
            with tarfile.open(fileobj=part, mode="w", format=tarfile.PAX_FORMAT) as archive:
                for file in collected_files.files:
                    _add(archive, file)
            part.flush()
            digest = hash_file(Path(part.name))
            target = store / f"{name}-{digest[:_SHORT]}.tar"
            Path(part.name).replace(target)
        except BaseException:
            Path(part.name).unlink(missing_ok=True)
            raise
    return Parcel(target, f"{folder}/{target.name}", digest)


def _add(archive: tarfile.TarFile, file: File) -> None:
    entry = tarfile.TarInfo(file.path)
    entry.mode = 0o755 if file.executable else 0o644
    entry.mtime = MOMENT
    try:
        with file.source.open("rb") as content:
            entry.size = os.fstat(content.fileno()).st_size
            archive.addfile(entry, content)
    except OSError as error:
        raise BadInput(
            f"{file.source}: {error.strerror or error}",
            fix="make the file readable, or add the file to `.toolkitignore`",
        ) from error


def _clear(store: Path) -> None:
    """Delete archives in the cache that are older than a week."""
    for old in store.iterdir():
        try:
            if time.time() - old.stat().st_mtime > _KEPT_SECONDS:
                old.unlink()
        except OSError:
            continue
