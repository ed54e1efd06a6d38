"""Guess the intended word among some words."""

from collections.abc import Iterable


def suggest_near(word: str, choices: Iterable[str]) -> str:
    """Return `` (did you mean X?)`` if one of the choices is close.

    >>> suggest_near("imgae", ("image", "init"))
    ' (did you mean image?)'
    """
    # Imported here because the module is slow to import and needed only for a mistyped word.
    import difflib

    close = difflib.get_close_matches(word, list(choices), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
