"""Find files that a program names by absolute paths, and that are on this machine but not on the cluster."""

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.folders import has_file, is_below, is_system
from toolkit.job.project.code import Code
from toolkit.job.request.flags import Flags
from toolkit.run.command import Command, Runner

_LOOK_SECONDS = 30
_LOOK = 'n=0; for path; do test -e "$path" || break; n=$((n + 1)); done; printf "\\ntoolkit-there:%s\\n" "$n"'
_THERE = re.compile(r"^toolkit-there:(\d+)$", re.MULTILINE)
"""A pattern for the line that the command ``_LOOK`` prints; files such as ~/.bashrc may print other lines."""
_MOST = 20


def check_desk_paths(code: Code | None, flags: Flags, runner: Runner) -> None:
    """Raise an error if the program names a file on this machine by an absolute path that does not exist on
    the cluster.

    Raises:
        BadInput: if such a path is missing on the cluster. The error names the path. For a project file, the
            error also names the relative path.
    """
    if code is None or flags.force or not flags.sync:
        return
    places: dict[str, str] = {}
    for path, where in _paths(code):
        places.setdefault(path, where)
    paths = list(places)[:_MOST]
    if (number := _count_present(paths, runner)) < len(paths):
        path = paths[number]
        inside = is_below(path, str(code.root))
        raise BadInput(
            f"{places[path]}{path} is a file on this machine; {runner.place} does not have it",
            fix=f"use the relative path instead: {os.path.relpath(path, code.start)}"
            if inside
            else "copy the file into the project or to the cluster, and use the path of the copy instead",
        )


def _count_present(paths: list[str], runner: Runner) -> int:
    """Return the number of paths before the first path that does not exist on the cluster.

    One shell command checks all paths on the cluster. If the command prints no result, the function assumes
    that all paths exist.
    """
    if not paths:
        return 0
    look = Command.of("sh", "-c", _LOOK, "sh", *paths, timeout=_LOOK_SECONDS)
    match = _THERE.search(runner.run(look).require(f"looking for files on {runner.place}").text)
    return int(match[1]) if match else len(paths)


def _paths(code: Code) -> Iterator[tuple[str, str]]:
    """Yield absolute paths of files on this machine, each with the place where the program names the path.

    The place is ``FILE:LINE: `` for a path that a script certainly reads. The place is empty for a path in
    the command. The function omits paths in the command that are inside the project.
    """
    for facts in code.facts.facts:
        for need in facts.needs:
            if need.kind == "file" and _is_here(need.text):
                yield need.text, f"{code.shorten(need.file)}:{need.line}: "
    for word in code.words:
        for part in (word, word.partition("=")[2]):
            if _is_here(part) and not is_below(os.path.realpath(part), str(code.root.resolve())):
                yield part, ""


def _is_here(path: str) -> bool:
    return posixpath.isabs(path) and "\n" not in path and not is_system(path) and has_file(Path(path))
