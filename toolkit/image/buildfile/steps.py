"""Split a build file (Dockerfile or Apptainer definition file) into its steps.

Sources: https://docs.docker.com/reference/dockerfile/, https://apptainer.org/docs/user/latest/definition_files.html
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["from", "run", "env", "copy", "other"]

_NAMES = re.compile(r"(?i)(?:.*[./-])?(?:dockerfile|containerfile)(?:[./-].*)?|.*\.(?:dockerfile|def)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?")
_KINDS: dict[str, Kind] = {"FROM": "from", "RUN": "run", "ENV": "env", "COPY": "copy", "ADD": "copy"}
_SECTION = re.compile(r"%(\w+)")


@dataclass(frozen=True, slots=True)
class BuildStep:
    """A step of a build file: an instruction of a Dockerfile, or a command in a definition file.

    ``line`` is the number of the step's first line. ``stage`` is the number of the build stage, from 0.
    """

    line: int
    kind: Kind
    text: str
    stage: int = 0


def is_buildfile(name: str) -> bool:
    """Return whether a file has the usual name of a Dockerfile or an Apptainer definition file."""
    return _NAMES.fullmatch(name.rpartition("/")[2]) is not None


def steps(name: str, text: str) -> tuple[BuildStep, ...]:
    """Return the steps of a build file, with variables replaced by their values. A ``name`` that ends with
    ``.def`` means a definition file; any other name means a Dockerfile.
    """
    raw_steps = _definition(text) if name.endswith(".def") else _dockerfile(text)
    return tuple(_substitute_variables(raw_steps))


def _dockerfile(text: str) -> Iterator[BuildStep]:
    stage = -1
    for line, words in _join_lines(text.splitlines()):
        keyword, _, rest = words.partition(" ")
        kind = _KINDS.get(keyword.upper(), "other")
        if keyword.upper() == "ARG":
            kind = "env"
        stage += kind == "from"
        yield BuildStep(line, kind, rest.strip(), max(stage, 0))


def _definition(text: str) -> Iterator[BuildStep]:
    stage, section = -1, ""
    header: dict[str, tuple[int, str]] = {}
    for line, words in _join_lines(text.splitlines()):
        if match := _SECTION.match(words):
            if header:
                stage += 1
                yield from _header(header, stage)
                header = {}
            section = match[1].lower()
            continue
        key, colon, value = words.partition(":")
        if colon and key.strip().lower() in {"bootstrap", "from", "osversion", "stage"}:
            if key.strip().lower() == "bootstrap":
                section = ""
            if not section:
                header[key.strip().lower()] = (line, value.strip())
                continue
        if section in {"post", "environment", "files"}:
            kind: Kind = {"post": "run", "environment": "env", "files": "copy"}[section]  # type: ignore[assignment]
            yield BuildStep(line, kind, words.removeprefix("export ").strip(), max(stage, 0))
    if header:
        yield from _header(header, stage + 1)


def _header(header: dict[str, tuple[int, str]], stage: int) -> Iterator[BuildStep]:
    """Yield the step that names a definition file's base image: the value of ``From``, or the release that
    debootstrap or yum installs.
    """
    line, agent = header.get("bootstrap", (1, "docker"))
    at, name = header.get("from", (line, ""))
    if agent in {"debootstrap", "yum"}:
        at, release = header.get("osversion", (line, "unknown"))
        yield BuildStep(at, "from", f"{'debian' if agent == 'debootstrap' else 'centos'}:{release}", stage)
    else:
        label = f" AS {header['stage'][1]}" if "stage" in header else ""
        yield BuildStep(at, "from", f"{name or agent}{label}", stage)


def _join_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the first line's number and the text of each instruction. The text joins continued lines, and has
    no comments.
    """
    waiting, begun, until = "", 0, ""
    for number, line in enumerate(lines, 1):
        if until:
            waiting += f"\n{line}" if line.strip() != until else ""
            if line.strip() == until:
                until = ""
                yield begun, waiting
                waiting = ""
            continue
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        begun = begun if waiting else number
        more = bare.endswith("\\")
        waiting = f"{waiting} {bare.removesuffix(chr(92)).strip()}".strip()
        if not more and (heredoc := _HEREDOC.search(waiting)) and waiting.upper().startswith("RUN"):
            until, waiting = heredoc[1], "RUN "
        elif not more:
            yield begun, waiting
            waiting = ""
    if waiting:
        yield begun, waiting


def _substitute_variables(raw_steps: Iterator[BuildStep]) -> Iterator[BuildStep]:
    values: dict[str, str] = {}
    for step in raw_steps:
        text = _fill_variables(step.text, values)
        values.update(assignments(step.kind, text))
        yield replace(step, text=text)


def _fill_variables(text: str, values: dict[str, str]) -> str:
    """Return a text with its variables replaced by their values. Values may contain other variables, up to
    three levels deep.
    """
    known = values | assignments("run", text)
    for _ in range(3):
        text = _VARIABLE.sub(lambda m: known.get(m[1] or m[3], m[2] if m[2] is not None else m[0]), text)
    return text


def assignments(kind: Kind, text: str) -> dict[str, str]:
    """Return the variables that a step sets, with their values."""
    if kind == "env" and "=" not in text:
        name, _, value = text.partition(" ")
        return {name: value.strip()} if value.strip() else {}
    pattern = r"(?:^|[\s;&])(?:export\s+|ARG\s+|ENV\s+)?([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s;&]*)"
    pairs = re.findall(pattern, text) if kind in {"env", "run"} else []
    return {name: value.strip("\"'") for name, value in pairs}


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command in a shell text, such as ``["pip", "install", "torch"]``. The words
    omit leading assignments (``NAME=value``) and prefixes such as ``sudo``.
    """
    for part in re.split(r"&&|\|\||[;|\n]", text):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:  # the split at shell operators may cut a quoted string in two
            words = part.split()
        while words and (re.match(r"\w+=", words[0]) or words[0] in {"sudo", "env", "exec", "time", "("}):
            words = words[1:]
        if words:
            yield words
