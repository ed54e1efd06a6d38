"""The types of arguments that functions of the API share."""

import os

from toolkit.model.job import JobRecord

StrPath = str | os.PathLike[str]
"""A path of this machine."""

Job = str | JobRecord | None
"""A job: its record, its key, the beginning of the key, or Slurm's number; ``None`` for the last job."""


def path_text(path: StrPath | None) -> str | None:
    """Return a path as text."""
    return None if path is None else os.fspath(path)
