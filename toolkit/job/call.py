"""The arguments of one launch, from the command line or from the Python API."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.job.places import HostOptions
from toolkit.job.request.flags import Flags

if TYPE_CHECKING:
    from toolkit.run.command import Runner

Opener = Callable[[str | None, str | None, Path | None], "Runner"]
"""A function that returns a runner for the values of ``--host``, ``--cluster`` and ``--ssh-config``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The arguments of one launch.

    ``values`` contains the job fields that the user set, by name. ``words`` are the arguments of a trainer,
    or the words of a command. ``host_options`` names the host. ``job_file`` is the path of a job file.
    ``from_job`` is the key of the recorded job that this launch repeats. If ``local`` is true, the job runs
    on this machine without Slurm.
    """

    values: Mapping[str, Any]
    words: tuple[str, ...]
    host_options: HostOptions
    job_file: str | None = None
    from_job: str | None = None
    local: bool = False
    flags: Flags = field(default_factory=Flags)


def call(program: str | Sequence[str] | None, options: Mapping[str, Any]) -> Call:
    """Return the arguments of a launch as a :class:`Call`.

    Args:
        program: the name or the file of a trainer, or a command as a list of words.
        options: the fields of :class:`toolkit.model.jobfile.LaunchOptions`.
    """
    values = {name: os.fspath(v) if isinstance(v, os.PathLike) else v for name, v in options.items()}
    host, cluster, config = (values.pop(name, None) for name in ("host", "cluster", "ssh_config"))
    host_options = HostOptions(host, cluster, None if config is None else Path(config))
    words, job_file = tuple(values.pop("arguments", ())), values.pop("job", None)
    flags = Flags(**{flag.name: values.pop(flag.name) for flag in fields(Flags) if flag.name in values})
    from_job, local = values.pop("from_job", None), values.pop("local", False)
    if isinstance(program, str):
        values["trainer"] = program
    elif program is not None:
        values["command"] = tuple(program)
    if values.get("env") is not None:
        values["env"] = dict(values["env"])
    return Call(
        values=values,
        words=words,
        host_options=host_options,
        job_file=job_file,
        from_job=from_job,
        local=local,
        flags=flags,
    )
