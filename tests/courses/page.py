"""Parse a lesson: commands with their shown output, files that the reader writes, and plots to keep.

Plots to keep are files that commands write, and that the page then shows as pictures.
"""

import re
from dataclasses import dataclass, field

_FENCE = re.compile(r"^( *)(`{3,})\s*(.*?)\s*$")
_TITLE = re.compile(r'title="([^"]+)"')
_KEEP = re.compile(r"^<!-- keep: (\S+) as (\S+) -->$")
_STATUS = re.compile(r"\s# ends with (\d+)$")
_PROMPT = "$ "


class WrongPage(ValueError):
    """The lesson cannot be parsed; the message has the file and the line."""


@dataclass(frozen=True)
class Command:
    """A command ``text`` as typed; the page shows its output in the lines ``first`` to ``last`` - 1.

    ``indent`` is the indentation of the block; ``text`` and ``shown`` do not include it.
    """

    line: int
    text: str
    first: int
    last: int
    shown: tuple[str, ...]
    indent: str = ""

    @property
    def status(self) -> int:
        """Return the exit status that the page states for the command."""
        found = _STATUS.search(self.text)
        return int(found[1]) if found else 0


@dataclass(frozen=True)
class File:
    """A file that the reader writes before the next commands."""

    line: int
    path: str
    text: str


@dataclass(frozen=True)
class Keep:
    """A file that earlier commands wrote, and its name in the page's folder."""

    line: int
    made: str
    kept: str


Step = Command | File | Keep


@dataclass
class _Block:
    line: int
    indent: str
    ticks: str
    info: str
    lines: list[str] = field(default_factory=list)


def steps(text: str, name: str = "page") -> list[Step]:
    """Return the steps of a lesson, in the order of the page; lines are counted from 1.

    Raises:
        WrongPage: if a block does not end, output comes before the first command, or a path is outside the
            folder.
    """
    found: list[Step] = []
    block: _Block | None = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if block is None:
            if fence:
                block = _Block(number, fence[1], fence[2], fence[3])
            elif keep := _KEEP.match(line.strip()):
                found.append(Keep(number, _inside(keep[1], name, number), _inside(keep[2], name, number)))
        elif fence and fence[2] == block.ticks and not fence[3]:
            found.extend(_of_block(block, name))
            block = None
        else:
            block.lines.append(line.removeprefix(block.indent))
    if block:
        raise WrongPage(f"{name}:{block.line}: the block has no end")
    return found


def _of_block(block: _Block, name: str) -> list[Step]:
    if title := _TITLE.search(block.info):
        path = _inside(title[1], name, block.line)
        return [File(block.line, path, "".join(f"{line}\n" for line in block.lines))]
    if block.info.split(" ")[0] == "console":
        return [*_commands(block, name)]
    return []


def _commands(block: _Block, name: str) -> list[Command]:
    found: list[Command] = []
    at = 0
    while at < len(block.lines):
        begun = at
        if not block.lines[at].startswith(_PROMPT):
            raise WrongPage(f"{name}:{block.line + 1 + at}: output before the first command of its block")
        typed = [block.lines[at].removeprefix(_PROMPT)]
        while typed[-1].endswith("\\") and at + 1 < len(block.lines):
            at += 1
            typed.append(block.lines[at])
        at = first = at + 1
        while at < len(block.lines) and not block.lines[at].startswith(_PROMPT):
            at += 1
        # block.line, the line number of the fence, equals the list index of the line after the fence.
        shown = tuple(block.lines[first:at])
        offset = block.line
        found.append(
            Command(
                block.line + 1 + begun, "\n".join(typed), first + offset, at + offset, shown, block.indent
            )
        )
    return found


def _inside(path: str, name: str, line: int) -> str:
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        raise WrongPage(f"{name}:{line}: {path} is outside the reader's folder")
    return path


def written(text: str, outputs: list[tuple[Command, list[str]]]) -> str:
    """Return the page's text with the new output of these commands."""
    lines = text.splitlines()
    for command, output in sorted(outputs, key=lambda pair: pair[0].first, reverse=True):
        lines[command.first : command.last] = [(command.indent + line).rstrip() for line in output]
    return "".join(f"{line}\n" for line in lines)
