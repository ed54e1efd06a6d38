"""Read what the innermost frame of a traceback shows about an exception: the call that failed, or the user's
own statement that raised the exception.
"""

import re
from collections.abc import Sequence

from toolkit.engine.logs.clues import HEAD, Clue, strip_label
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.topics import class_of_files
from toolkit.engine.logs.traceback import Raised

_NOT_STARTED = re.compile(r"(?:FileNotFoundError|PermissionError): \[Errno ")
_BUSY = re.compile(r"BlockingIOError: \[Errno ")
_STARTS = re.compile(r"/subprocess\.py$")
"""A pattern for the file of Python's module ``subprocess``, which starts programs. If this module reports a
missing file, the file is usually the program.
"""

_WITHOUT_FILE = re.compile(
    r"(?:OSError|PermissionError|ProcessLookupError): \[Errno (?P<number>\d+)\] [\w ]+$"
)
"""A pattern for an error of the operating system that names no file."""

_INVALID = {"1", "3", "13", "22"}
"""The numbers of EPERM, ESRCH, EACCES and EINVAL. System calls that use no file can return these errors."""

_PIPE = re.compile(r"BrokenPipeError: ")
_WRITES = re.compile(r"\bstdin\b|\.(?:write|writelines|flush|communicate)\(|\bprint\(")
"""A pattern for calls that write to another program. Calls with which ranks exchange data do not match."""

_LIMITS = re.compile(r"\b(?:resource\.setrlimit|resource\.prlimit|os\.nice|os\.setpriority)\(")
_WITHOUT_PATH = re.compile(
    r"\bos\.(?:sched_\w+|set\w*[ug]id|set\w*groups|setsid|setns|unshare|kill|killpg|getpgid|getsid|getpriority"
    r"|wait\w*)\(|\bresource\.\w+\(|\bsignal\.\w+\(|\bsocket\.socket\(|\.(?:setsockopt|getsockopt|listen|ioctl"
    r"|shutdown|cpu_affinity|ionice|nice|rlimit|send_signal)\(|\bprctl\w*\("
)
"""A pattern for calls that change a process or a socket and use no file."""

FRAME = re.compile(r'\s*File "(?P<file>[^"]{1,300})", line \d+, in \S')
"""A pattern for a frame of a traceback."""

_RAISED = re.compile(r"(?:\w{1,60}\.){0,8}[A-Z]\w{0,80}(?::|$)")
_LAST_LINES = 3
"""If an output ends within a traceback, the last frame is within this number of lines before the end."""

_MOST = 100
"""toolkit reads the line before a traceback only if the traceback has at most this number of lines."""

_RAISES = re.compile(r"raise (?:\w{1,60}\.){0,8}(?P<name>\w{1,80})\b")
_TYPE = re.compile(r"(?:\w{1,60}\.){0,8}(?P<name>\w{1,80})(?::|$)")


def class_by_frame(traceback: Raised) -> str | None:
    """Return the fault class of an operating-system error whose meaning depends on the traceback's innermost
    frame; ``None`` for all other errors.
    """
    text, innermost = strip_label(traceback.exception.text), next(reversed(traceback.files), "")
    if _NOT_STARTED.match(text) and _STARTS.search(innermost):
        return "program-start"
    if _BUSY.match(text) and is_of_user(traceback.files, traceback.frame):
        # The error is from the user's own call, for example a file lock, not from starting a process.
        return "python-exception"
    if _PIPE.match(text) and is_of_user(traceback.files, traceback.frame) and _WRITES.search(traceback.code):
        return "python-exception"
    nameless = _WITHOUT_FILE.match(text)
    if nameless and nameless["number"] in _INVALID and _LIMITS.search(traceback.code):
        return "system-limit"
    if nameless and nameless["number"] in _INVALID and _WITHOUT_PATH.search(traceback.code):
        return "python-exception"
    return None


def is_of_user(files: Sequence[str], frame: str) -> bool:
    """Return whether the innermost file of a traceback is the user's own code. ``files`` are the traceback's
    files, the innermost last. ``frame`` is the last frame in the user's code, such as ``train.py:12, in
    main``.
    """
    innermost = next(reversed(files), "")
    return bool(innermost) and frame.startswith(f"{innermost}:")


def is_raised_by_user(text: str, files: Sequence[str], frame: str, code: str) -> bool:
    """Return whether a statement ``raise`` in the user's code raised the exception in ``text``. ``code`` is
    the source code of the traceback's innermost frame.
    """
    raised, type_ = _RAISES.match(code), _TYPE.match(text)
    same = raised is not None and type_ is not None and raised["name"] == type_["name"]
    return same and is_of_user(files, frame)


def introduction(output: Output, clue: Clue) -> str | None:
    """Return the text of the line that the same process wrote before the traceback that ends with ``clue``;
    empty if there is no such line. Return ``None`` if ``clue`` is not the end of a traceback.
    """
    before = output.before(clue.position, _MOST)
    texts = ["", *(strip_label(line.text) for _, line in before if line.task == clue.line.task)]
    heads = [number for number, text in enumerate(texts) if text.startswith(HEAD)]
    if not heads or not texts[-1].startswith(" "):
        return None
    return texts[heads[-1] - 1]


def last_frame(output: Output, ending: Clue | None) -> Clue | None:
    """Return the last frame of a traceback that lacks its exception, at the end of the output or before
    ``ending`` (the line in which a launcher reports an exit); ``None`` without such a traceback.

    The file of the frame decides the fault class.
    """
    if ending and _RAISED.match(strip_label(ending.line.text)):
        return None  # ``ending`` is itself the exception of the traceback
    end = ending.position if ending else output.pages[-1].end if output.pages else 0
    near = [place for place in output.before(end, _LAST_LINES) if place[1].text.strip()]
    for number, (position, line) in enumerate(near):
        frame = FRAME.match(strip_label(line.text))
        code = [strip_label(after.text).startswith("   ") for _, after in near[number + 1 :]]
        if frame and code in ([], [True]):
            return Clue(position, line, class_of_files([frame["file"]]) or "python-exception", 3, "cause")
    return None
