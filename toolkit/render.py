"""Render Jinja templates, and quote words for a shell.

If a template uses an undefined name, :func:`render` fails.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from toolkit.data import shipped_folder
from toolkit.errors import BadInput

if TYPE_CHECKING:
    import jinja2

_SHOWN = 80


def render(kind: str, template: str, values: Mapping[str, object], *, one_line: bool = False) -> str:
    """Return the text of a template, filled with ``values``. ``template`` is a file in toolkit's folder
    ``kind``, such as ``slurm``.

    With ``one_line``, a value must not contain a line break, because Docker would read the text after the
    line break as an instruction.

    Raises:
        BadInput: with ``one_line``, if a value has a control character or a line break.
        jinja2.UndefinedError: if ``values`` lacks a name that the template uses.
    """
    return _environment(kind, one_line=one_line).get_template(template).render(values)


def load(kind: str, template: str) -> None:
    """Parse a template in advance, with the templates that it includes, so that a later :func:`render` is
    fast.
    """
    environment = _environment(kind, one_line=False)
    for name in (template, *environment.list_templates(filter_func=lambda name: name.startswith("parts/"))):
        environment.get_template(name)


def _printable(value: object) -> object:
    """Return ``value`` unchanged, after a check that its text is printable.

    Raises:
        BadInput: if the text of ``value`` has a control character or a line break of any kind.
    """
    text = str(value)
    if not text.isprintable():
        raise BadInput(
            f"{text[:_SHOWN]!a}: a value in a build file cannot contain a control character or a line break"
        )
    return value


def quote_word(word: object) -> str:
    """Quote one word, with any characters, for a POSIX shell.

    Raises:
        BadInput: the word has a NUL byte, which the argument of a command cannot contain.
    """
    text = str(word)
    if "\0" in text:
        raise BadInput(
            f"{text!r}: contains a NUL byte; remove the NUL byte, because a command cannot contain it"
        )
    return shlex.quote(text)


def quote_words(words: Iterable[object]) -> str:
    """Quote each word for a POSIX shell, and join the words with spaces."""
    return " ".join(quote_word(word) for word in words)


def quote_around(word: str, pieces: Mapping[str, str]) -> str:
    """Quote a word for a shell, and replace each key of ``pieces`` in the word with the key's value.

    The values are shell code, so they stay unquoted.
    """
    if not any(piece in word for piece in pieces):
        return quote_word(word)
    pattern = "|".join(re.escape(piece) for piece in sorted(pieces, key=len, reverse=True))
    parts = re.split(f"({pattern})", word)
    return "".join(pieces[part] if i % 2 else quote_word(part) for i, part in enumerate(parts) if part)


def with_variables(text: str) -> str:
    """Quote a text for a shell, but let the shell expand ``$NAME`` and ``${NAME}``.

    >>> print(with_variables("$WORK/a b"))
    "${WORK:?}"'/a b'
    """
    parts = re.split(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))", text)
    words = []
    for plain, braced, bare in zip(parts[::3], [*parts[1::3], None], [*parts[2::3], None], strict=True):
        words += [quote_word(plain)] if plain else []
        # With an unset or empty variable, ``$WORK/data`` is the wrong path. So ``:?`` makes the script exit.
        words += [f'"${{{braced or bare}:?}}"'] if braced or bare else []
    return "".join(words) or "''"


@cache
def _environment(kind: str, *, one_line: bool) -> "jinja2.Environment":
    import jinja2  # slow to import, and most commands render nothing

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(shipped_folder(kind)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - HTML escapes would be wrong in scripts; the filter `sh` quotes words
    )
    if one_line:
        environment.finalize = _printable
    environment.filters["sh"] = quote_word
    environment.filters["sh_words"] = quote_words
    return environment
