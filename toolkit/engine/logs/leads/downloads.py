"""Find the failed network request that prevented a program from loading its model, data or packages."""

import re
from collections.abc import Sequence

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Output

_BEFORE = 100
"""Maximum number of lines between a failed request and the error that follows from it."""

_LACKS = re.compile(
    r"(?i)^(?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Exception): .{0,80}\b(?:can.t|cannot|could ?n.t|could not"
    r"|unable to|failed to) (?:load|find|fetch|download|reach)\b"
)
"""A pattern for an error such as ``OSError: Can't load ...``. A failed download may be the cause."""

_REQUEST = re.compile(
    r" thrown while requesting [A-Z]{3,7} http|^(?:WARNING: )?Retrying \(Retry\(.{1,200}\)\) after connection"
    r" broken by "
)
"""A pattern for the warning in which a library names a failed request. Such a warning is from
huggingface_hub, or from urllib3 in pip, wandb and other programs.
"""


def failed_request_before(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the first failed network request shortly before ``clue``; ``None`` without such a request. The
    result is also ``None`` if ``clue`` does not report that a program could not load something.
    """
    del causes  # a failed request is a warning, because the library may try again
    text = strip_label(clue.line.text)
    if clue.class_ == "network-or-dns" or not _LACKS.match(text):
        return None
    for position, line in output.before(clue.position, _BEFORE):
        if line.task == clue.line.task and _REQUEST.search(strip_label(line.text)):
            return Clue(position, line, "network-or-dns", 5, "cause")
    return None
