"""Suggest a similar word for a mistyped word."""

from collections.abc import Iterable


def suggest_near(word: str, choices: Iterable[str]) -> str:
    """Return `` (did you mean X?)`` if one of the choices, X, is similar to the word. Otherwise, return an
    empty string.

    >>> suggest_near("imgae", ("image", "init"))
    ' (did you mean image?)'
    """
    # Import difflib only for a mistyped word, because the import is slow.
    import difflib

    close = difflib.get_close_matches(word, list(choices), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
