"""Parse the output of the probe script, which has one section of raw lines for each query."""

import re
from dataclasses import dataclass

from toolkit.errors import CheckFailed

VERSION = "toolkit-probe/1"
TIMED_OUT = 124
NO_ANSWER = "no answer in time"
"""The reason for an unknown fact if the query exceeded its time limit."""
_NOT_FOUND = 127
_SAYS_NOT_FOUND = re.compile(r": (command )?not found\s*$")
"""A pattern for the shell's message about a missing program. Exit status 127 alone does not show that the
program is missing: if a library is missing, ld.so also exits with 127, but prints another message.
"""
_NOISE = re.compile(
    r"ERROR: ld\.so: object '[^']*' from LD_PRELOAD cannot be preloaded"
    r"|\S+: \S+: no version information available \(required by \S+\)$"
    r"|\S*sh: error importing function definition for "
    r"|\S*sh: \S+: line \d+: (?:syntax error|unexpected EOF)"
)
"""A pattern for messages that every program prints in a faulty environment.

Examples of faults: LD_PRELOAD names a missing file, such as XALT's library at some centres
(argonne-lcf/user-guides:docs/polaris/known-issues.md). LD_LIBRARY_PATH makes the system's shell load Conda's
libraries. An exported shell function such as ``module`` is incomplete (xonsh/xonsh:docs).
"""
_STATUS = re.compile(r"@rc (-?\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Section:
    """The answer to one query: its raw lines and its exit status."""

    name: str
    lines: tuple[str, ...] = ()
    status: int = _NOT_FOUND

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def missing(self) -> bool:
        """True if the shell did not find the query's program."""
        lines = [line for line in self.lines if line.strip()]
        return self.status == _NOT_FOUND and all(_SAYS_NOT_FOUND.search(line) for line in lines)

    @property
    def trouble(self) -> str:
        """The reason why the query has no answer; empty if the query has an answer."""
        if self.ok:
            return ""
        if self.status == TIMED_OUT:
            return NO_ANSWER
        return next((line for line in self.lines if line.strip()), f"exited with status {self.status}")

    def values(self, word: str) -> tuple[str, ...]:
        """Return the text after ``word`` and a space, for each line that starts with ``word`` and a space."""
        start = f"{word} "
        return tuple(line.removeprefix(start) for line in self.lines if line.startswith(start))


Sections = dict[str, Section]


def parse(text: str, place: str, *, cut: bool = False) -> Sections:
    """Parse the output of ``containers/probe.sh``, and ignore lines that a login shell prints before this
    output.

    ``cut`` is true if toolkit stopped the probe script at the time limit. In this case, the result contains
    only the sections that the script finished.

    Raises:
        CheckFailed: if the start of the output is missing, or if the end is missing and ``cut`` is false.
            Without this check, toolkit would report installed software as absent.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if VERSION not in lines:
        shown = [line for line in lines if line.strip()][-5:]
        raise CheckFailed(
            f"{place}: the probe did not answer",
            fix="check that the probed host can start a POSIX shell",
            detail=shown,
        )
    body = lines[lines.index(VERSION) + 1 :]
    if "@end" in body:
        return dict(_sections(body[: body.index("@end")]))
    if cut:
        return dict(_sections(body))
    raise CheckFailed(
        f"{place}: the output of the probe is incomplete: it ended after {len(body)} lines",
        fix="run the same command again",
    )


def _sections(lines: list[str]) -> list[tuple[str, Section]]:
    sections: list[tuple[str, Section]] = []
    name = ""
    raw: list[str] = []
    for line in lines:
        if line.startswith("@ "):
            name, raw = line[2:].strip(), []
        elif line.startswith("|"):
            if not _NOISE.match(line, 1):
                raw.append(line[1:])
        elif rc := _STATUS.fullmatch(line):
            sections.append((name, Section(name, tuple(raw), int(rc[1]))))
    return sections
