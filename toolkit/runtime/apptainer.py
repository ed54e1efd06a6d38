"""Apptainer and Singularity: the words that start a command in an image; pure."""

from collections.abc import Iterable

from toolkit.errors import BadInput

COMMAND = "singularity"
"""The command if there are no facts of the host; Apptainer mostly installs this name too."""


def words(command: str, options: Iterable[str], binds: Iterable[str]) -> list[str]:
    """Return the words in front of the image."""
    bound = (word for bind in dict.fromkeys(binds) for word in ("--bind", bind))
    return [command, "exec", *options, *bound]


def bind(source: str, target: str | None = None, *, read_only: bool = False) -> str:
    """Return the value of ``--bind`` for a path.

    Raises:
        BadInput: for a path with a comma or a colon, which ``--bind`` would split.
    """
    for path in (source, target or ""):
        if bad := next((c for c in ",:\n" if c in path), None):
            raise BadInput(
                f"{path!r} holds {bad!r}, which singularity's --bind takes for a separator",
                fix="use a folder without comma, colon and line break in its path",
            )
    if not target and not read_only:
        return source
    return f"{source}:{target or source}" + (":ro" if read_only else "")
