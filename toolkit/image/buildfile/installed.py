"""List the packages that a build file (Dockerfile or definition file) installs, with their versions."""

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from toolkit.image.buildfile.known import Installer, buildfiles
from toolkit.image.buildfile.steps import BuildStep, commands

_INSTALLERS: dict[str, Installer] = {
    "apt": "apt", "apt-get": "apt", "aptitude": "apt", "dnf": "dnf", "yum": "dnf", "microdnf": "dnf",
    "zypper": "dnf", "conda": "conda", "mamba": "conda", "micromamba": "conda", "pip": "pip", "pip3": "pip",
}  # fmt: skip
_LISTS: dict[Installer, frozenset[str]] = {
    "pip": frozenset({"-r", "--requirement"}),
    "conda": frozenset({"-f", "--file"}),
}
"""Options of pip and conda whose value is a file that lists packages."""
_VALUED: dict[Installer, frozenset[str]] = {
    "pip": frozenset({"-c", "-f", "-i", "-t", "--index-url", "--extra-index-url", "--target"}),
    "conda": frozenset({"-c", "-n", "-p", "--channel", "--name", "--prefix"}),
    "apt": frozenset({"-t", "-o"}),
}
"""Options of pip, conda and apt whose value is not the name of a package."""
_VERBS = {"install", "create", "env", "in", "update"}
_PACKAGE = re.compile(
    r"([A-Za-z0-9][\w.+-]*?)(?:\[[^\]]*\])?\s*(?:(?:={1,3}|~=)\s*v?([0-9][\w.+!~:-]*).*|[<>!@;].*|)"
)

ListReader = Callable[[str], str | None]
"""A function that returns the text of a package list, such as ``requirements.txt``. The function looks in the
folder of the build file. The result is None if this folder does not contain the list.
"""


@dataclass(frozen=True, slots=True)
class PackageInstall:
    """A package that a build file installs. If the build file compiles an MPI from source code, the MPI has
    the installer ``source``.

    ``line`` is the first line of the build step. ``order`` is the number of the command that installs the
    package, counted from 0 over all commands of the build file.
    """

    installer: Installer | Literal["source"]
    name: str
    version: str
    line: int
    order: int


@dataclass(frozen=True, slots=True)
class UnreadList:
    """A package list that a build file names, but that is not in the folder of the build file."""

    name: str
    line: int


def package_installs(steps: tuple[BuildStep, ...], read: ListReader) -> Iterator[PackageInstall | UnreadList]:
    """Yield each package that a build file's steps install, each MPI that they compile, and each package list
    that ``read`` cannot find.
    """
    run = (step for step in steps if step.kind == "run")
    for order, (line, words) in enumerate(
        (step.line, words) for step in run for words in commands(step.text)
    ):
        yield from _of_command(words, (line, order), read)
        for row in buildfiles().archive:
            if match := re.search(row.pattern, " ".join(words)):
                yield PackageInstall("source", row.mpi, match["version"], line, order)


_Place = tuple[int, int]
"""The place of a command: the line of its step, and the number of the command in the build file, from 0."""


def _of_command(words: list[str], place: _Place, read: ListReader) -> Iterator[PackageInstall | UnreadList]:
    program = posixpath.basename(words[0])
    if re.fullmatch(r"python[\d.]*", program) and words[1:3] == ["-m", "pip"]:
        words, program = words[2:], "pip"
    elif program == "uv" and words[1:2] == ["pip"]:
        words, program = words[1:], "pip"
    installer = _INSTALLERS.get(program)
    if installer is None or not _VERBS & set(words[1:4]):
        return
    none: frozenset[str] = frozenset()
    before = ""
    for word in words[1:]:
        if before in _LISTS.get(installer, none):
            yield from _of_list(word, installer, place, read)
        elif before not in _VALUED.get(installer, none) and word not in _VERBS and not word.startswith("-"):
            yield from _package(word, installer, place)
        before = word


def _of_list(
    name: str, installer: Installer, place: _Place, read: ListReader
) -> Iterator[PackageInstall | UnreadList]:
    text = read(name)
    if text is None:
        yield UnreadList(name, place[0])
        return
    of_pip = False
    for line in text.splitlines():
        bare = line.partition("#")[0].strip()
        if installer == "conda":
            of_pip = of_pip or bare.rstrip(":") == "- pip"
            bare = bare.removeprefix("- ") if bare.startswith("- ") else ""
        if bare and not bare.startswith("-"):
            yield from _package(bare, "pip" if of_pip else installer, place)


def _package(word: str, installer: Installer, place: _Place) -> Iterator[PackageInstall]:
    word = word.rpartition("::")[2]
    if match := _PACKAGE.fullmatch(word):
        yield PackageInstall(installer, match[1].lower(), _plain(match[2] or "", installer), *place)


def _plain(version: str, installer: Installer) -> str:
    """Return the version of an apt package without Debian's epoch and revision, or the version of a conda
    package without the build string. Versions of other installers are unchanged.
    """
    if installer == "apt":
        return re.sub(r"^\d+:|[-+~].*$", "", version)
    return version.partition("=")[0].rstrip(".*") if installer == "conda" else version
