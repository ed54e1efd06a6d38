"""Read a Python program and the project files that it imports."""

import ast
import sys
import tokenize
import warnings
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from zipfile import is_zipfile

from toolkit.knowledge.joins import joins
from toolkit.program.script.facts import Import, Need, ScriptFacts, SyntaxFault, Undefined
from toolkit.program.script.imports import imports_of
from toolkit.program.script.joins import ModuleJoins, found_in
from toolkit.program.script.names import Names, names_of
from toolkit.program.script.needs import needs_of, strings_of
from toolkit.program.script.options import ProgramOptions, options_of
from toolkit.program.script.paths import Paths, absolute, search_path
from toolkit.program.script.project import Project, project_of
from toolkit.program.script.rendezvous import rendezvous_in
from toolkit.program.script.undefined import undefined_names

_MOST_FILES = 500
"""Maximum number of project files that toolkit reads. If a program imports more project files, toolkit does
not know whether the program connects its ranks.
"""
_LONGEST = 4 << 20


@dataclass(slots=True)
class _Reading:
    project: Project
    module_joins: ModuleJoins = field(default_factory=ModuleJoins)
    imports: list[Import] = field(default_factory=list)
    missing: list[Import] = field(default_factory=list)
    faults: list[SyntaxFault] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    undefined: list[Undefined] = field(default_factory=list)
    says: dict[str, str] = field(default_factory=dict)
    start: Path = Path()
    open_path: bool = False
    needs: list[Need] = field(default_factory=list)
    relative: list[Import] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)
    options: ProgramOptions | None = None


def read_script(
    path: Path,
    project_files: Iterable[Path] | None = None,
    roots: Iterable[Path] = (),
    start: Path | None = None,
) -> ScriptFacts:
    """Return the facts about a Python program from its text; toolkit does not run the program.

    Args:
        path: the file that Python runs.
        project_files: the files of the project; by default every file that an import can load.
        roots: module folders in addition to the script's folder, such as the folders in ``PYTHONPATH``.
        start: the folder in which the program starts; by default the current folder.
    """
    if path.suffix == ".ipynb":
        return ScriptFacts(path, unknown=(f"{path.name} is a notebook",))
    if is_zipfile(path):
        return ScriptFacts(path, unknown=(f"{path.name} is an archive",), open_path=True)
    return _read([path], project_of((path.parent, *roots), project_files), start)


def read_text(text: str, name: str = "-c", roots: Sequence[Path] = ()) -> ScriptFacts:
    """Return the facts about a program given as text, such as the text after ``python -c``.

    ``roots`` are the module folders. The program starts in the first module folder.
    """
    reading = _Reading(project_of(roots, None), start=next(iter(roots), Path()))
    later = deque(_module(reading, Path(name), text))
    trainer = reading.module_joins.trainer
    _read_imported(reading, later)
    return _finish_facts(reading, Path(name), trainer=trainer)


def read_module(
    name: str, root: Path, project_files: Iterable[Path] | None = None, roots: Iterable[Path] = ()
) -> ScriptFacts | None:
    """Return the facts about the module that ``python -m NAME`` runs in ``root``.

    Return ``None`` if the project does not have this module. ``root`` is the folder in which the program
    starts. ``roots`` are module folders in addition to ``root``, such as the folders in ``PYTHONPATH``.
    """
    project = project_of((root, *roots), project_files)
    main = project.modules(f"{name}.__main__")
    files = main if main and main[-1].name == "__main__.py" else project.modules(name)
    return _read([files[-1], *files[:-1]], project, root) if files else None


def _read(paths: list[Path], project: Project, start: Path | None) -> ScriptFacts:
    reading = _Reading(project, start=start or Path())
    later: deque[Path] = deque()
    for path in paths:
        if (text := _text(reading, path)) is not None:
            later.extend(_module(reading, path, text))
    trainer = reading.module_joins.trainer
    _read_imported(reading, later)
    return _finish_facts(reading, paths[0], trainer=trainer)


def _read_imported(reading: _Reading, later_files: deque[Path]) -> None:
    """Read the files in ``later_files``, and all project files that these files import, directly or
    indirectly.
    """
    while later_files:
        path = later_files.popleft()
        if path in reading.files:
            continue
        if len(reading.files) >= _MOST_FILES:
            reading.unknown.append(f"the program imports more than {_MOST_FILES} files of its project")
            break
        if (text := _text(reading, path)) is not None:
            later_files.extend(_module(reading, path, text))
        if not later_files:
            later_files.extend(_found_later(reading))


def _found_later(reading: _Reading) -> Iterator[Path]:
    """Yield the files of modules that toolkit first took for modules outside the project.

    When toolkit read the import of such a module, it did not know the module's folder. A file that toolkit
    read later adds this folder to ``sys.path``.
    """
    held = [one for one in reading.imports if reading.project.holds(one.module)]
    reading.imports = [one for one in reading.imports if one not in held]
    for one in held:
        yield from _imported_files(reading, reading.files[0], one)


def _text(reading: _Reading, path: Path) -> str | None:
    """Return the text of a file, decoded with the encoding that the file declares. Return ``None`` if the
    file is too long, or if toolkit cannot read or decode the file.
    """
    try:
        content = path.read_bytes()[: _LONGEST + 1]
        if len(content) > _LONGEST:
            reading.unknown.append(f"{path.name} is longer than {_LONGEST >> 20} MB")
            return None
        encoding = tokenize.detect_encoding(BytesIO(content).readline)[0]
        return content.decode(encoding)
    except OSError as error:
        reading.unknown.append(f"{path.name} cannot be read: {error.strerror}")
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        reading.faults.append(SyntaxFault(str(path), 1, f"{error}"))
    return None


def _module(reading: _Reading, path: Path, text: str) -> Iterator[Path]:
    """Read one module, and yield the project files that it imports."""
    reading.files.append(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text, str(path))
        names = names_of(tree)
        found = found_in(tree, names)
        reading.says = rendezvous_in(tree, names) | reading.says
        paths = Paths(tree, names, str(path.absolute()))
        _search_path(reading, tree, names, paths, path)
        if path == reading.files[0]:
            reading.needs += needs_of(tree, names, paths, str(path))
            reading.options = options_of(tree, names)
        reading.words.update(strings_of(tree))
        imports = list(imports_of(tree, names, str(path)))
        names_without = [Undefined(name, str(path), line, hint) for name, line, hint in undefined_names(tree)]
    except SyntaxError as error:
        reading.faults.append(_fault(path, error))
        return
    except (RecursionError, ValueError, MemoryError) as error:
        reading.unknown.append(f"{path.name} cannot be parsed: {error}")
        return
    reading.module_joins.joins |= found.joins
    reading.module_joins.ranks |= found.ranks
    reading.module_joins.trainer |= found.trainer
    reading.undefined += names_without
    reading.unknown += [f"{path.name}, {what}" for what in sorted(found.hidden)]
    for one in imports:
        yield from _imported_files(reading, path, one)


def _search_path(reading: _Reading, tree: ast.Module, names: Names, paths: Paths, path: Path) -> None:
    """If a module adds folders to ``sys.path``, add these folders to the project's module folders."""
    for line, folder in search_path(tree, names, paths):
        if folder is None:
            reading.open_path = True
            why = "toolkit cannot evaluate this change of sys.path"
            reading.unknown.append(f"{path.name}, line {line}: {why}")
        else:
            reading.project = reading.project.with_root(absolute(folder, reading.start.absolute()))


def _fault(path: Path, error: SyntaxError) -> SyntaxFault:
    return SyntaxFault(str(path), error.lineno or 1, error.msg, (error.text or "").strip("\n"))


def _imported_files(reading: _Reading, path: Path, import_: Import) -> Iterator[Path]:
    name: str | None = import_.module
    if import_.module.startswith("."):
        if path == reading.files[0]:
            reading.relative.append(import_)
        name = reading.project.resolve_relative(import_.module, path)
        if name is None:
            reading.missing.append(import_)
            return
        import_ = replace(import_, module=name)
    if name and not reading.project.holds(name):
        reading.imports.append(import_)
        return
    found = reading.project.modules(name) if name else []
    yield from found
    members = [reading.project.modules(f"{name}.{member}".lstrip(".")) for member in import_.names]
    for files in members:
        yield from files
    if name and not found and not any(members):
        reading.missing.append(import_)


def _finish_facts(reading: _Reading, path: Path, *, trainer: bool) -> ScriptFacts:
    found = reading.module_joins
    known = joins()
    outside = sorted(set(reading.imports))
    joined = set(found.joins)
    if "torch" in {one.package for one in outside} and found.ranks & set(known.ranks.torchrun):
        joined.add("torchrun")
    unknown = [*reading.unknown, *_strangers(outside)]
    if found.ranks:
        unknown.append(f"the script uses variables that launchers set: {', '.join(sorted(found.ranks))}")
    serial = None if unknown or reading.faults else True
    return ScriptFacts(
        path,
        frozenset(joined),
        False if joined or trainer else serial,
        () if joined or trainer else tuple(unknown),
        tuple(outside),
        tuple(sorted(set(reading.missing))),
        tuple(reading.faults),
        tuple(reading.files),
        trainer,
        tuple(reading.undefined),
        bool(found.ranks),
        reading.open_path,
        tuple(reading.needs),
        tuple(one for one in reading.relative if not one.optional),
        frozenset(word for word, count in reading.words.items() if count > 1),
        reading.options,
        tuple(sorted(reading.says.items())),
    )


def _strangers(imports: Iterable[Import]) -> list[str]:
    """Return a message for each imported package that toolkit does not know and that may connect ranks."""
    plain = {*joins().plain.packages, *sys.stdlib_module_names, "toolkit"}
    names = sorted({one.package for one in imports} - plain)
    return [f"toolkit does not know whether the package {name} connects the ranks" for name in names]
