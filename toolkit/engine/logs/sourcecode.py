"""Recognise lines of source code in job output. A word such as "error" in source code reports no failure."""

import re

_RAISES = re.compile(r"(?:\[[^\]\s]{1,60}\]){1,3}:?\s{2,}raise [A-Za-z_][\w.]*(?:\(|$| from )")
"""A pattern for a label such as ``[node1]:``, an indent, and a ``raise`` statement of Python."""

_STATEMENT = re.compile(
    r"['\"].{0,300}[)'\"\]}] ?;(?: ?(?:end|\}))?$"  # a statement of C, MATLAB or a similar language
    r"|^\s*(?:\w+ ?= ?)?[a-z_][\w.]{0,60}\(.{0,40}(['\"]).{0,400}\1[^)]{0,40}\){1,4};?$"  # a call with text
    r"|^\s*(?:if|elif|while|for|switch|catch)\b.{1,300}\) ?\{$"
)
"""A pattern for a statement of source code."""


def is_code(text: str) -> bool:
    """Return whether a line looks like a statement of source code."""
    return _STATEMENT.search(text) is not None


def raises(text: str) -> bool:
    """Return whether a line is a label followed by a ``raise`` statement of Python."""
    return _RAISES.match(text) is not None
