"""The types of arguments that several functions of the API accept."""

import os

from toolkit.model.job import JobRecord

StrPath = str | os.PathLike[str]
"""A path on this machine."""

Job = str | JobRecord | None
"""A job, given as its :class:`JobRecord`, its key, the first characters of its key, or Slurm's job number.
The column ``job`` of ``toolkit jobs list`` shows the keys. ``None`` means the newest job.
"""


def path_text(path: StrPath | None) -> str | None:
    """Return a path as text. Return None if the path is None."""
    return None if path is None else os.fspath(path)
