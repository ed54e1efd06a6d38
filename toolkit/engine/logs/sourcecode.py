"""Recognise lines of source code in job output. Words of failure in source code report no failure."""

import re

_RAISES = re.compile(r"(?:\[[^\]\s]{1,60}\]){1,3}:?\s{2,}raise [A-Za-z_][\w.]*(?:\(|$| from )")
"""A pattern for the indented source code of a Python frame after the label of another program."""

_STATEMENT = re.compile(
    r"['\"].{0,300}[)'\"\]}] ?;(?: ?(?:end|\}))?$"  # a statement of C, MATLAB or a similar language
    r"|^\s*(?:\w+ ?= ?)?[a-z_][\w.]{0,60}\(.{0,40}(['\"]).{0,400}\1[^)]{0,40}\){1,4};?$"  # a call with a text
    r"|^\s*(?:if|elif|while|for|switch|catch)\b.{1,300}\) ?\{$"
)
"""A pattern for a statement that may contain words of failure."""


def is_code(text: str) -> bool:
    """Return whether a line with only general words of failure looks like a statement of source code."""
    return _STATEMENT.search(text) is not None


def raises(text: str) -> bool:
    """Return whether a line with a label is Python source code that raises an exception."""
    return _RAISES.match(text) is not None
