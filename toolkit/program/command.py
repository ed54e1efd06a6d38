"""Find the Python program that a command runs, and how its ranks connect, without running the command."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.folders import has_file, has_folder
from toolkit.knowledge.joins import joins
from toolkit.program import shellwords
from toolkit.program.options import variables_of_options
from toolkit.program.script.facts import ScriptFacts
from toolkit.program.script.read import read_module, read_script, read_text

_PYTHON = re.compile(r"python(\d(\.\d+)?)?")
_SHELL_FILES = {".sh", ".bash"}
_TAKE_VALUE = {"-W", "-X", "--check-hash-based-pycs"}
_BEFORE = {"env", "exec", "time", "nice", "stdbuf"}
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_INLINE = re.compile(r"-\w*c")
_OWN_FOLDER = re.compile(r"dirname[\s\"{$(-]+(0|BASH_SOURCE)")
_PREPARES = re.compile(r"\bPYTHONPATH\b|\bactivate\b")
"""A pattern for words such as ``activate``. A shell script with such a word may change where Python finds
modules.
"""
_DEEPEST = 3
_LONGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """Facts about the program that a command starts.

    ``program`` is the program's name or path, such as ``python3``. ``script`` is the index of the Python file
    in the command's words, or ``None`` if no word is a Python file. ``facts`` contains the facts about each
    Python program that the command runs. ``joins``, ``serial`` and ``unknown`` have the same meaning as in
    :class:`toolkit.program.script.ScriptFacts`.
    """

    program: str
    script: int | None = None
    facts: tuple[ScriptFacts, ...] = ()
    joins: frozenset[str] = frozenset()
    serial: bool | None = None
    unknown: tuple[str, ...] = ()
    says: tuple[tuple[str, str], ...] = ()
    """Variables and arguments that set the rendezvous (where the ranks find each other), with their values,
    as in the field ``says`` of :class:`toolkit.program.script.ScriptFacts`. The arguments include the options
    of starters such as torchrun.
    """
    launcher: str = ""
    """The starter or launcher with which the command begins, such as ``torchrun``, or an empty string."""


@dataclass(frozen=True, slots=True)
class _Place:
    folder: Path
    files: frozenset[Path] | None
    depth: int = 0
    roots: tuple[Path, ...] = ()

    def script(self, path: Path) -> ScriptFacts:
        return read_script(path, self.files, self.roots, self.folder)


def read_command(
    words: Sequence[str], folder: Path, files: Iterable[Path] | None = None, python_path: str = ""
) -> CommandFacts:
    """Return the facts about the program that a command starts.

    Args:
        words: the command of one rank.
        folder: the folder on this machine in which the command starts.
        files: the files of the project; by default all files on this machine.
        python_path: the value of ``PYTHONPATH``.
    """
    chosen = None if files is None else frozenset(files)
    return _read(list(words), _Place(folder, chosen, roots=_roots(python_path, folder)))


def _roots(python_path: str, folder: Path) -> tuple[Path, ...]:
    return tuple(folder / part for part in python_path.split(":") if part)


def _read(words: list[str], place: _Place) -> CommandFacts:
    start = _start(words)
    for word in words[:start]:
        name, _, value = word.partition("=")
        if name == "PYTHONPATH":
            place = replace(place, roots=_roots(value, place.folder))
    if start >= len(words):
        return CommandFacts("", unknown=("the command is empty",))
    head, rest = posixpath.basename(words[start]), words[start + 1 :]
    if _PYTHON.fullmatch(head):
        return _python(words, start, place)
    if name := _launcher(head):
        return _of_launcher(head, name, words, start + 1, place)
    if head in shellwords.SHELLS:
        return _shell(head, rest, place)
    if words[start].endswith(".py") and has_file(place.folder / words[start]):
        return _of_script(words[start], start, place.script(place.folder / words[start]))
    if posixpath.splitext(head)[1] in _SHELL_FILES and has_file(place.folder / words[start]):
        return _shell(words[start], [words[start], *rest], place)
    return CommandFacts(words[start], unknown=(f"{head} is not a Python program",))


def _start(words: Sequence[str]) -> int:
    """Return the position of the program after ``env NAME=VALUE``, ``exec`` and similar words."""
    at = 0
    while at < len(words) and (words[at] in _BEFORE or _ASSIGNED.fullmatch(words[at])):
        at += 1
    return at


def _launcher(word: str) -> str:
    return next((row.name for row in joins().launcher if word in row.words), "")


def _python(words: list[str], start: int, place: _Place) -> CommandFacts:
    program, at = words[start], start + 1
    while at < len(words):
        word = words[at]
        if word in _TAKE_VALUE:
            at += 2
        elif word == "-m" or (word.startswith("-") and not word.startswith("--") and word.endswith("m")):
            return _module(words, program, at + 1, place)
        elif word == "-c":
            code = words[at + 1] if at + 1 < len(words) else ""
            return _of_script(program, None, read_text(code, roots=[place.folder, *place.roots]))
        elif word.startswith("-") and word != "-":
            at += 1
        else:
            return _file(program, words, at, place)
    return CommandFacts(program, unknown=("the command starts Python, but names no program",))


def _of_launcher(program: str, name: str, words: Sequence[str], position: int, place: _Place) -> CommandFacts:
    """Return the facts about a starter such as torchrun, and about the script that it starts.

    ``position`` is the index of the starter's first option in ``words``.
    """
    says = tuple(variables_of_options(name, words[position:]))
    found = CommandFacts(program, joins=frozenset({name}), serial=False, says=says, launcher=name)
    script = next((n for n, word in enumerate(words) if n >= position and word.endswith(".py")), None)
    if script is None or words[script].startswith("-"):
        return found
    started = _file(program, words, script, place)
    return replace(
        found,
        script=script,
        facts=started.facts,
        unknown=started.unknown,
        says=(*started.says, *says),
    )


def _module(words: list[str], program: str, position: int, place: _Place) -> CommandFacts:
    """Return the facts about ``python -m MODULE``; ``position`` is the index of the module's name in
    ``words``.
    """
    module = words[position] if position < len(words) else ""
    if launcher := _launcher(module):
        return _of_launcher(program, launcher, words, position + 1, place)
    facts = read_module(module, place.folder, place.files, place.roots) if module else None
    if facts is None:
        return CommandFacts(program, unknown=(f"the module {module} is not in the project",))
    return _of_script(program, None, facts)


def _file(program: str, words: Sequence[str], position: int, place: _Place) -> CommandFacts:
    path = place.folder / words[position]
    if words[position] == "-" or not (has_file(path) or has_folder(path)):
        return CommandFacts(program, position, unknown=(f"{words[position]} is not on this machine",))
    if path.is_dir():
        main = path / "__main__.py"
        if not main.is_file():
            return CommandFacts(
                program, position, unknown=(f"{words[position]} is a folder without __main__.py",)
            )
        path = main
    return _of_script(program, position, place.script(path))


def _of_script(program: str, position: int | None, facts: ScriptFacts) -> CommandFacts:
    return CommandFacts(program, position, (facts,), facts.joins, facts.serial, facts.unknown, facts.says)


def read_shell(path: Path) -> str | None:
    """Return the text of a shell script, or ``None`` if ``path`` is not a regular file or exceeds 1 MiB."""
    if not has_file(path) or path.stat().st_size > _LONGEST:
        return None
    return path.read_text("utf-8", "replace")


def _shell(head: str, arguments: Sequence[str], place: _Place) -> CommandFacts:
    """Return the facts about the commands in a shell script or in the text after ``-c``."""
    first = next((at for at, word in enumerate(arguments) if not word.startswith("-")), len(arguments))
    inline = any(_INLINE.fullmatch(word) for word in arguments[:first])
    named = arguments[first + inline : first + inline + 1]
    file = named[0] if named else head
    code = arguments[first] if inline and first < len(arguments) else None
    if code is None:
        code = read_shell(place.folder / file) if named else None
        if code is None:
            return CommandFacts(head, unknown=(f"{file} is not a shell script on this machine",))
    if place.depth >= _DEEPEST:
        return CommandFacts(head, unknown=(f"toolkit reads only {_DEEPEST} levels of nested shell scripts",))
    script = _ProjectShell(place, file, arguments[first + inline + 1 :])
    found = [_read(words, below) for words, below in script.commands(code)]
    if _PREPARES.search(code):
        found = [replace(one, facts=tuple(replace(f, open_path=True) for f in one.facts)) for one in found]
    return replace(
        _merge_commands(head, code, found), says=_shell_statements(script.exported_variables(), found)
    )


class _ProjectShell:
    """Read the commands of a shell script, and record how they change the variables and the working
    directory.
    """

    def __init__(self, place: _Place, path: str, arguments: Sequence[str]) -> None:
        self.place = replace(place, depth=place.depth + 1)
        self.start, self.path, self.arguments = place.folder, path, list(arguments)
        self.assigned: dict[str, str] = {}
        self.exports: set[str] = set()

    def commands(self, code: str) -> Iterator[tuple[list[str], _Place]]:
        """Yield the words of each command, with a :class:`_Place` that contains the command's working
        directory. Skip commands that only assign or export variables.

        If toolkit cannot evaluate a part of a word, yield the word as written in the script.
        """
        depth = 0
        for before, written in shellwords.commands(code):
            deeper, command = shellwords.blocks(written)
            depth = max(0, depth + deeper)
            words = [word for one in command for word in self._values(one)]
            if not words or self._sets(words, certain=not depth and before not in {"&&", "||", "|", "("}):
                continue
            if words[0] == "cd" and not depth:
                self._enter(words[1:2])
            yield words, self.place

    def exported_variables(self) -> dict[str, str]:
        """Return the exported variables with known values."""
        known = {name: value for name, value in self.assigned.items() if value not in {"", shellwords.UNTOLD}}
        return {name: value for name, value in known.items() if name in self.exports}

    def _values(self, word: str) -> Iterator[str]:
        for value in shellwords.values([word], self.path, self.arguments, self.assigned.get):
            yield word.strip('"') if shellwords.UNTOLD in value else value

    def _sets(self, words: list[str], *, certain: bool) -> bool:
        """Record the variables that a command sets or exports. Return False if the command is neither an
        assignment nor ``export``. ``certain`` is false if the script may skip the command.
        """
        exports = words[0] == "export"
        rest = words[1:] if exports else words
        if not all(_ASSIGNED.fullmatch(word) or exports for word in rest):
            return False
        for word in rest:
            name, equals, value = word.partition("=")
            if equals:
                self.assigned[name] = value if certain and not {"$", "`"} & set(value) else shellwords.UNTOLD
            self.exports |= {name} if exports else set()
        return True

    def _enter(self, folder: Sequence[str]) -> None:
        """Change the working directory as ``cd`` does, if the folder exists on this machine.

        ``$(dirname "$0")`` means the script's folder.
        """
        own = bool(folder) and _OWN_FOLDER.search(folder[0])
        path = (self.start / self.path).parent if own else self.place.folder.joinpath(*folder)
        if has_folder(path):
            self.place = replace(self.place, folder=path)


def _shell_statements(
    exported_variables: Mapping[str, str], command_facts: Sequence[CommandFacts]
) -> tuple[tuple[str, str], ...]:
    """Return the names and values that a shell script sets: options of its commands, and exported variables.

    If a command runs torchrun, the result also has the name ``starter`` with the value ``torchrun``.
    """
    says = {name: value for one in command_facts for name, value in one.says}
    started = {one.launcher for one in command_facts}
    known = {name: value for name, value in exported_variables.items() if name in joins().says.variables}
    starter = {"starter": "torchrun"} if "torchrun" in started else {}
    return tuple(sorted({**says, **known, **starter}.items()))


def _merge_commands(head: str, code: str, command_facts: Sequence[CommandFacts]) -> CommandFacts:
    """Return the combined facts about all commands of a shell script."""
    programs = [one for one in command_facts if one.facts or one.joins or one.script is not None]
    joined = frozenset[str]().union(*(one.joins for one in programs))
    facts = tuple(f for one in programs for f in one.facts)
    ranks = [name for name in joins().ranks.variables if re.search(rf"\b{name}\b", code)]
    if joined:
        return CommandFacts(head, None, facts, joined, serial=False)
    unknown = [why for one in programs for why in one.unknown]
    if not programs:
        unknown.append("toolkit found no Python program in the shell script")
    if ranks:
        unknown.append(f"the shell script reads {', '.join(ranks)}")
    serial = None if unknown or any(one.serial is None for one in programs) else True
    return CommandFacts(head, None, facts, serial=serial, unknown=tuple(unknown))
