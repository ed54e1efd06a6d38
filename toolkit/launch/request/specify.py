"""Build the specification of a job from the user's settings and the job's paths on the cluster."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from toolkit.launch.request import trainers
from toolkit.launch.request.checks import as_name, check_command
from toolkit.launch.request.gpus import has_gpus
from toolkit.model.hidden import secrets_among, without_secrets
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import JobFile
from toolkit.model.prediction import Mode, ProgramName, Request
from toolkit.model.site import Site
from toolkit.model.stack import ENV_MOUNT
from toolkit.program.command import CommandFacts
from toolkit.runtime import apptainer

DATA = "TOOLKIT_DATA"
"""If the job runs a command and not a trainer, this variable contains the path of the ``--data`` folder."""
_RUNS_SCRIPTS = re.compile(r"env|(ba|da|z)?sh|python[\d.]*|torchrun|accelerate|deepspeed|Rscript|julia|perl")
_SCRIPT = re.compile(r"\w[\w.-]*\.(py|sh|bash|R|jl|pl)")


@dataclass(frozen=True, slots=True)
class JobPaths:
    """The paths of a job on the cluster: its folder, its image and its data.

    ``program`` is the file of the user's own trainer. ``start`` is the folder in which a command starts.
    ``mounts`` are the mounts that the command needs. ``env`` is a file of Python packages that
    ``toolkit env`` created. ``paths`` contains the variables, such as ``PYTHONPATH``, whose values include
    the mount point of ``env``.
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
    """Return the name of a job: the name that the user gives, else the name of the job's trainer or program.

    Raises:
        BadInput: if the job has neither a trainer nor a command.
    """
    if job.trainer is None:
        check_command(job.command or ())
    if job.trainer and not job.name:
        return trainers.find(job.trainer).name
    return job.name or as_name(_program_name(job.command or ("",)))


def _program_name(command: Sequence[str]) -> str:
    """Return the name of the script that an interpreter or a program such as torchrun runs.

    For any other program, return the program's name.
    """
    program = posixpath.basename(command[0])
    if not _RUNS_SCRIPTS.fullmatch(program):
        return program
    scripts = (posixpath.basename(word) for word in command[1:] if not word.startswith("-"))
    return next((name.rpartition(".")[0] for name in scripts if _SCRIPT.fullmatch(name)), program)


def specify(job: JobFile, places: JobPaths) -> JobSpec:
    """Return the job specification; it contains the complete command of a rank and all mounts.

    Raises:
        BadInput: if toolkit cannot mount a path, the trainer is unknown, or the command is missing.
    """
    name = name_of(job)
    binds = [apptainer.bind(places.directory), *places.mounts]
    command = job.command or ()
    env = without_secrets(job.env or {})
    if places.data:
        binds += [apptainer.bind(places.data, read_only=True)]
        env = env if job.trainer else {DATA: places.data, **env}
    if places.env:
        binds += [apptainer.bind_image(places.env, ENV_MOUNT)]
        env = {**places.paths, **env, **_join_search_paths(env, places.paths)}
    if job.trainer is not None:
        known = trainers.find(job.trainer)
        if known.own:
            binds += [apptainer.bind(posixpath.dirname(places.program), read_only=True)]
        ranks = (job.nodes or 1) * (job.ranks_per_node or 1)
        strategy = job.strategy or trainers.usual_strategy(ranks)
        known = known.at(places.program)
        command = known.command(places.data, places.directory, strategy, job.arguments or ())
    fields = {f for f in JobSpec.__struct_fields__ if f not in _MADE}
    values = {field: value for field, value in job.given_values().items() if field in fields}
    return msgspec.structs.replace(
        JobSpec(name=name, image=places.image, command=command, directory=places.directory),
        **{**values, "trainer": job.trainer or "", "site": job.site or ""},
        workdir=job.workdir or places.start,
        env=env,
        secrets=tuple(secrets_among(job.env or {})),
        env_image=places.env,
        binds=(*binds, *(job.binds or ())),
    )


def request_of(
    spec: JobSpec,
    env: Mapping[str, str],
    mode: Mode | None,
    site: Site | None,
    program: ProgramName | None = None,
    command_facts: CommandFacts | None = None,
) -> Request:
    """Return the launch request of a job for the engine; ``env`` includes secret values.

    ``program`` is the value of ``--program``. ``command_facts`` contains the facts that toolkit read from the
    user's command and its Python script.
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
        program=program or (trainers.program_of(spec.command) if spec.trainer else None),
        command=spec.command,
        joins=command_facts.joins if command_facts else frozenset(),
        says=dict(command_facts.says) if command_facts else {},
    )


def _join_search_paths(env: Mapping[str, str], paths: Mapping[str, str]) -> dict[str, str]:
    """Join each search path that both ``env`` and ``paths`` set; the folders in ``env`` come first."""
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
"""The names of the fields whose values :func:`specify` computes."""
