"""Find the fault class of a line that reports a fault only in general words. The class follows from the
library or device that the line names, or from the source files that the traceback names.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.line_class import classify
from toolkit.knowledge.signatures import classes

GENERAL_CLASSES = ("unknown-error", "python-exception", "exit-status")
"""Fault classes of lines that do not name the subject of the fault, such as a device or a library."""

_QUOTED = 15
"""Number of lines after an error message in which toolkit looks for the output of another program, such as a
compiler, that the message quotes.
"""

_QUOTES = re.compile(
    r"(?i)(?:^|[\s(])(?:std(?:out|err)|output|details?|reason|caused by|error message|last error)\W{0,2}:\s*$"
    r"|^\[?(?:std(?:out|err)|output|details|reason)\]?(?:\W{0,2}:|\s*$)"
    r"|\b(?:failed|exited) with (?:exit )?(?:status|code) \d{1,3}:\s*$"
)
"""A pattern for a line after which an error quotes the output of another program."""

_MESSAGE = 3
"""Number of lines below a heading in which toolkit looks for the message that the heading announces."""

_THROWN = re.compile(r"terminate called after throwing an instance of")
_OF_TOOL = re.compile(r"^(?:\S{1,120}(?:: ?| +))?(?:fatal(?: error)?|error) *: \S")
"""A pattern for an error of a compiler, assembler or linker, such as ``ptxas fatal   : ``."""

_ERROR_WAS = re.compile(
    r"(?i)\b(?:error|reason|message) (?:was|is):$|because of the following error\b.{0,60}:$"
)
"""A pattern for the end of a heading whose next line is the error of a library."""

_LAST_ERROR = re.compile(r"^(?:\[[^\]\s]{1,60}\]:? ?)?\W{0,3}Last error:\s*$|^`ptxas` stderr:\s*$")
"""A pattern for a line after which PyTorch quotes an error from NCCL, or Triton quotes the output of ptxas.
"""

_NAME_OF_PACKAGE = re.compile(r"\((?:missing|no such package)\):$")
"""A pattern for the end of a line in which apk names a package that it did not find."""

_INNERMOST = 2
"""Number of a traceback's innermost files in which toolkit looks for the subject of the fault, such as a
library.
"""

_VALUE = re.compile(r"(['\"`])(?:(?!\.so\b)[^'\"`/]){1,80}\1|\bcuda:\d{1,3}\b")
"""A pattern for a quoted name or value that is not a path, or for a PyTorch device such as ``cuda:0``.
toolkit ignores such texts, because they do not show which library or device failed.
"""

_FOLDERS = re.compile(r"(?:[\w.+-]{1,60}/){1,20}(?=[\w-]{1,60}\.(?:cc?|cpp|cu|cxx|h|hpp|go|rs)\b)")
"""A pattern for the folders in the path of a source file. toolkit ignores these folders, because their names
do not show which library or device failed.
"""

_STATUS = re.compile(
    r"(?:CANCELLED|UNKNOWN|INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED"
    r"|RESOURCE_EXHAUSTED|FAILED_PRECONDITION|ABORTED|OUT_OF_RANGE|UNIMPLEMENTED|INTERNAL|UNAVAILABLE"
    r"|DATA_LOSS|UNAUTHENTICATED): "
)
"""A pattern for a status code of Abseil, which XLA and TensorFlow write before the message."""

_EXCEPTION = re.compile(r"(?P<module>(?:\w{1,60}\.){0,9})(?P<name>[A-Z]\w{2,80})(?::|$)")
_TOO_FEW = re.compile(r"^TypeError: .{1,200} missing \d+ required positional argument")
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_COMPILES = re.compile(r"Compil\w*")
"""A pattern for words such as ``Compile`` in the name of an exception. toolkit removes these words, because
frameworks compile at run time. Without the removal, toolkit would assign the exception to a failed build.
"""


def class_of_text(text: str) -> str | None:
    """Return the fault class of the library or device that a line names first; ``None`` if the line names
    no library or device that toolkit knows.
    """
    text = _FOLDERS.sub("", _VALUE.sub("''", text))
    found = ((match.start(), class_) for class_, pattern in _subjects() if (match := pattern.search(text)))
    return min(found, default=(0, None))[1]


def class_of_exception(text: str) -> str | None:
    """Return the fault class of an exception, from its module, its name or the first word of its message;
    ``None`` if none of these parts shows a fault class.

    The function ignores the other words of the message, because they may be names and values from the
    program.
    """
    found = _EXCEPTION.match(text)
    if found is None:
        return None
    module = found["module"].rstrip(".").replace(".", "/")
    named = class_of_files([f"/{module}.py"]) if module else None
    message = text[found.end() :].lstrip()
    status = _STATUS.match(message)
    first = message[status.end() if status else 0 :].partition(" ")[0]
    subject = first if first.isalnum() else ""
    return named or class_of_text(_plain(found["name"])) or class_of_text(_plain(subject))


def _plain(text: str) -> str:
    """Return a text with camel-case names split into words."""
    return " ".join(_WORDS.findall(_COMPILES.sub("", text)))


def is_call_between_packages(text: str, files: Iterable[str]) -> bool:
    """Return whether the exception ``text`` says that an installed package called a function with too few
    arguments. Usually, the calling package needs another release of the called package.

    ``files`` are the files of the traceback, the innermost last.
    """
    last = next(reversed(list(files)), "")
    return _TOO_FEW.search(text) is not None and "-packages/" in last


def class_of_files(files: Iterable[str]) -> str | None:
    """Return the fault class of the library that raised an exception; ``None`` if toolkit knows no fault
    class for this library. ``files`` are the files of the traceback, the innermost last.
    """
    last = list(islice(reversed(list(files)), _INNERMOST))
    named = (class_ for file in last for class_, pattern in _libraries() if pattern.search(file))
    return next(named, None)


def quoted_fault(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If an error quotes a fault of another program or of NCCL, return the later line with this fault;
    otherwise ``None``.
    """
    quotes, introduction = False, _QUOTES if clue.class_ in GENERAL_CLASSES else _LAST_ERROR
    after = {cause.position: cause for cause in causes if cause.position > clue.position}
    for position, line in output.places_after(clue.position, _QUOTED):
        cause = after.get(position)
        if quotes and cause and (cause.class_ not in GENERAL_CLASSES or class_of_text(cause.line.text)):
            return cause
        quotes = quotes or introduction.search(strip_label(line.text)) is not None
    return None


def message_below(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the message below a heading; ``None`` if the line is not a heading.

    The message of the heading ``terminate called after throwing`` is on the next line. The message of a
    heading that ends with a colon is on the next line in each of these cases:

    - The heading ends with words such as ``error was:``.
    - The next line is an error of a compiler, assembler or linker.
    - The next line is indented, and toolkit does not know the fault class of the heading.
    - The next line is an indented error of the heading's fault class. If this error also ends with a colon,
      the function examines the line below the error in the same way.
    """
    found, known = clue, {cause.position: cause for cause in causes}
    for position, line in output.places_after(clue.position, _MESSAGE):
        heading, cause = strip_label(found.line.text).rstrip(), known.get(position)
        introduces = heading.endswith(":")
        of_tool = introduces and _OF_TOOL.match(strip_label(line.text))
        if found is clue and (of_tool or _THROWN.match(heading) or _has_detail(clue, heading, line)):
            row = classify(strip_label(line.text)) if clue.class_ in GENERAL_CLASSES else None
            class_ = row.class_ if row and row.class_ else clue.class_
            return cause or Clue(position, line, class_, clue.strength, "cause", clue.retry)
        if not (cause and introduces and line.text[:1].isspace() and cause.class_ == clue.class_):
            break
        found = cause
    return found if found is not clue else None


def _has_detail(clue: Clue, heading: str, line: Line) -> bool:
    """Return whether ``line``, the line below a heading, has the words that the heading announces."""
    if not line.text.strip() or line.task != clue.line.task or _NAME_OF_PACKAGE.search(line.text):
        return False
    indented = line.text[:1].isspace() and clue.class_ == "unknown-error" and heading.endswith(":")
    return indented or _ERROR_WAS.search(heading) is not None


@cache
def _subjects() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row.id, re.compile(pattern)) for row in classes().values() for pattern in row.subjects)


@cache
def _libraries() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row.id, re.compile(pattern)) for row in classes().values() for pattern in row.files)
