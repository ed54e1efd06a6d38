"""Parse and match patterns of ``.gitignore`` and ``.toolkitignore`` files (gitignore(5))."""

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """The pattern of one line in an ignore file.

    If ``negated`` is true, the line starts with ``!``: a matching path is not ignored, even if an earlier
    pattern matches the path. If ``folders`` is true, the pattern matches only folders.
    """

    matcher: re.Pattern[str]
    negated: bool = False
    folders: bool = False

    def matches(self, path: str, *, folder: bool) -> bool:
        """Return whether the pattern matches a path, which is relative to the folder of the ignore file."""
        return (folder or not self.folders) and self.matcher.fullmatch(path) is not None


def patterns(text: str) -> tuple[Pattern, ...]:
    """Return the patterns in the text of an ignore file, in the file's order."""
    return tuple(pattern for line in text.splitlines() if (pattern := _pattern(line)) is not None)


def decision(rules: Iterable[Pattern], path: str, *, folder: bool) -> bool | None:
    """Return whether the last matching pattern ignores a path. Return ``None`` if no pattern matches."""
    last = None
    for pattern in rules:
        if pattern.matches(path, folder=folder):
            last = not pattern.negated
    return last


def _pattern(line: str) -> Pattern | None:
    text = re.sub(r"(?<!\\)[ \t]+$", "", line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    folders = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    anchored = "/" in text
    body = _body(text.removeprefix("/"))
    return Pattern(re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL), negated, folders)


def _body(text: str) -> str:
    """Return the regular expression for a pattern's text, which has no leading or trailing slash."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        if text.startswith("**/", at) and at in {0, *_after_slash(text, at)}:
            parts.append("(?:.*/)?")
            at += 3
        elif text.startswith("/**", at) and at + 3 == len(text):
            parts.append("/.+")
            at += 3
        elif text[at] == "*":
            while text[at : at + 1] == "*":
                at += 1
            parts.append("[^/]*")
        elif text[at] == "?":
            parts.append("[^/]")
            at += 1
        elif text[at] == "[" and (end := _end_of_set(text, at)):
            parts.append(_set(text[at + 1 : end]))
            at = end + 1
        else:
            at += text[at] == "\\" and at + 1 < len(text)
            parts.append(re.escape(text[at]))
            at += 1
    return "".join(parts)


def _after_slash(text: str, position: int) -> set[int]:
    return {position} if position and text[position - 1] == "/" else set()


def _end_of_set(text: str, position: int) -> int:
    """Return the index of the ``]`` at the end of the ``[…]`` set that starts at ``position``.

    Return 0 if the set has no end.
    """
    start = position + 1 + (text[position + 1 : position + 2] in {"!", "^"})
    return max(text.find("]", start + 1), 0)


def _set(body: str) -> str:
    negated = body[0] in "!^"
    inner = re.sub(r"([\\\[\]&~|^])", r"\\\1", body[1:] if negated else body)
    try:
        re.compile(f"[{inner}]")
    except re.error:
        return re.escape(f"[{body}]")
    return f"(?!/)[{'^' if negated else ''}{inner}]"
