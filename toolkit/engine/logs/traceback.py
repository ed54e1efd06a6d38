"""Read Python tracebacks in job output: the first exception, and the line of the user's code that
raised it.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

from toolkit.engine.logs.clues import HEAD, strip_label
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.line_class import classify

_MOST_LINES = 400
"""Maximum number of lines that toolkit reads after the head of a traceback."""

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]{1,300})", line (?P<line>\d+)(?:, in (?P<name>.{1,80}))?')
_CHAIN = re.compile(
    r"^(?:During handling of the above exception|The above exception was the direct cause)", re.MULTILINE
)
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<frozen|/bin/[\w-]{1,40}$|^<string>")
_RAISED = re.compile(
    r"(?:[a-z_]\w{0,60}\.){0,9}[A-Z]\w{0,80}(?::|$)|(?:[a-z_]\w{0,60}\.){1,9}\w{1,80}(?::|$)"
    r"|(?:\w{1,60}\.){1,9}[A-Z]\w{0,80}(?:Error|Exception)(?::|$)"  # a module such as xml.etree.ElementTree
)
"""A pattern for the last line of a traceback, which names the exception. toolkit needs this pattern, because
other ranks may write lines within the traceback.
"""

_BARE = re.compile(r"[A-Z]\w{0,80}")
"""A pattern for an exception without a message. If several ranks write at once, a later line has
the message.
"""

_CONTINUES = re.compile(r":$|\berror\(s\) found\.$")
"""A pattern for the end of an exception whose message is on the next line. TensorFlow writes ``2 root
error(s) found.``
"""

_WRAPS = re.compile(r"^(?:[\w.]{1,120}: )?Caught \w+ in |^(?:\w+\.)*RemoteTraceback\b")
_OF_RANK = re.compile(r"Traceback \(most recent call last\): \(RANK \d+\)")
"""A pattern for the first line of a traceback below PyTorch's ``CheckpointException``, which contains the
exceptions of one or more ranks.
"""

_CHECKPOINT = re.compile(r"\bCheckpointException ranks:dict_keys\(\[([\d, ]+)\]")
"""A pattern for a ``CheckpointException`` and its list of ranks; the exceptions of these ranks follow."""

_IN_USER_CODE = "in user code:"
"""The text after which Keras repeats an inner traceback, indented by four spaces, as the message of its
exception.
"""

_INDENT = 4

_CONVERSION = re.compile(r"ValueError: (?:invalid literal for int|could not convert string to float)")
"""A pattern for an exception that says only that a text is not a number. A later exception of a library says
which value the library expects.
"""

_OPTIONAL = re.compile(r"ModuleNotFoundError: No module named '(?P<module>[\w.]{1,100})'")
"""A pattern for the exception of a library that tries to import an optional module and continues without it.
"""

_KEY = re.compile(r"KeyError: (?P<key>'[^']{1,200}'|\"[^\"]{1,200}\")")
"""A pattern for an exception that says only which key is missing."""

_SENTENCE = 12
"""If a later exception names the missing key and has at least this number of words, toolkit assumes that the
later exception explains why the key is missing.
"""

_TYPE = re.compile(r"(?P<type>[\w.]{1,200}): (?P<message>.{12,})")
_LOST = re.compile(r"(?:ConnectionResetError|ConnectionAbortedError|BrokenPipeError|EOFError)\b")
_NOT_A_MESSAGE = ("Traceback", "File ", "During handling", "The above exception", "srun:", "slurmstepd")
_DIGIT = re.compile(r"\d")
_SAYS_FAULT = re.compile(r"(?i)\b(?:expected|cannot|must|invalid|unknown|unable|failed|missing|mismatch)\b")
"""A pattern for words of failure, such as ``expected`` or ``missing``. If the output lacks the type of an
exception, toolkit recognises the line of the exception by such a word.
"""

_INNERMOST = 8
"""Maximum number of innermost frames whose files toolkit stores, to find the library that failed."""

_INTRODUCED = 6
"""Maximum number of lines between the message of an exception and the traceback that this message quotes."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The exception of a traceback. ``position`` is the position of the line ``exception`` in the output.
    ``frame`` is the traceback's last frame in the user's code. ``numbers`` are the line numbers of the
    traceback. ``files`` are the files of its frames (innermost last), and ``code`` is the source code of the
    innermost frame. ``chained`` is true if Python raised another exception because of this exception.
    ``wraps`` is true if this exception only wraps another exception, whose traceback follows.
    """

    position: int
    exception: Line
    frame: str
    numbers: frozenset[int]
    chained: bool
    wraps: bool = False
    files: tuple[str, ...] = ()
    code: str = ""


def tracebacks(output: Output, positions: list[int]) -> list[Raised]:
    """Return the exceptions of the tracebacks whose first lines are at ``positions``.

    If exceptions are chained (Python raised the later exception because of the earlier exception), return
    only the first, or a later exception that says more about the fault.
    """
    found: list[Raised] = []
    for position in positions:
        made = _read(output, position)
        if made is None:
            continue
        before = found[-1] if found else None
        if before is not None and before.wraps and before.exception.task == made.exception.task:
            made = _inside(before, made)
        follows = before is not None and before.chained and before.exception.task == made.exception.task
        if follows and before is not None:
            first = made if _says_more(before, made) else before
            found[-1] = Raised(
                first.position,
                first.exception,
                before.frame or made.frame,
                before.numbers | made.numbers,
                made.chained,
                first.wraps,
                first.files,
                first.code,
            )
        else:
            found.append(made)
    return found


def _read(output: Output, position: int) -> Raised | None:
    """Return the exception of a traceback; ``None`` if the end of the traceback is missing."""
    head = output.line(position)
    words = _unlabelled(output, position, strip_label(head.text))
    base = _indent(words(head) or "")
    numbers, frames = {head.number}, list[re.Match[str]]()
    untyped: tuple[int, Line] | None = None
    code = ""
    lines = output.places_after(position, _MOST_LINES)
    for place, line in lines:
        text = words(line)
        if text is None:
            continue
        numbers.add(line.number)
        if frame := _FRAME.match(text):
            frames.append(frame)
            untyped, code = None, ""
            continue
        if not text.strip() or _indent(text) > base or text.lstrip().startswith(("|", "^", "~")):
            code = code or text.strip()
            continue
        if text.rstrip().endswith(_IN_USER_CODE):
            base += _INDENT
            continue
        if not _RAISED.match(text.strip()):
            untyped = untyped or (place, line)
            continue
        raised, after = _with_message(_cut(line, text), lines, words)
        chained, wraps = _read_chain(after, raised, numbers)
        wraps = wraps and not _OF_RANK.search(head.text)  # the next traceback is from another rank
        wraps = wraps or _WRAPS.search(text.strip()) is not None
        return Raised(place, raised, _own(frames), frozenset(numbers), chained, wraps, _files(frames), code)
    return _without_type(*untyped, frames, numbers) if untyped and frames else None


def _without_type(position: int, line: Line, frames: list[re.Match[str]], numbers: set[int]) -> Raised | None:
    """Return an exception whose type is missing from the output, if the line after the frames reports a
    fault.
    """
    if not _SAYS_FAULT.search(line.text):
        return None
    inside = frozenset(number for number in numbers if number <= line.number)
    return Raised(position, line, _own(frames), inside, chained=False, files=_files(frames))


def _unlabelled(output: Output, position: int, head: str) -> Callable[[Line], str | None]:
    """Return a function that removes a traceback's label from a line; its result is ``None`` for a line of
    another process.

    Loggers, and launchers such as pdsh, start each line with a label. The text before the words
    ``Traceback (most recent call last)`` is a label if one of the next lines starts with the same text,
    perhaps with other numbers.
    """
    label = head[: max(head.find(HEAD), 0)].removesuffix("Original ")  # PyTorch's DataLoader adds "Original"
    if not label.strip():
        return lambda line: strip_label(line.text)
    near = [strip_label(line.text) for line in output.following(position, _INTRODUCED)]
    for like in (str, _shape):
        if any(like(text[: len(label)]) == like(label) for text in near):
            return lambda line: _after(label, strip_label(line.text), like)
    return lambda line: head[len(label) :] if HEAD in line.text else strip_label(line.text)


def _cut(line: Line, text: str) -> Line:
    """Return a copy of ``line`` with only ``text``, the program's own words. The label before ``text``
    moves to the copy's tag. If the line does not end with ``text``, return ``line`` itself.
    """
    if not line.text.endswith(text):
        return line
    return Line(line.number, line.task, text, line.tag + line.text[: len(line.text) - len(text)])


def _after(label: str, text: str, shape: Callable[[str], str]) -> str | None:
    return text[len(label) :] if shape(text[: len(label)]) == shape(label) else None


def _shape(text: str) -> str:
    return _DIGIT.sub("0", text)


def _with_message(
    line: Line, lines: Iterator[tuple[int, Line]], words: Callable[[Line], str | None]
) -> tuple[Line, Iterator[tuple[int, Line]]]:
    """Return the line of an exception, joined with the next line if the message is there, and an iterator
    over the lines that the caller has not read.
    """
    bare = _BARE.fullmatch(line.text.strip()) is not None
    if not bare and not _CONTINUES.search(line.text.rstrip()):
        return line, lines
    read = list(islice(lines, 2))
    message = next((text for _, more in read if (text := (words(more) or "").strip())), "")
    if bare:
        plain = message.startswith(":")
    else:
        plain = message[:1].isalnum() or message[:1] in {"/", "("}
        plain = plain and not message.startswith(_NOT_A_MESSAGE)
    between = "" if bare else " "
    joined = Line(line.number, line.task, f"{line.text}{between}{message}", line.tag) if plain else line
    return joined, chain(read, lines)


def _read_chain(lines: Iterator[tuple[int, Line]], end: Line, numbers: set[int]) -> tuple[bool, bool]:
    """Return two values: whether Python raised another exception because of the exception ``end``, and
    whether ``end`` only wraps an exception whose traceback follows.

    After a wrapping exception, the output has a line such as ``-- Process 1 terminated with the following
    error:``. The traceback of the wrapped exception follows this line.
    """
    introduced = end.text.rstrip().endswith(":")
    for count, (_, line) in enumerate(lines):
        text = strip_label(line.text).strip()
        if text.startswith("Traceback"):
            inner = count == 0 and _OF_RANK.match(text) is not None
            return False, inner or (introduced and count <= _INTRODUCED)
        if line.number > end.number + 400 or text.startswith("Exception ignored"):
            return False, False
        if _CHAIN.match(text):
            numbers.add(line.number)
            return True, False
        if text:
            introduced = text.endswith(":") or text == '"""'
    return False, False


def _inside(outer: Raised, inner: Raised) -> Raised:
    """Return the exception ``inner``, which ``outer`` wraps. If ``outer`` is a ``CheckpointException``, the
    result also names the failed rank and the frame in the user's code.
    """
    ranks = _CHECKPOINT.search(outer.exception.text)
    if ranks is None:
        return inner
    failed = ranks[1].split(", ")
    own = inner.exception.task in failed
    exception = inner.exception if own else replace(inner.exception, task=failed[0])
    return replace(inner, exception=exception, frame=inner.frame or outer.frame)


def _says_more(first: Raised, second: Raised) -> bool:
    """Return whether the later of two chained exceptions says more about the fault than the earlier
    exception.
    """
    if first.wraps or _reports_an_end(first.exception) or _died(first.exception, second.exception):
        return True
    old, new = strip_label(first.exception.text), strip_label(second.exception.text)
    if (_CONVERSION.match(old) or _BARE.fullmatch(old)) and not first.frame:
        return True
    key = _KEY.fullmatch(old)
    if key and not first.frame and key["key"][1:-1] in new and len(new.split()) >= _SENTENCE:
        return True
    optional = _OPTIONAL.match(old)
    if optional and not first.frame and second.frame and optional["module"] not in new:
        return True
    before, after = _TYPE.fullmatch(old), _TYPE.fullmatch(new)
    if before is None or after is None or before["type"] != after["type"]:
        return False
    return before["message"] != after["message"] and before["message"] in after["message"]


def _reports_an_end(exception: Line) -> bool:
    """Return whether an exception only reports that another program failed."""
    row = classify(strip_label(exception.text))
    return row is not None and row.role == "ending"


def _died(line: Line, exception: Line) -> bool:
    """Return whether ``line`` reports a lost connection and the later exception ``exception`` reports that a
    process died from a signal or from missing memory.
    """
    row = classify(strip_label(exception.text))
    died = row is not None and row.class_ in {"signal", "out-of-memory"}
    return died and _LOST.match(strip_label(line.text)) is not None


def _files(frames: list[re.Match[str]]) -> tuple[str, ...]:
    """Return the files of the innermost frames, the innermost last."""
    return tuple(frame["file"] for frame in frames[-_INNERMOST:])


def _own(frames: list[re.Match[str]]) -> str:
    """Return the last frame in the user's own code; empty if all frames are in libraries."""
    own = [frame for frame in frames if not _LIBRARY.search(frame["file"])]
    if not own:
        return ""
    last = own[-1]
    return f"{last['file']}:{last['line']}" + (f", in {last['name']}" if last["name"] else "")


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
