"""A command of a job: which Python program it runs, and how its ranks join. Nothing is executed."""

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.folders import has_file, has_folder
from toolkit.knowledge.joins import joins
from toolkit.program.options import variables_of_options
from toolkit.program.script.facts import ScriptFacts
from toolkit.program.script.read import read_module, read_script, read_text

_PYTHON = re.compile(r"python(\d(\.\d+)?)?")
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}
_TAKE_VALUE = {"-W", "-X", "--check-hash-based-pycs"}
_BEFORE = {"env", "exec", "time", "nice", "stdbuf"}
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_EXPORT = re.compile(r"^export ([A-Z_]+)=['\"]?([\w.:\[\]-]+)['\"]?\s*$", re.MULTILINE)
_DEEPEST = 3
_LONGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """What a command shows of the program that its ranks run.

    ``program`` is the first word that is started, ``script`` the place of the Python file in the command, if
    there is one, ``facts`` what is read of the Python programs that were found. ``joins`` and ``serial`` are
    as in :class:`toolkit.program.script.ScriptFacts`.
    """

    program: str
    script: int | None = None
    facts: tuple[ScriptFacts, ...] = ()
    joins: frozenset[str] = frozenset()
    serial: bool | None = None
    unknown: tuple[str, ...] = ()
    says: tuple[tuple[str, str], ...] = ()
    """As in :class:`toolkit.program.script.ScriptFacts`, with the options of what starts the ranks."""


@dataclass(frozen=True, slots=True)
class _Place:
    folder: Path
    files: frozenset[Path] | None
    depth: int = 0


def read_command(words: Sequence[str], folder: Path, files: Iterable[Path] | None = None) -> CommandFacts:
    """Return what a command shows of its program.

    Args:
        words: the command of one rank.
        folder: the folder that the command starts in, as it is on this machine.
        files: the files that go with it; by default all that are here.
    """
    chosen = None if files is None else frozenset(files)
    return _read(list(words), _Place(folder, chosen))


def _read(words: list[str], place: _Place) -> CommandFacts:
    start = _start(words)
    if start >= len(words):
        return CommandFacts("", unknown=("the command is empty",))
    head, rest = posixpath.basename(words[start]), words[start + 1 :]
    if _PYTHON.fullmatch(head):
        return _python(words, start, place)
    if name := _launcher(head):
        return _of_launcher(head, name, rest)
    if head in _SHELLS:
        return _shell(head, rest, place)
    if words[start].endswith(".py") and has_file(place.folder / words[start]):
        return _of_script(words[start], start, read_script(place.folder / words[start], place.files))
    return CommandFacts(words[start], unknown=(f"{head} is not a Python program",))


def _start(words: Sequence[str]) -> int:
    """Return the place of the program behind ``env NAME=VALUE``, ``exec`` and the like."""
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
            return _module(program, words[at + 1 : at + 2], words[at + 2 :], place)
        elif word == "-c":
            code = words[at + 1] if at + 1 < len(words) else ""
            return _of_script(program, None, read_text(code, roots=[place.folder]))
        elif word.startswith("-") and word != "-":
            at += 1
        else:
            return _file(program, words, at, place)
    return CommandFacts(program, unknown=("Python gets no program",))


def _of_launcher(program: str, name: str, rest: Sequence[str]) -> CommandFacts:
    return CommandFacts(
        program, joins=frozenset({name}), serial=False, says=tuple(variables_of_options(name, rest))
    )


def _module(program: str, name: Sequence[str], rest: Sequence[str], place: _Place) -> CommandFacts:
    module = name[0] if name else ""
    if launcher := _launcher(module):
        return _of_launcher(program, launcher, rest)
    facts = read_module(module, place.folder, place.files) if module else None
    if facts is None:
        return CommandFacts(program, unknown=(f"the module {module} is not in the project",))
    return _of_script(program, None, facts)


def _file(program: str, words: Sequence[str], at: int, place: _Place) -> CommandFacts:
    path = place.folder / words[at]
    if words[at] == "-" or not (has_file(path) or has_folder(path)):
        return CommandFacts(program, at, unknown=(f"{words[at]} is not on this machine",))
    if path.is_dir():
        main = path / "__main__.py"
        if not main.is_file():
            return CommandFacts(program, at, unknown=(f"{words[at]} is a folder without __main__.py",))
        path = main
    return _of_script(program, at, read_script(path, place.files))


def _of_script(program: str, at: int | None, facts: ScriptFacts) -> CommandFacts:
    return CommandFacts(program, at, (facts,), facts.joins, facts.serial, facts.unknown, facts.says)


def read_shell(path: Path) -> str | None:
    """Return the text of a shell script; ``None`` if it is not a regular file, or too long."""
    if not has_file(path) or path.stat().st_size > _LONGEST:
        return None
    return path.read_text("utf-8", "replace")


def _shell(head: str, rest: Sequence[str], place: _Place) -> CommandFacts:
    """Read the commands of a shell script, or those after ``-c``."""
    options = [word for word in rest if word.startswith("-")]
    code = next((rest[at + 1] for at, word in enumerate(rest[:-1]) if re.fullmatch(r"-\w*c", word)), None)
    if code is None:
        file = next((word for word in rest if word not in options), "")
        code = read_shell(place.folder / file) if file else None
        if code is None:
            return CommandFacts(head, unknown=(f"{file or head} is not a shell script on this machine",))
    if place.depth >= _DEEPEST:
        return CommandFacts(head, unknown=("shell scripts start each other",))
    below = _Place(place.folder, place.files, place.depth + 1)
    found = [_read(words, below) for words in _commands(code)]
    return replace(_together(head, code, found), says=_said(code, found))


def _said(code: str, found: Sequence[CommandFacts]) -> tuple[tuple[str, str], ...]:
    """Return what the commands of a shell script say, what starts ranks among them, and what it exports."""
    says = {name: value for one in found for name, value in one.says}
    started = {name for one in found for name in one.joins if not one.facts}
    exports = {name: value for name, value in _EXPORT.findall(code) if name in joins().says.variables}
    starter = {"starter": "torchrun"} if "torchrun" in started else {}
    return tuple(sorted({**says, **exports, **starter}.items()))


def _together(head: str, code: str, found: Sequence[CommandFacts]) -> CommandFacts:
    """Return what all commands of a shell script show together."""
    programs = [one for one in found if one.facts or one.joins or one.script is not None]
    joined = frozenset[str]().union(*(one.joins for one in programs))
    facts = tuple(f for one in programs for f in one.facts)
    ranks = [name for name in joins().ranks.variables if re.search(rf"\b{name}\b", code)]
    if joined:
        return CommandFacts(head, None, facts, joined, serial=False)
    unknown = [why for one in programs for why in one.unknown]
    if not programs:
        unknown.append("no Python program is found in the shell script")
    if ranks:
        unknown.append(f"the shell script reads {', '.join(ranks)}")
    serial = None if unknown or any(one.serial is None for one in programs) else True
    return CommandFacts(head, None, facts, serial=serial, unknown=tuple(unknown))


def _commands(code: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a shell text, as far as the text shows them."""
    for line in code.replace("\\\n", " ").splitlines():
        try:
            lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
            lexer.whitespace_split = True
            words = list(lexer)
        except ValueError:  # a quotation that ends in a later line
            continue
        command: list[str] = []
        for word in words:
            if re.fullmatch(r"[;&|()]+", word):
                if command:
                    yield command
                command = []
            elif command or word not in {"if", "then", "do", "else", "while", "!", "{"}:
                command.append(word)
        if command:
            yield command
