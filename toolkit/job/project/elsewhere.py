"""Find modules of the user's project in folders that Python does not search."""

import os
from collections.abc import Iterator
from pathlib import Path

from toolkit.folders import has_folder, is_below
from toolkit.job.project.code import Code
from toolkit.job.project.roots import enclosing_folders
from toolkit.render import quote_word

_MOST_FOLDERS = 200


def fix_for_module(code: Code, package: str) -> str:
    """Return a fix that names the option ``--env PYTHONPATH=…`` with which Python finds a project module.

    The result is empty if toolkit does not find the module.
    """
    holder = next((folder for folder in _folders(code) if _holds(folder, package)), None)
    if holder is None:
        return ""
    place = os.path.relpath(holder, code.start)
    wider = "" if is_below(str(holder), str(code.root)) else f" --project {quote_word(place)}"
    folder = "the current folder" if place == "." else place
    why = f"{folder} has the module, but Python does not search this folder"
    return f"give `--env PYTHONPATH={quote_word(place)}{wider}`: {why}"


def _folders(code: Code) -> Iterator[Path]:
    """Yield the folders that may contain a module.

    These are the start folder and its subfolders, then the parents of each script's folder, then the parents
    of the start folder.
    """
    yield code.start
    try:
        below = sorted(
            entry for entry in code.start.iterdir() if has_folder(entry) and entry.name[0] not in "._"
        )
    except OSError:
        below = []
    yield from below[:_MOST_FOLDERS]
    files = [file.parent for facts in code.facts.facts for file in facts.files[:1]]
    for folder in [*files, code.start]:
        yield from enclosing_folders(folder, code.root)


def _holds(folder: Path, package: str) -> bool:
    module = folder / package
    try:
        return module.with_name(f"{package}.py").is_file() or any(module.glob("*.py"))
    except OSError:
        return False


def is_empty_submodule(code: Code, package: str) -> bool:
    """Return whether the folder of a module is a git submodule that the user has not checked out."""
    folder = code.start / package
    try:
        modules = (code.root / ".gitmodules").read_text("utf-8", "replace")
        return (
            folder.is_dir()
            and not any(entry.name != ".git" for entry in folder.iterdir())
            and package in modules
        )
    except OSError:
        return False
