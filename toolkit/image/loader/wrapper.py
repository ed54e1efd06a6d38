"""Find the program that a shell script of an image starts, without running the script."""

import posixpath
from collections.abc import Iterator, Mapping

from toolkit.image.files.tree import FileTree
from toolkit.image.loader.ownfolder import with_own_folder
from toolkit.image.loader.scripts import Environment, ImageShell
from toolkit.program.shellwords import SHELL_WORDS, UNTOLD, blocks, commands, values

_TOOLS = frozenset(
    (
        *("awk", "basename", "cat", "chmod", "cp", "cut", "date", "dirname", "find", "grep", "head"),
        *("hostname", "id", "ln", "ls", "mkdir", "mktemp", "mv", "nproc", "ps", "rm", "sed", "sleep", "sort"),
        *("tail", "tee", "touch", "tr", "uname", "wc", "which", "whoami"),
    )
)
"""Programs that a script usually runs before it starts the actual program."""


def read_wrapper(
    tree: FileTree, variables: Mapping[str, str], path: str, text: str, arguments: list[str]
) -> tuple[Environment, list[str] | None]:
    """Return the variables after the script ``path`` has run, and the words of the command that the script
    starts last.

    The command is None if the script starts several different programs, or starts a program only under a
    condition. The command is also None if toolkit does not know the value of a variable in the first two
    words of the command.

    ``text`` is the text of the script. ``arguments`` are the arguments of the script. ``variables`` are the
    environment variables before the script runs.
    """
    text = with_own_folder(tree, path, text)
    shell = ImageShell(tree, dict(variables))
    shell.read(path, text)
    words = _last(text)
    if words is None:
        return shell.environment(), None
    program = values(words, path, arguments, shell.values.get)
    return shell.environment(), None if not program or any(
        UNTOLD in word for word in program[:2]
    ) else program


def certain_programs(text: str) -> tuple[str, ...]:
    """Return the programs that a script always starts, as the script writes them: names or paths."""
    return tuple(words[0] for sure, words, _ in _started_commands(text) if sure)


def _last(text: str) -> list[str] | None:
    """Return the last command of a script. Return None if the script starts several different programs, or
    starts a program only under a condition.
    """
    program: list[str] | None = None
    for sure, started, ends in _started_commands(text):
        if not sure or (program is not None and program[0] != started[0]):
            return None
        program = started
        if ends:
            break
    return program


def _started_commands(text: str) -> Iterator[tuple[bool, list[str], bool]]:
    """Yield three values for each command that starts a program: whether the script always runs the command,
    the command's words, and whether ``exec`` runs the command.
    """
    depth = 0
    for before, words in commands(text):
        deeper, command = blocks(words)
        depth = max(0, depth + deeper)
        place = next((n for n, word in enumerate(command) if not _assigns(word)), len(command))
        rest = command[place:]
        started = rest[1:] if rest[:1] == ["exec"] or _runs(rest) else rest
        if not started or _redirects(started[0]) or posixpath.basename(started[0]) in SHELL_WORDS | _TOOLS:
            continue
        yield not depth and before not in {"&&", "||", "|"}, started, rest[0] == "exec"


def _runs(words: list[str]) -> bool:
    """Return whether the words are ``command PROGRAM …``, which starts a program, and not ``command -v``."""
    return words[:1] == ["command"] and len(words) > 1 and words[1][0] != "-"


def _assigns(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def _redirects(word: str) -> bool:
    return word[0] in "<>" or word[:2] in {"1>", "2>", "&>"}
