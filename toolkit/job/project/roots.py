"""Find the project folder: a folder that contains the script and the files that the program reads."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.folders import at_home, has_folder, is_below

MARKS = (".toolkitignore", ".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
"""The names of files by which toolkit recognises a project folder."""


def root_of(folder: Path, script: Path | None, option: str | None, files: Iterable[Path]) -> Path:
    """Return the project folder.

    By default, the project folder is the script's folder. But if a subfolder of the current folder contains
    the script, and the current folder contains a mark such as ``.git``, the default is the current folder.
    Without a script, the default is also the current folder.

    Args:
        folder: the current folder.
        script: the script, or ``None`` if the command does not have a script.
        option: the value of ``--project``.
        files: the program's files and the files that the program reads. If some of these files are outside
            the default project folder, the result is the nearest parent folder that contains all files and
            a mark. Without such a parent folder, the result is the default.

    Raises:
        BadInput: if ``--project`` is not a folder, or does not contain the script.
    """
    if option is not None:
        # Path.resolve would raise RuntimeError for a loop of symbolic links.
        root = Path(os.path.realpath(at_home(option)))
        if not has_folder(root):
            raise BadInput(f"--project {option}: no such folder")
        if script is not None and not is_below(str(script.resolve()), str(root)):
            raise BadInput(
                f"--project {option}: {script} is not in this folder",
                fix="give a folder that contains the script",
            )
        return root
    root = _around_script(folder, script)
    outside = [file for file in files if not is_below(str(file), str(root))]
    marked = (folder for folder in enclosing_folders(root, root) if is_marked(folder))
    whole = (folder for folder in marked if all(is_below(str(file), str(folder)) for file in outside))
    return next(whole, root) if outside else root


def is_marked(folder: Path) -> bool:
    """Return whether a folder contains a file that marks a project folder, such as ``pyproject.toml``."""
    return any((folder / mark).exists() for mark in MARKS)


def enclosing_folders(folder: Path, root: Path) -> Iterator[Path]:
    """Yield a folder's parents, the nearest first, up to the first parent with a project mark such as
    ``.git``. If ``root`` is farther up than this parent, continue up to ``root``.

    The function omits the home folder and ``/``.
    """
    around = [parent for parent in folder.parents if parent not in {Path.home(), Path("/")}]
    last = next((n for n, parent in enumerate(around) if is_marked(parent)), -1)
    inside = sum(is_below(str(parent), str(root)) for parent in around)
    yield from around[: max(last + 1, inside)]


def _around_script(folder: Path, script: Path | None) -> Path:
    if script is None or script.resolve().parent == folder:
        return folder
    inside = is_below(str(script.resolve()), str(folder))
    return folder if inside and is_marked(folder) else script.resolve().parent
