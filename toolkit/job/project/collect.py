"""List the project files that toolkit copies to another machine for a job."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.folders import is_below
from toolkit.image.envs.lockfile import is_env
from toolkit.job.project.ignore import Pattern, decision, patterns
from toolkit.units import format_size

IGNORE_FILES = (".gitignore", ".toolkitignore")
"""The names of ignore files; ``.toolkitignore`` overrides ``.gitignore``."""
LARGEST = 200 * 10**6
"""The maximum size, in bytes, of a project that toolkit copies."""

_MOST_FILES = 20_000
_SHOWN = 5

_NEVER = patterns(
    """
.git/
.hg/
.svn/
__pycache__/
*.pyc
.venv/
venv/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.ipynb_checkpoints/
.tox/
.nox/
node_modules/
.DS_Store
*.sif
*.sqfs
*.sqsh
*.squashfs
"""
)
"""Patterns of files that toolkit does not copy with a project: version-control data, files that programs can
create again, and container images."""

_SECRET = patterns(
    """
.env
.env.*
*.env
.envrc
.netrc
.pypirc
.npmrc
.git-credentials
.ssh/
.gnupg/
.aws/
.azure/
.kube/
.docker/
id_rsa*
id_dsa*
id_ecdsa*
id_ed25519*
*.pem
*.key
*.p12
*.pfx
*.jks
*.keystore
*.kdbx
*.ppk
*.gpg
credentials
credentials.json
service-account*.json
secrets.*
*.secret
"""
)
"""Patterns of files that usually contain secrets; toolkit copies such a file only if ``.toolkitignore``
contains ``!NAME``."""


@dataclass(frozen=True, slots=True)
class File:
    """A project file: its source path, its path in the project, its size in bytes, and its executable bit."""

    source: Path
    path: str
    size: int
    executable: bool


@dataclass(slots=True)
class CollectedFiles:
    """The files of a project, sorted into files that toolkit copies and paths that toolkit does not copy.

    ``files`` lists the files that toolkit copies; toolkit does not copy the paths in the other three lists.
    ``secrets`` lists files and folders that may contain secrets, and ``ignored_paths`` lists all other paths
    that match an ignore pattern. ``skipped_links`` lists broken links, links to folders outside the project,
    and links that form a loop.
    """

    root: Path
    files: list[File] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    ignored_paths: list[str] = field(default_factory=list)
    skipped_links: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The total size of all files in bytes."""
        return sum(file.size for file in self.files)


def collect(root: Path, size_limit: int = LARGEST) -> CollectedFiles:
    """Return the files below ``root`` that toolkit copies for a job, sorted by path.

    Raises:
        BadInput: if the project has too many files, if the files have more than ``size_limit`` bytes in
            total, or if toolkit cannot read a folder. If the project has too many bytes, the error lists the
            largest files.
    """
    collected_files = CollectedFiles(root)
    for file in _walk(collected_files, root, "", _Rules()):
        collected_files.files.append(file)
        if len(collected_files.files) > _MOST_FILES:
            raise BadInput(
                f"{root}: the project has more than {_MOST_FILES:,} files",
                fix=_ways(root),
                detail=_folders(collected_files.files),
            )
    if collected_files.size > size_limit:
        raise _too_large(collected_files, size_limit)
    collected_files.files.sort(key=lambda file: file.path)
    return collected_files


def _too_large(collected_files: CollectedFiles, size_limit: int) -> BadInput:
    largest = sorted(collected_files.files, key=lambda file: file.size, reverse=True)[:_SHOWN]
    return BadInput(
        f"{collected_files.root}: the project has {format_size(collected_files.size)}; "
        f"toolkit copies at most {format_size(size_limit)}",
        fix=_ways(collected_files.root),
        detail=[
            "its largest files:",
            *(f"    {format_size(file.size):>10}  {file.path}" for file in largest),
        ],
    )


def _ways(root: Path) -> str:
    return (
        f"write the names of data files into {root / IGNORE_FILES[1]}, and copy these files to the cluster "
        "with scp; or give `--project DIR` for a smaller folder, or `--no-sync` if the cluster already has "
        "the project"
    )


def _folders(files: list[File]) -> list[str]:
    counts: dict[str, int] = {}
    for file in files:
        first = file.path.partition("/")[0]
        counts[first] = counts.get(first, 0) + 1
    most = sorted(counts.items(), key=lambda item: item[1], reverse=True)[:_SHOWN]
    return ["most files are in:", *(f"    {count:8,}  {name}" for name, count in most)]


@dataclass(frozen=True, slots=True)
class _Rules:
    """The ignore patterns that apply in a folder.

    Each entry contains the patterns of one ignore file, and the path of this file's folder in the project.

    Patterns in ``.toolkitignore`` override toolkit's built-in patterns, and the built-in patterns override
    ``.gitignore``.
    """

    gitignore: tuple[tuple[tuple[Pattern, ...], str], ...] = ()
    toolkitignore: tuple[tuple[tuple[Pattern, ...], str], ...] = ()

    def below(self, folder: Path, path: str) -> "_Rules":
        """Return a subfolder's ignore rules: its parent's rules, and the patterns in its ignore files."""
        git, own = ((_patterns_in(folder / name), path) for name in IGNORE_FILES)
        return _Rules((*self.gitignore, git), (*self.toolkitignore, own))

    def ignore(self, path: str, *, folder: bool) -> bool:
        """Return whether toolkit skips a path. The last matching pattern decides."""
        last = False
        for rules, base in (*self.gitignore, (_NEVER, ""), (_SECRET, ""), *self.toolkitignore):
            ignored = decision(rules, path.removeprefix(base), folder=folder)
            last = last if ignored is None else ignored
        return last


def _walk(
    collected_files: CollectedFiles,
    folder: Path,
    path: str,
    parent_rules: _Rules,
    link_targets: frozenset[str] = frozenset(),
) -> Iterator[File]:
    """Yield the files below ``folder``. ``path`` is the path of this folder in the project.

    ``parent_rules`` are the ignore rules of the parent folder. ``link_targets`` contains the targets of the
    links through which the function reached this folder; the function uses these targets to detect loops.
    """
    rules = parent_rules.below(folder, path)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror}", fix="give a folder that you can read") from error
    for entry in entries:
        inner = f"{path}{entry.name}"
        is_folder = entry.is_dir(follow_symlinks=False)
        if rules.ignore(inner, folder=is_folder):
            secret = decision(_SECRET, inner, folder=is_folder) and not is_env(Path(entry.path))
            (collected_files.secrets if secret else collected_files.ignored_paths).append(inner)
        elif is_folder:
            yield from _walk(collected_files, Path(entry.path), f"{inner}/", rules, link_targets)
        elif target := _inside(collected_files, entry, link_targets):
            yield from _walk(collected_files, Path(entry.path), f"{inner}/", rules, link_targets | {target})
        elif (file := _file(collected_files, Path(entry.path), inner)) is not None:
            yield file


def _inside(collected_files: CollectedFiles, entry: os.DirEntry[str], link_targets: frozenset[str]) -> str:
    """Return the folder to which a link points, if the folder is in the project.

    The result is empty if the entry is not a link to a folder, if the target is outside the project, or if
    the link forms a loop.
    """
    if not entry.is_symlink() or not entry.is_dir():
        return ""
    target, around = os.path.realpath(entry.path), os.path.realpath(Path(entry.path).parent)
    inside = is_below(target, os.path.realpath(collected_files.root))
    return target if inside and target not in link_targets and not is_below(around, target) else ""


def _file(collected_files: CollectedFiles, source: Path, path: str) -> File | None:
    """Return the file at a path, or the file to which a link points; ``None`` for any other path.

    The function adds a broken link, or a link to a folder, to the list ``skipped_links``.
    """
    try:
        state = source.stat()
    except OSError:
        collected_files.skipped_links.append(path)
        return None
    if stat.S_ISDIR(state.st_mode):
        collected_files.skipped_links.append(path)
        return None
    if not stat.S_ISREG(state.st_mode):
        return None
    return File(source, path, state.st_size, bool(state.st_mode & stat.S_IXUSR))


def _patterns_in(file: Path) -> tuple[Pattern, ...]:
    try:
        return patterns(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ()
