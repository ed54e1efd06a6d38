"""Compare the files of an image with its lock and its manifest, without starting the image."""

import base64
import binascii
import csv
import io
import posixpath
import re
from collections.abc import Iterator, Mapping

from toolkit.image.files import tree as files
from toolkit.image.files.contents import hash_content, regular
from toolkit.image.files.tree import FileTree
from toolkit.image.software.manifest import MANIFEST_PATH, FileHashes
from toolkit.image.software.packages import debian
from toolkit.model.facts import ImageFacts
from toolkit.model.lock import PYTHON_PACKAGES, Lock
from toolkit.model.solution import Component
from toolkit.model.verified import Check, CheckName
from toolkit.versions import is_same_version

_SITES = ("/opt/toolkit/venv/lib/python3*/site-packages", "/opt/toolkit/venv/lib/python3*/dist-packages")
_RECORD = 8 << 20
_OWN = "/opt"
"""The image folder into which the build installs everything except Debian packages."""
_SHOWN = 20
_COMPARED: tuple[Component, ...] = (
    *("python", "openmpi", "mpich", "pmix", "ucx", "mpi4py", "tensorflow", "torch", "horovod", "nccl"),
)
"""The components whose versions toolkit compares: toolkit can find their exact versions in an image."""


def packages(tree: FileTree, lock: Lock) -> Check:
    """Compare the image's Debian packages with the lock.

    The check fails if a locked package is missing or has another version. The check also fails if the image
    has packages that the lock does not list, unless the base image is a published image.
    """
    wanted = {file.name: file.version for file in (*lock.base.packages, *lock.run.debian)}
    installed = debian(tree)
    wrong = [
        f"{name}: the lock has {version}, the image has {installed.get(name, 'none')}"
        for name, version in sorted(wanted.items())
        if installed.get(name) != version
    ]
    # The lock names a published base image by its digest, so it does not list the packages of this image.
    more = [] if lock.base.published else sorted(set(installed) - set(wanted))
    wrong += [f"{name} {installed[name]} is in the image but not in the lock" for name in more]
    return _check("packages", wrong, f"{len(wanted)} Debian packages have the locked versions")


def wheels(tree: FileTree, lock: Lock, manifest: FileHashes | None, hashes: Mapping[str, str]) -> Check:
    """Compare the image's wheels with the lock, and the files of each wheel with the hashes in its RECORD.

    ``hashes`` is the result of :func:`hash_files`. ``manifest`` says which files of wheels the build changed,
    and how many files the build removed. Without a manifest, toolkit does not compare files, because it
    cannot find out whether the build changed a file or the file is damaged.
    """
    installed = _installed_wheels(tree)
    compiled = [f for f in (*lock.run.sources, *lock.build.sources) if _name(f.name) in PYTHON_PACKAGES]
    wanted = {_name(file.name): file.version for file in (*lock.run.wheels, *compiled)}
    wrong = [
        f"{name}: the lock has {version}, the image has {installed[name][0] if name in installed else 'none'}"
        for name, version in sorted(wanted.items())
        if name not in installed or not is_same_version(installed[name][0], version)
    ]
    wrong += [
        f"{n} {v} is in the image but not in the lock"
        for n, (v, _) in sorted(installed.items())
        if n not in wanted
    ]
    detail = f"{len(wanted)} wheels have the locked versions"
    if manifest is None:
        return _check(
            "wheels",
            wrong,
            f"{detail}; toolkit did not compare the wheels' files, because the image has no {MANIFEST_PATH}",
        )
    for name, (version, folder) in sorted(installed.items()):
        wrong += _differing_files(f"{name} {version}", tuple(_record(tree, folder)), folder, manifest, hashes)
    number = len(manifest.changed)
    left = f", except {number} file{'s' if number > 1 else ''} that the build changed" if number else ""
    return _check("wheels", wrong, f"{detail}, and their files match the wheels' hashes{left}")


def _differing_files(
    wheel: str,
    record: tuple[tuple[str, str], ...],
    folder: str,
    manifest: FileHashes,
    hashes: Mapping[str, str],
) -> Iterator[str]:
    """Yield a message for each file that differs from the wheel's RECORD and that the build did not change.

    If the number of missing files differs from the number of files that the build removed, yield a message.

    Args:
        wheel: the name and version of the wheel, for the messages.
        record: the path and the SHA-256 of each file in the wheel's RECORD.
        folder: the dist-info folder of the wheel.
        manifest: says which files the build changed, and how many files of each wheel the build removed.
        hashes: the SHA-256 of the image's files, by path.
    """
    changed = set(manifest.changed)
    for path, digest in record:
        if hashes.get(path, digest) != digest and path not in changed:
            yield f"{path} differs from the file in the wheel {wheel}"
    missing = sum(path not in hashes for path, _ in record)
    left_out = manifest.gone.get(posixpath.basename(folder).removesuffix(".dist-info"), 0)
    if missing != left_out:
        yield (
            f"{wheel}: {missing} of its files are missing, but the image's manifest says that the build "
            f"removed {left_out}"
        )


def contents(manifest: FileHashes, hashes: Mapping[str, str], manifest_path: str) -> Check:
    """Compare each file with its hash in the manifest, and find files in /opt that the manifest lacks.

    ``hashes`` is the result of :func:`hash_files`. ``manifest_path`` is the path of the manifest; the
    manifest does not list itself.
    """
    wrong = [
        f"{path} {'has changed since the build' if hashes.get(path) else 'was removed since the build'}"
        for path, digest in sorted(manifest.files.items())
        if hashes.get(path, "") != digest
    ]
    more = sorted(
        p for p in hashes if p.startswith(f"{_OWN}/") and p not in manifest.files and p != manifest_path
    )
    wrong += [f"{path} was added since the build" for path in more]
    return _check("files", wrong, f"{len(manifest.files)} files are unchanged since the build")


def versions(facts: ImageFacts, lock: Lock) -> Check:
    """Compare the versions of components, such as MPI and PyTorch, in the image and in the lock."""
    installed = facts.component_versions()
    chosen = {name: lock.solution.versions[name] for name in _COMPARED if name in lock.solution.versions}
    wrong = [
        f"{name}: the lock has {version}, the image has {installed.get(name, 'none')}"
        for name, version in chosen.items()
        if not _has_version(installed.get(name, ""), version)
    ]
    detail = ", ".join(f"{name} {installed[name]}" for name in chosen if name in installed)
    return _check(
        "versions", wrong, detail or "the lock names no component whose version toolkit can find in an image"
    )


def hash_files(tree: FileTree, manifest: FileHashes | None) -> dict[str, str]:
    """Return the SHA-256 of each file in /opt, and of each file that the manifest lists, by path."""
    hashes = {path: hash_content(tree, path) for path in regular(tree, _OWN)}
    for path in sorted(manifest.files) if manifest else ():
        if path not in hashes and (digest := hash_content(tree, path)):
            hashes[path] = digest
    return hashes


def _has_version(version: str, locked_version: str) -> bool:
    # For the base image's Python, the lock has a version such as 3.11. The image may have 3.11.2.
    return is_same_version(version, locked_version) or version.startswith(f"{locked_version}.")


def _installed_wheels(tree: FileTree) -> dict[str, tuple[str, str]]:
    """Return the version and the dist-info folder of each wheel in the virtual environment, by name."""
    wheels_by_name = {}
    for site in _SITES:
        for folder in files.glob(tree, f"{site}/*.dist-info"):
            name, _, version = posixpath.basename(folder).removesuffix(".dist-info").rpartition("-")
            if name:
                wheels_by_name[_name(name)] = (version, files.resolve(tree, folder) or folder)
    return wheels_by_name


def _record(tree: FileTree, folder: str) -> Iterator[tuple[str, str]]:
    """Yield the path and SHA-256 of each file in a wheel's RECORD (PyPA: recording-installed-packages).

    If the RECORD is damaged, yield its path with a text that is not a SHA-256, so that the check fails.
    """
    text = files.text(tree, f"{folder}/RECORD", _RECORD) or ""
    site = posixpath.dirname(folder)
    try:
        for row in csv.reader(io.StringIO(text)):
            if len(row) > 1 and row[1].startswith("sha256="):
                coded = row[1].removeprefix("sha256=")
                digest = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4))
                yield posixpath.normpath(posixpath.join(site, row[0])), digest.hex()
    except (csv.Error, binascii.Error, ValueError):
        yield f"{folder}/RECORD", "cannot be read"


def _name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _check(name: CheckName, faults: list[str], detail: str) -> Check:
    if not faults:
        return Check(name=name, outcome="ok", told=detail)
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    return Check(name=name, outcome="failed", told=f"{faults[0]}{more}", detail=tuple(faults[:_SHOWN]))
