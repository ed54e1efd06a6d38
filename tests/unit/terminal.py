"""Run a command on a pseudo-terminal, and check that its output does not control the terminal."""

import os
import pty
import re
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from tests import forked

ROOT = Path(__file__).parents[2]

FORGED = "FORGED"
STEERING = "x\x1b]0;OWNED\x07\x1b[2J\x1b[1;1H\x1b[31m\x9b2J\u202e\u200b\x7f\U000e0041"
"""Text with control codes for title, erasure, cursor, colour, text direction, and invisible characters."""
HOSTILE = f"{STEERING}\n{FORGED} ok\r{FORGED} ok\u2028{FORGED} ok"
"""Control codes, and line breaks before a forged line that looks like a line of toolkit."""

_TOOLKIT_OWN = re.compile(
    r"\x1b\[(?:0|1|2|31|32|33)m"  # toolkit.cli.frame.styles
    r"|\x1b\[\?25[hl]|\x1b\[2K|\x1b\[1A|\r"  # codes of the live line in toolkit.report.progress
)
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def on_a_terminal(words: Sequence[str], typed: str = "", **env: str) -> bytes:
    """Run ``toolkit`` with all three streams on a pseudo-terminal, and return the written bytes.

    ``typed`` are a user's key presses, which the terminal prints, too. Colours are off unless ``env`` has
    ``NO_COLOR=""``. The key ``code`` of ``env`` is Python code to run instead of ``toolkit``. The program
    runs in a forked process or, if ``env`` has a variable that begins with PYTHON, in a new Python.
    """
    code = env.pop("code", "")
    usual = {"TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    whole = {**os.environ, **usual, **env}
    ours, theirs = pty.openpty()
    streams = (theirs, theirs, theirs)
    process: forked.Forked | subprocess.Popen[bytes]
    if any(name.startswith("PYTHON") for name in env):
        program = ["-c", code] if code else ["-m", "toolkit", *words]
        process = subprocess.Popen(
            [sys.executable, *program],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=whole,
            start_new_session=True,
        )
    else:
        process = forked.start(words, streams, env=whole, code=code)
    os.close(theirs)
    os.write(ours, typed.encode())
    written = bytearray()
    try:
        while chunk := os.read(ours, 1 << 16):
            written += chunk
    except OSError:  # EIO: the last process on the terminal has exited
        pass
    os.close(ours)
    process.wait(60)
    return bytes(written)


def assert_harmless(written: bytes, *, live: bool = False) -> None:
    """Fail if bytes for a terminal contain control codes, hidden characters, or a forged line.

    ``live`` allows the codes with which toolkit colours text and redraws its progress line.
    """
    text = written.decode().replace("\r\n", "\n")
    if live:
        text = _TOOLKIT_OWN.sub("\n", text)
    hidden = {c for c in text if c not in "\n\t" and unicodedata.category(c) in _HIDDEN}
    assert not hidden, f"{sorted(map(ascii, hidden))} in {written!r}"
    forged = [line for line in text.splitlines() if line.strip().startswith(FORGED)]
    assert not forged, f"{forged} in {written!r}"
