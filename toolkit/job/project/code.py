"""The program of a user's job: its command, its files, its project folder and its start folder."""

import contextlib
import os
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from toolkit.errors import BadInput
from toolkit.folders import has_file, has_folder, is_below, is_system
from toolkit.job.project.collect import CollectedFiles, collect
from toolkit.job.project.pack import pack
from toolkit.job.project.roots import root_of
from toolkit.job.request.flags import Flags
from toolkit.launch.request.checks import as_name
from toolkit.launch.request.specify import JobPaths
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell
from toolkit.program.command import CommandFacts, read_command
from toolkit.program.script.paths import absolute
from toolkit.run.stage import Parcel
from toolkit.runtime import apptainer
from toolkit.units import format_size

_MOST_LINKS = 20
"""The maximum number of paths that toolkit mounts from outside the project, such as the targets of links."""
COPY = "project"
"""The subfolder of a run's folder into which the job unpacks the copied project."""


@dataclass(frozen=True, slots=True)
class Code:
    """The command of a user's job, with facts about its program, its project folder, and its start folder."""

    words: tuple[str, ...]
    facts: CommandFacts
    root: Path
    start: Path

    @property
    def name(self) -> str:
        """The name of the program in messages: its script, or the first three words of the command."""
        at = self.facts.script
        return posixpath.basename(self.words[at]) if at is not None else " ".join(self.words[:3])

    @property
    def arguments(self) -> tuple[str, ...] | None:
        """The words after the command's Python script or module; ``None`` if the command names neither."""
        if self.facts.script is not None:
            return self.words[self.facts.script + 1 :]
        python = posixpath.basename(self.facts.program).startswith("python")
        place = next((n for n, word in enumerate(self.words) if word == "-m"), None)
        return self.words[place + 2 :] if python and self.facts.facts and place is not None else None

    def shorten(self, file: str) -> str:
        """Return a file's name for messages, relative to the start folder if the file is in this folder."""
        return file.removeprefix(f"{self.start}/")


def code_of(job: JobFile, flags: Flags) -> Code | None:
    """Return the program of a job's command. toolkit looks for the program's files in the current folder.

    The result is ``None`` for a trainer, and for a job without a command.

    Raises:
        BadInput: if ``--project`` is not a folder, or does not contain the script.
    """
    if job.trainer is not None or not job.command:
        return None
    folder = Path.cwd()
    facts = read_command(job.command, folder, python_path=(job.env or {}).get("PYTHONPATH") or "")
    script = folder / job.command[facts.script] if facts.script is not None else None
    if script is not None and not (has_file(script) or has_folder(script)):
        script = None
    root = root_of(folder, script, flags.project, _read_files(facts, folder))
    start = folder if is_below(str(folder), str(root)) else root
    return Code(tuple(job.command), facts, root, start)


def _read_files(facts: CommandFacts, start: Path) -> Iterator[Path]:
    """Yield the Python files of a program, and the existing files that the program certainly reads.

    The function omits files that the program reads by an absolute path, unless the path is derived from
    ``__file__``.
    """
    for script in facts.facts:
        for file in script.files:
            yield file.parent.resolve() / file.name
        for need in script.needs:
            path = absolute(need.text, start)
            relative = need.kind == "file" and not posixpath.isabs(need.text)
            if (relative or need.kind == "beside") and has_file(path):
                yield path.parent.resolve() / path.name


def start_here(code: Code | None, job: JobFile) -> tuple[str, tuple[str, ...]]:
    """Return the folder in which a job on this machine starts, and the bind mounts that the job needs.

    A job starts in the current folder, as with sbatch. If the current folder is a system folder, the returned
    folder is an empty string, because the container has its own system folders. For a trainer, and for a job
    with a working directory, both results are empty.

    The binds include the current folder, the project folder, and the targets of symbolic links in these two
    folders. If the program reads files outside both folders, the binds also include the folders of these
    files.
    """
    if code is None or job.workdir:
        return "", ()
    folder = str(Path.cwd())
    folders = (folder, str(code.root))
    elsewhere = (*_link_targets(folders), *(str(f.parent) for f in _read_files(code.facts, code.start)))
    outside = [path for path in elsewhere if not any(is_below(path, folder) for folder in folders)]
    wanted = [path for path in (*folders, *outside[:_MOST_LINKS]) if path != "/" and not is_system(path)]
    binds = tuple(apptainer.bind(path) for path in dict.fromkeys(wanted))
    return (folder if folder in wanted else ""), binds


def _link_targets(folders: Iterable[str]) -> Iterator[str]:
    """Yield the existing targets of the symbolic links in the given folders."""
    for folder in dict.fromkeys(folders):
        with contextlib.suppress(OSError):
            for entry in sorted(os.scandir(folder), key=lambda item: item.name):
                target = os.path.realpath(entry.path) if entry.is_symlink() else ""
                if target and Path(target).exists():
                    yield target


@dataclass(frozen=True, slots=True)
class CopiedProject:
    """A project to copy: its archive, the command on the cluster, and the command's start folder.

    ``start`` is relative to the run's folder.
    """

    parcel: Parcel
    command: tuple[str, ...]
    start: str


def copy_project(code: Code | None, flags: Flags, base: str, tell: Tell) -> CopiedProject | None:
    """Pack the project of a job into an archive, and return the archive and the command on the cluster.

    The result is ``None`` for a trainer and with ``--no-sync``. Without ``--project``, the result is also
    ``None`` if the command needs no file of the project.

    Args:
        code: the program of the job.
        flags: the options; ``--no-sync`` prevents the copy, and ``--project`` names the project folder.
        base: the folder on the cluster for images, data, projects and runs.
        tell: prints the project's size, and the names of skipped files that may contain secrets.

    Raises:
        BadInput: if the project is too large, if it is the home folder or ``/``, or if the program needs a
            file that toolkit does not copy.
    """
    if code is None or not flags.sync or not (flags.project or any(_named_files(code))):
        return None
    if code.root in {Path.home(), Path("/")}:
        raise BadInput(
            f"{code.root}: toolkit copies neither your home folder nor / as a project",
            fix="move the script to a separate folder, name a smaller folder with `--project DIR`, or give "
            "`--no-sync`",
        )
    collected_files = collect(code.root)
    _check_inside(code)
    _check_ignored(code, collected_files)
    parcel = pack(collected_files, as_name(code.root.name or "project"), posixpath.join(base, "projects"))
    tell.step(f"Project {code.root}: {len(collected_files.files)} files, {format_size(collected_files.size)}")
    if collected_files.secrets:
        tell.notice(f"skipped files that may contain secrets: {', '.join(collected_files.secrets[:5])}")
    inner = os.path.relpath(code.start, code.root)
    return CopiedProject(parcel, _relocated_command(code), posixpath.normpath(posixpath.join(COPY, inner)))


def with_project(job: JobFile, project: CopiedProject | None) -> JobFile:
    """Return the job with the paths of the copied project in its command; unchanged without a project."""
    return msgspec.structs.replace(job, command=project.command) if project else job


def project_parcels(project: CopiedProject | None) -> tuple[Parcel, ...]:
    """Return a tuple that contains the project's archive; the tuple is empty if the job has no project."""
    return (project.parcel,) if project else ()


def with_start_folder(
    places: JobPaths, code: Code | None, job: JobFile, project: CopiedProject | None, *, remote: bool
) -> JobPaths:
    """Return the job's paths together with the folder in which the job's command starts."""
    if project is not None:
        return replace(places, start=posixpath.join(places.directory, project.start))
    if remote:
        return places
    start, mounts = start_here(code, job)
    return replace(places, start=start, mounts=mounts)


def _named_files(code: Code) -> Iterator[Path]:
    """Yield the project files that a command names, or that its program imports or reads."""
    yield from (file for file in _read_files(code.facts, code.start) if _is_inside(file, code.root))
    for word in code.words:
        for part in (word, word.partition("=")[2]):
            path = Path(part).absolute()
            if part and not part.startswith("-") and "\n" not in part and _is_inside(path, code.root):
                yield path


def _is_inside(path: Path, root: Path) -> bool:
    try:
        real = path.resolve()
        return real != root and is_below(str(real), str(root)) and real.exists()
    except (OSError, ValueError):
        return False


def _check_inside(code: Code) -> None:
    """Raise an error if the program uses files outside its project, because toolkit does not copy these
    files.

    Raises:
        BadInput: if the program uses a file outside its project; the error names the file, and a folder that
            contains the file and the project.
    """
    files = [file for file in _read_files(code.facts, code.start) if not is_below(str(file), str(code.root))]
    if files:
        whole = os.path.commonpath([str(code.root), *map(str, files)])
        raise BadInput(
            f"{os.path.relpath(files[0], code.start)} is not copied to the cluster: "
            f"the file is outside the project folder {code.root}",
            fix=f"give `--project {os.path.relpath(whole)}`, the folder that contains the file and the "
            "project",
        )


def _check_ignored(code: Code, collected_files: CollectedFiles) -> None:
    for path in _named_files(code):
        inner = os.path.relpath(path.resolve(), code.root.resolve())
        for name in (*collected_files.ignored_paths, *collected_files.secrets):
            if is_below(inner, name):
                why = (
                    "the file may contain secrets"
                    if name in collected_files.secrets
                    else "an ignore pattern of the project or of toolkit matches the file"
                )
                raise BadInput(
                    f"{inner} is not copied to the cluster: {why}",
                    fix=f"to copy {inner}, add this line to {code.root / '.toolkitignore'}: !{name}",
                )


def _relocated_command(code: Code) -> tuple[str, ...]:
    """Return the command with project paths relative to the command's start folder."""
    words = []
    for word in code.words:
        path = Path(word).absolute()
        elsewhere = word.startswith("/") or Path.cwd() != code.start
        inside = elsewhere and not word.startswith("-") and _is_inside(path, code.root)
        words.append(os.path.relpath(path, code.start) if inside else word)
    return tuple(words)
