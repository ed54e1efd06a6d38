"""The call of a launch: what options and arguments ask for, from the command line or from Python."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.job.places import Where
from toolkit.job.request.flags import Flags

if TYPE_CHECKING:
    from toolkit.run.command import Runner

Opener = Callable[[str | None, str | None, Path | None], "Runner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One launch: ``said`` are fields of the job, ``words`` the arguments of a trainer, or a command.

    ``fix`` and ``verify_key`` are files, ``from_job`` is the key of a record.
    """

    said: Mapping[str, Any]
    words: tuple[str, ...]
    where: Where
    job_file: str | None = None
    from_job: str | None = None
    local: bool = False
    fix: str | None = None
    force: bool = False
    verify_key: str | None = None
    no_verify: bool = False
    explain: bool = False
    copies: bool = False
    sync: bool = True
    project: str | None = None

    @property
    def flags(self) -> Flags:
        """Return the parts of the call that are not fields of the job."""
        return Flags(
            self.force,
            self.fix,
            self.verify_key,
            self.no_verify,
            self.explain,
            self.copies,
            self.sync,
            self.project,
        )


_SETTINGS = (
    "from_job", "local", "fix", "force", "verify_key", "no_verify", "explain", "copies", "sync", "project",
)  # fmt: skip
"""Options of a launch that are not fields of the job."""


def call(program: str | Sequence[str] | None, options: Mapping[str, Any]) -> Call:
    """Return the launch that a program and options describe.

    Args:
        program: the name or the file of a trainer, or a command as a list of words.
        options: as :class:`toolkit.model.jobfile.LaunchOptions` has them.
    """
    said = {name: os.fspath(v) if isinstance(v, os.PathLike) else v for name, v in options.items()}
    host, cluster, config = (said.pop(name, None) for name in ("host", "cluster", "ssh_config"))
    where = Where(host, cluster, None if config is None else Path(config))
    words, job_file = tuple(said.pop("arguments", ())), said.pop("job", None)
    settings = {name: said.pop(name) for name in _SETTINGS if name in said}
    if isinstance(program, str):
        said["trainer"] = program
    elif program is not None:
        said["command"] = tuple(program)
    if said.get("env") is not None:
        said["env"] = dict(said["env"])
    return Call(said=said, words=words, where=where, job_file=job_file, **settings)
