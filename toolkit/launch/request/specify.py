"""Make the specification of a job out of what is asked for and where things lie on the cluster; pure."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from toolkit.launch.request import trainers
from toolkit.launch.request.checks import as_name, check_command
from toolkit.launch.request.gpus import has_gpus
from toolkit.model.hidden import hidden, shown
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import JobFile
from toolkit.model.prediction import Mode, ProgramName, Request
from toolkit.model.site import Site
from toolkit.model.stack import ENV_MOUNT
from toolkit.program.command import CommandFacts
from toolkit.runtime import apptainer

DATA = "TOOLKIT_DATA"
"""The variable that names the folder of ``--data`` to a command."""


@dataclass(frozen=True, slots=True)
class JobPaths:
    """Where a job finds what it needs on the cluster: its own folder, the image, the trainer's data.

    ``program`` is the file of a trainer of one's own, ``start`` the folder that a command starts in, and
    ``mounts`` what it needs mounted for that. ``env`` is the file of ``--env-image``, ``paths`` what it sets.
    """

    directory: str
    image: str
    data: str = ""
    program: str = ""
    start: str = ""
    mounts: tuple[str, ...] = ()
    env: str = ""
    paths: Mapping[str, str] = field(default_factory=dict)


def name_of(job: JobFile) -> str:
    """Return the name of a job: its own, the trainer's, or that of the program.

    Raises:
        BadInput: if there is nothing to run.
    """
    if job.trainer is None:
        check_command(job.command or ())
    if job.trainer and not job.name:
        return trainers.find(job.trainer).name
    return job.name or as_name(posixpath.basename((job.command or ("",))[0]))


def specify(job: JobFile, places: JobPaths) -> JobSpec:
    """Return the specification with the whole command of a rank, and the folders that it needs.

    Raises:
        BadInput: for a path that cannot be bound, an unknown trainer, or no command.
    """
    name = name_of(job)
    binds = [apptainer.bind(places.directory), *places.mounts]
    command = job.command or ()
    env = shown(job.env or {})
    if places.data:
        binds += [apptainer.bind(places.data, read_only=True)]
        env = env if job.trainer else {DATA: places.data, **env}
    if places.env:
        binds += [apptainer.bind_image(places.env, ENV_MOUNT)]
        env = {**places.paths, **env, **_joined(env, places.paths)}
    if job.trainer is not None:
        known = trainers.find(job.trainer)
        if known.own:
            binds += [apptainer.bind(posixpath.dirname(places.program), read_only=True)]
        ranks = (job.nodes or 1) * (job.ranks_per_node or 1)
        strategy = job.strategy or trainers.usual_strategy(ranks)
        known = known.at(places.program)
        command = known.command(places.data, places.directory, strategy, job.arguments or ())
    fields = {f for f in JobSpec.__struct_fields__ if f not in _MADE}
    said = {field: value for field, value in job.said().items() if field in fields}
    return msgspec.structs.replace(
        JobSpec(name=name, image=places.image, command=command, directory=places.directory),
        **{**said, "trainer": job.trainer or "", "site": job.site or ""},
        workdir=job.workdir or places.start,
        env=env,
        secrets=tuple(hidden(job.env or {})),
        env_image=places.env,
        binds=(*binds, *(job.binds or ())),
    )


def request_of(
    spec: JobSpec,
    env: Mapping[str, str],
    mode: Mode | None,
    site: Site | None,
    program: ProgramName | None = None,
    shown: CommandFacts | None = None,
) -> Request:
    """Return what a launch of this job asks of the engine; ``env`` has the secret values too.

    ``program`` is what the user says that it is, ``shown`` what its command and script show.
    """
    return Request(
        nodes=spec.nodes,
        ranks_per_node=spec.ranks_per_node,
        mode=mode,
        env=dict(env),
        binds=spec.binds,
        workdir=spec.workdir,
        cpus_per_rank=spec.cpus_per_rank,
        cpu_bind=spec.cpu_bind,
        gpu_bind=spec.gpu_bind,
        gpus=has_gpus(spec, site),
        directory=spec.directory,
        user_site=spec.user_site,
        program=program or ("horovod" if spec.trainer else None),
        command=spec.command,
        joins=shown.joins if shown else frozenset(),
        says=dict(shown.says) if shown else {},
    )


def _joined(env: Mapping[str, str], paths: Mapping[str, str]) -> dict[str, str]:
    """Return the lists of folders that the user sets as well; folders of the user come first."""
    return {name: f"{env[name]}:{path}" for name, path in paths.items() if env.get(name)}


_MADE = {
    "name",
    "image",
    "env_image",
    "command",
    "directory",
    "binds",
    "trainer",
    "site",
    "workdir",
    "env",
    "secrets",
}
"""Fields that are not taken over as they were said."""
