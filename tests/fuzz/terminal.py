"""Test that commands print no control character of a hostile image to a terminal."""

import json
import os
import pty
import random
import re
import unicodedata
from pathlib import Path

from tests import forked
from tests.fuzz.kind import Kind
from tests.unit.image.sifs import elf, sandbox

WEIGHT = 2.0
"""Relative frequency of the kind. It is low, because each case runs a command."""

_OWN = re.compile(r"\x1b\[(?:0|1|2|31|32|33)m")
"""Pattern of toolkit's own colour codes (toolkit/cli/frame/styles.py); ``TEXTS`` contains no such code."""
_FORMAT = frozenset(("Cc", "Cf", "Zl", "Zp"))
"""Unicode categories of characters that can change how a terminal shows other text."""
_HARMLESS = frozenset("\n\t\r")
"""Control characters that are allowed; a terminal writes the end of a line as ``\\r\\n``."""
TEXTS = (
    "\x1b]0;OWNED\x07",
    "\x1b[2J\x1b[1;1H",
    "\x1b[41m",
    "\x9b2J",
    "\u202e",
    "\u2066",
    "\u200b",
    "\u2028",
    "\x07",
    "\x08\x08\x08ok",
    "\x7f",
    "\x1bPq\x1b\\",
    "\U000e0041",
)
COMMANDS = (("image", "inspect"), ("doctor",), ("image", "verify"))


def controls(shown: bytes) -> list[str]:
    """Return each control character in the output once, as ASCII text, without toolkit's own colour codes."""
    text = _OWN.sub("", shown.decode("utf-8", "surrogateescape"))
    return [
        ascii(c) for c in dict.fromkeys(text) if c not in _HARMLESS and unicodedata.category(c) in _FORMAT
    ]


def shown(words: tuple[str, ...]) -> bytes:
    terminal, other = pty.openpty()
    child = forked.start(words, (other, other, other), env={**os.environ, "TERM": "xterm"})
    os.close(other)
    said = bytearray()
    try:
        while piece := os.read(terminal, 1 << 16):
            said += piece
    except OSError:  # Linux reports an error after the command has closed its side (pty(7))
        pass
    os.close(terminal)
    child.wait()
    return bytes(said)


def make(chance: random.Random, folder: Path) -> Path:
    """Write a sandbox image with control characters in every text that a command may print."""

    def text() -> str:
        return f"x{chance.choice(TEXTS)}y"

    files: dict[str, bytes | str] = {
        "/etc/os-release": f'ID={text()}\nVERSION_ID="{text()}"\nPRETTY_NAME={text()}\n',
        "/opt/toolkit/stack.json": json.dumps({"recipe": text(), "mpi": text(), "glibc": text()}),
        "/opt/toolkit/lock.json": json.dumps({"schema": text(), "recipe": text()}),
        "/.singularity.d/labels.json": json.dumps({text(): text()}),
        "/var/lib/dpkg/status": f"Package: libucx0\nStatus: install ok installed\nVersion: 1.{text()}\n\n",
        "/usr/lib/libmpi.so.40": elf(soname=text(), needed=(text(),), text=b"ompi_mpi_comm_world\0"),
        "/usr/bin/env": elf(needed=(text(),)),
        "/.singularity.d/env/90-environment.sh": f"export OMPI_MCA_btl='{text()}'\n",
    }
    return sandbox(folder / "sandbox", files)


def read(path: Path, number: int) -> str:
    words = (*COMMANDS[number % len(COMMANDS)], str(path))
    if found := controls(shown(words)):
        raise AssertionError(f"{' '.join(words[:-1])} writes to a terminal: {' '.join(found)}")
    return "clean"


KINDS = (Kind("terminal", WEIGHT, make, read),)
