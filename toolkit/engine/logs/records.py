"""Read the level, the message and the reason of a structured log line: a JSON object, or fields such as
``level=error msg="..."``.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

_LEVELS = ("level", "severity", "levelname", "lvl", "log_level", "loglevel", "log.level", "level_name")
_MESSAGES = ("message", "msg", "event", "text", "short_message")
_REASONS = ("error", "err", "exception", "exc_info", "reason")
"""The names of the fields with the level, the message and the reason of a log line, in lower case."""

_SIGNS = ("level", "severity", "lvl", "LEVEL")
"""Every structured log line contains at least one of these texts. toolkit first searches for these texts,
because this is faster than parsing the line.
"""

_WORDS = {
    **dict.fromkeys(
        ("error", "err", "eror", "fatal", "critical", "crit", "panic", "severe", "alert"), "error"
    ),
    **dict.fromkeys(("warning", "warn"), "WARNING"),
    **dict.fromkeys(("info", "information", "notice"), "INFO"),
    **dict.fromkeys(("debug", "dbug", "trace"), "DEBUG"),
}

_OF_PODMAN = frozenset({"time", "level", "msg"})
"""The fields of a line that podman and other container tools log. :func:`~.clues.strip_label` reads such
lines, so this module ignores them.
"""

_STRING = re.compile(r'"(?P<key>[\w.@]{1,40})": ?"(?P<value>(?:[^"\\]|\\.){0,2000})')
"""A pattern for a field with a text in a JSON object whose end is missing."""

_FIELD = re.compile(
    r"(?P<key>[A-Za-z][\w.]{0,40})="
    r'(?:"(?P<quoted>(?:[^"\\]|\\.){0,2000})"|(?P<plain>[^\s"]{0,400}))(?: +|$)'
)


class Record(NamedTuple):
    """A structured log line. ``level`` is ``error`` for all levels that report an error, such as ``fatal``;
    for other levels, it is ``WARNING``, ``INFO`` or ``DEBUG``. ``reason`` is the last line of the field that
    gives the reason, such as a traceback; it is empty without such a field.
    """

    level: str
    message: str
    reason: str


def read_record(text: str) -> Record | None:
    """Return the level, the message and the reason of a structured log line. The result is ``None`` for other
    lines, and for lines without a message or with an unknown level.
    """
    if not any(sign in text for sign in _SIGNS):
        return None
    fields = _json_fields(text) if text.startswith("{") else _logfmt_fields(text)
    level = next((fields[name].lower() for name in _LEVELS if name in fields), "")
    message = next((fields[name] for name in _MESSAGES if fields.get(name)), "")
    if not message or level not in _WORDS:
        return None
    reason = next((fields[name] for name in _REASONS if fields.get(name)), "")
    last = reason.replace("\\n", "\n").strip().rpartition("\n")[2]
    return Record(_WORDS[level], message, last)


def _json_fields(text: str) -> Mapping[str, str]:
    """Return the fields of a JSON object whose values are texts; the end of the object may be missing."""
    try:
        found = json.loads(text)
    except ValueError:
        return {one["key"].lower(): one["value"] for one in _STRING.finditer(text)}
    values = found.items() if isinstance(found, dict) else ()
    return {key.lower(): value for key, value in values if isinstance(value, str)}


def _logfmt_fields(text: str) -> Mapping[str, str]:
    """Return the fields of a line that consists only of fields ``key=value``; empty for other lines and for
    the lines of podman.
    """
    fields, at = dict[str, str](), 0
    while at < len(text):
        found = _FIELD.match(text, at)
        if found is None:
            return {}
        fields[found["key"].lower()] = found["quoted"] if found["plain"] is None else found["plain"]
        at = found.end()
    return {} if fields.keys() == _OF_PODMAN else fields
