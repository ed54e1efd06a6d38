"""Draw what a command prints: ``python -m docs.generate.terminal -o FILE.svg [--dark] -- COMMAND…``.

The command runs in a terminal of 80 columns. The picture uses no font from the network.
"""

import argparse
import os
import pty
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

WIDTH = 80
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}\n", re.DOTALL)
_SPACE = "&#160;"
_INDENTED = re.compile(rf'x="([\d.]+)"([^>]*)textLength="([\d.]+)"([^>]*)>((?:{_SPACE})+)(?=[^<])')
_CELL = 12.2
"""The width of a character in the pictures of rich."""
_LIGHT = TerminalTheme(
    (255, 255, 255),
    (36, 41, 47),
    [(36, 41, 47), (180, 30, 40), (20, 110, 50), (140, 90, 0), (9, 80, 180), (120, 60, 170), (20, 110, 120),
     (90, 97, 106)],
)  # fmt: skip


def picture(output: str, title: str, *, dark: bool = False) -> str:
    """Return an SVG picture of ``output``, which a command printed; ECMA-48 escapes in it set the colours."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        for line in output.splitlines():
            console.print(Text.from_ansi(line), soft_wrap=True)
        theme = SVG_EXPORT_THEME if dark else _LIGHT
        made = console.export_svg(title=title, theme=theme, unique_id="terminal")
    made = re.sub(r"\s*<!-- Generated.*?-->", "", _FONT_FACE.sub("", made))
    return _INDENTED.sub(_moved, made.replace("Fira Code, monospace", "monospace"))


def _moved(found: re.Match[str]) -> str:
    """Return a text whose leading spaces are replaced by a shift to the right, because some renderers drop
    them."""
    x, middle, length, rest, spaces = found.groups()
    by = _CELL * len(spaces) / len(_SPACE)
    return f'x="{float(x) + by:g}"{middle}textLength="{float(length) - by:g}"{rest}>'


def printed(words: list[str]) -> str:
    """Return what a command prints in a terminal of :data:`WIDTH` columns."""
    os.environ |= {"COLUMNS": str(WIDTH), "LINES": "100", "TERM": "xterm"}
    parts: list[bytes] = []

    def read(descriptor: int) -> bytes:
        part = os.read(descriptor, 1 << 16)
        parts.append(part)
        return b""

    pty.spawn(words, read)
    return b"".join(parts).decode().replace("\r\n", "\n")


def main(arguments: list[str]) -> None:
    """Write the picture of the command that follows ``--`` in the arguments."""
    cut = arguments.index("--")
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--title", default="")
    given = parser.parse_args(arguments[:cut])
    words = arguments[cut + 1 :]
    given.output.write_text(picture(printed(words), given.title or " ".join(words), dark=given.dark))


if __name__ == "__main__":
    main(sys.argv[1:])
