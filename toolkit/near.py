"""Suggest a similar word for a mistyped word."""

from collections.abc import Iterable


def suggest_near(word: str, choices: Iterable[str]) -> str:
    """Return `` (did you mean X?)`` if the choice X is similar to the word; otherwise empty text.

    >>> suggest_near("imgae", ("image", "init"))
    ' (did you mean image?)'
    """
    # difflib is slow to import, and needed only for a mistyped word.
    import difflib

    close = difflib.get_close_matches(word, list(choices), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
