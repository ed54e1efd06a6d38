"""Build the program that connects ranks through Gloo in an image without toolkit's trainers."""

import re
from functools import cache

from toolkit.data import package

_IMPORT = re.compile(r"^from toolkit\.trainers\.rendezvous import \([^)]*\)\n", re.MULTILINE)
_FUTURE = "from __future__ import annotations\n"


@cache
def gloo_program() -> str:
    """Return the text of ``gloo.py``, with the text of ``rendezvous.py`` instead of the statement that
    imports from ``rendezvous.py``.
    """
    folder = package() / "trainers"
    program, found = ((folder / f"{name}.py").read_text(encoding="utf-8") for name in ("gloo", "rendezvous"))
    whole, count = _IMPORT.subn(lambda _: found.replace(_FUTURE, ""), program)
    assert count == 1, "gloo.py must import rendezvous.py once"  # noqa: S101 - toolkit's own files
    return whole
