"""Parse the commands of a shell script, and evaluate their words (POSIX, Shell Command Language 2).

toolkit does not run the script. A part of a word, such as ``$(date)``, may have a value only while the script
runs. In the value of the word, the mark :data:`UNTOLD` replaces this part.
"""

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest

UNTOLD = "\0"
"""The mark for an unknown part of a value; no variable can contain a NUL character."""
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
"""Names of shells whose scripts toolkit can parse."""
Lookup = Callable[[str], str | None]
_ENDS = ("&&", "||", ";;", ";", "&", "|", "\n", "(", ")")
_NAMING = frozenset(("for", "case", "select", "function"))
_OPENING = frozenset(("if", "while", "until", "{"))
_CLOSING = frozenset(("fi", "done", "esac", "}"))
_GOING_ON = frozenset(("then", "else", "elif", "do", "!", "time"))
_KEYWORDS = _NAMING | _OPENING | _CLOSING | _GOING_ON | {"in", "coproc", "[["}
SHELL_WORDS = _KEYWORDS | frozenset(
    (
        *(".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen"),
        *("complete", "compopt", "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec"),
        *("exit", "export", "false", "fc", "fg", "getopts", "hash", "help", "history", "jobs", "kill", "let"),
        *("local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly"),
        *("return", "set", "shift", "shopt", "source", "suspend", "test", "times", "trap", "true", "type"),
        *("typeset", "ulimit", "umask", "unalias", "unset", "wait"),
    )
)
"""Words that a shell executes itself (bash manual, Reserved Words and Shell Builtin Commands)."""
SHELL_ONLY = SHELL_WORDS - frozenset(
    ("[", "command", "echo", "false", "kill", "printf", "pwd", "test", "time", "true", "type")
)
"""Words that only a shell executes, because no program with the same name exists."""
_ARGUMENTS = frozenset(('"$@"', "$@", '"${@}"', "${@}", "$*", '"$*"'))
_HERE = re.compile(r"\d*<<(?P<tabs>-?)(?!<)(?P<mark>.*)", re.DOTALL)
_ARGUMENT = re.compile(r'"?\$\{?(?P<place>[1-9])\}?"?')
_NAME = re.compile(r"[A-Za-z_]\w*")
_PARAMETER = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:(?P<how>:?[-+=?])(?P<word>.*))?\Z", re.DOTALL)
_DEEPEST = 12
LONGEST = 1 << 13
"""Maximum length of a value in characters. Without this limit, a script that repeats ``PATH=$PATH:$PATH``
would fill the memory.
"""


def commands(script: str) -> Iterator[tuple[str, list[str]]]:
    """Yield two values for each command: the operator before the command, such as ``&&``, ``;`` or ``(``, and
    the command's words as written.

    The function skips here-documents and comments.
    """
    text = script.replace("\\\n", "").replace(UNTOLD, "")
    words: list[str] = []
    here: list[str] = []
    before, at = "\n", 0
    while at < len(text):
        end = next((e for e in _ENDS if text.startswith(e, at)), None)
        if end:
            if words or end in "()":
                yield before, words
            here += _here_documents(words)
            before, words, at = end, [], at + len(end)
            if end == "\n" and here:
                at, here = _after_documents(text, at, here), []
        elif text[at] == "#":
            at = _find(text, "\n", at)
        elif text[at].isspace():
            at += 1
        else:
            start, at = at, _word(text, at)
            words.append(text[start:at])
    yield before, words


def _here_documents(words: list[str]) -> list[str]:
    """Return the lines that close a command's here-documents. For ``<<-``, the returned line starts with a
    tab, as a sign to ignore leading tabs.
    """
    found = []
    for word, after in zip_longest(words, words[1:], fillvalue=""):
        if document := _HERE.fullmatch(word):
            mark = re.sub(r"[\\'\"]", "", document["mark"] or after)
            found.append(f"\t{mark}" if document["tabs"] else mark)
    return found


def _after_documents(text: str, position: int, closing: list[str]) -> int:
    """Return the position after the here-documents that start at ``position``."""
    for mark in closing:
        line = None
        while line != mark and position < len(text):
            end = _find(text, "\n", position)
            line = f"\t{text[position:end].lstrip(chr(9))}" if mark[:1] == "\t" else text[position:end]
            position = end + 1
    return position


def blocks(words: list[str]) -> tuple[int, list[str]]:
    """Separate the keywords at the start of a command, such as ``if``, from the words after them. Return two
    values: how much the keywords change the block depth, and the words after the keywords.

    Each ``if``, ``while`` or ``{`` adds 1 to the block depth, and each ``fi``, ``done`` or ``}`` subtracts 1.
    If a keyword is ``for``, ``case``, ``select`` or ``function``, the returned list is empty. ``for``,
    ``case`` and ``select`` also add 1 to the block depth.
    """
    depth = 0
    for place, word in enumerate(words):
        if word in _NAMING:
            return depth + (word != "function"), []
        if word not in _OPENING | _CLOSING | _GOING_ON:
            return depth, words[place:]
        depth += (word in _OPENING) - (word in _CLOSING)
    return depth, []


def values(words: list[str], path: str, arguments: list[str], lookup: Lookup) -> list[str]:
    """Return the values of a command's words.

    The command is in the script ``path``, which was called with ``arguments``. ``lookup`` returns a
    variable's value, or ``None`` for an unset variable.
    """
    found: list[str] = []
    for word in words:
        argument = _ARGUMENT.fullmatch(word)
        if word in _ARGUMENTS:
            found += arguments
        elif word in {'"$0"', "$0"}:
            found.append(path)
        elif argument and int(argument["place"]) <= len(arguments):
            found.append(arguments[int(argument["place"]) - 1])
        else:
            found.append(expand(word, lookup))
    return found


def _word(text: str, position: int) -> int:
    """Return the position after the word that starts at ``position``."""
    while position < len(text) and not text[position].isspace() and text[position] not in ";&|()":
        position = _step(text, position)
    return position


def _step(text: str, position: int, depth: int = 0) -> int:
    """Return the position after the character, the quoted text or the expansion such as ``${NAME}`` that
    starts at ``position``.
    """
    if text[position] == "\\":
        return min(position + 2, len(text))
    if text[position] == "'":
        return _find(text, "'", position + 1) + 1
    if text[position] == "`":
        return _find(text, "`", position + 1) + 1
    if depth < _DEEPEST and text[position] == '"':
        return _close(text, position + 1, '"', depth + 1)
    if depth < _DEEPEST and text.startswith(("${", "$("), position):
        return _close(text, position + 2, "}" if text[position + 1] == "{" else ")", depth + 1)
    return position + 1


def _close(text: str, position: int, mark: str, depth: int) -> int:
    while position < len(text) and text[position] != mark:
        # Inside double quotes, a single quote is an ordinary character.
        position = position + 1 if mark == '"' and text[position] == "'" else _step(text, position, depth)
    return position + 1


def _find(text: str, mark: str, position: int) -> int:
    found = text.find(mark, position)
    return len(text) if found < 0 else found


def expand(word: str, lookup: Lookup, depth: int = 0) -> str:
    """Return the value of a shell word. ``lookup`` returns a variable's value, or ``None`` for an unset
    variable.
    """
    if depth > _DEEPEST:
        return UNTOLD
    parts: list[str] = []
    at, quoted, length = 0, False, 0
    while at < len(word) and length <= LONGEST:
        after = at + 1 if word[at] == '"' or (quoted and word[at] == "'") else min(_step(word, at), len(word))
        if word[at] == '"':
            quoted = not quoted
        elif word[at] == "$":
            part, after = _dollar(word, at, after, lookup, depth)
            parts.append(part)
        else:
            parts.append(_plain(word[at:after], quoted))
        length += len(parts[-1]) if parts else 0
        at = after
    return "".join(parts)[:LONGEST]


def _plain(piece: str, quoted: bool) -> str:
    if piece[0] == "\\":
        return piece[1:] if not quoted or piece[1:] in {"$", "`", '"', "\\"} else piece
    if piece[0] == "'" and not quoted:
        return piece[1:-1]
    return UNTOLD if piece[0] == "`" else piece


def _dollar(word: str, position: int, end: int, lookup: Lookup, depth: int) -> tuple[str, int]:
    if named := _NAME.match(word, position + 1):
        found = lookup(named[0])
        return (UNTOLD if found is None else found), named.end()
    if word.startswith("${", position):
        return _braces(word[position + 2 : end - 1], lookup, depth), end
    if end - position > 1 or word[position + 1 : position + 2] in {
        "?",
        "$",
        "!",
        "#",
        "@",
        "*",
        "-",
        "0",
        "1",
    }:
        return UNTOLD, end
    return "$", end


def _braces(expression: str, lookup: Lookup, depth: int) -> str:
    """Return the value of the shell expansion ``${…}``; ``expression`` is the text between the braces."""
    found = _PARAMETER.match(expression)
    if found is None:
        return UNTOLD
    value, how, other = lookup(found["name"]), found["how"] or "", found["word"] or ""
    there = bool(value) if how.startswith(":") else value is not None
    if how.endswith("+"):
        return expand(other, lookup, depth + 1) if there else ""
    if there or (value is not None and not how):
        return value or ""
    return expand(other, lookup, depth + 1) if how.endswith(("-", "=")) else UNTOLD
