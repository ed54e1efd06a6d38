"""Write a job script from a site profile and the name of an image, without a connection to the cluster."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from toolkit import scheduler as schedulers
from toolkit.engine.planning.plan import plan
from toolkit.launch.jobscript import script
from toolkit.launch.jobscript.preflight import has_check
from toolkit.launch.request import trainers
from toolkit.launch.request.copies import in_own_folders
from toolkit.launch.request.specify import JobPaths, name_of, request_of, specify
from toolkit.launch.request.trainers import TrainerProgram
from toolkit.launch.tracking import records
from toolkit.model.facts import ContainerRuntime, HostFacts, ImageFacts
from toolkit.model.fix import Fix
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import JobFile
from toolkit.model.prediction import Mode, Plan, Request
from toolkit.model.site import Site
from toolkit.program.choose import best_modes
from toolkit.program.command import CommandFacts
from toolkit.runtime import runtime_of_name

_HOME = "$HOME/toolkit"
"""The folder for images, data and runs on the cluster, if neither the job nor the site profile names one."""


@dataclass(frozen=True, slots=True)
class UncontactedJob:
    """A job for a cluster that toolkit did not contact, and the job script.

    ``data`` is the folder of the trainer's data on the cluster. ``program`` is the file of the user's own
    trainer on the cluster. If the job has no such folder or file, the path is empty.
    """

    spec: JobSpec
    plan: Plan
    script: str
    data: str = ""
    program: str = ""


def write(
    job: JobFile,
    site: Site,
    image: ImageFacts,
    notes: Sequence[str] = (),
    key: str | None = None,
    fix: Fix | None = None,
    command_facts: CommandFacts | None = None,
    copies: bool = False,
) -> UncontactedJob:
    """Return the job for ``site`` and the job script; the user must copy the image to the cluster.

    ``notes`` become comments in the job script. ``key`` identifies the new job in toolkit's records; by
    default, toolkit creates a key. ``fix`` sets the launch mode and adds options to the launch command.
    ``command_facts`` contains the facts that toolkit read from the command and its Python script. If
    ``copies`` is true, each rank runs in a separate folder.

    Raises:
        BadInput: if the site cannot run the job.
    """
    site, base = with_folder(job, site), folder_of(job, site)
    known = trainers.find(job.trainer) if job.trainer else None
    data = _data(job, known, base)
    program = (
        posixpath.join(base, "programs", posixpath.basename(job.trainer or "")) if known and known.own else ""
    )
    paths = places(base, name_of(job), image, key, data=data, program=program)
    if job.command and not job.workdir:
        start = schedulers.scheduler_of(site).SUBMIT_DIR
        paths = replace(paths, start=start, mounts=(start,))
    spec = specify(job, paths)
    spec = msgspec.structs.replace(
        spec, preflight=bool(job.preflight) and has_check(image, trainer=known is not None)
    )
    spec = in_own_folders(spec) if copies else spec
    own = own_mode(image, request_of(spec, {}, None, site, job.program, command_facts))
    mode = fix.launch.mode if fix else job.mode or own or site.launch.mode or usual_mode(image)
    why = f"the fix file sets {mode}" if fix else _why(job, site, mode, own)
    because = f"not predicted, because {site.title} was not contacted; {why}"
    launch_plan, text = script_of(spec, job, site, image, mode, because, notes, fix, command_facts)
    return UncontactedJob(spec, launch_plan, text, data, program)


def script_of(
    spec: JobSpec,
    job: JobFile,
    site: Site,
    image: ImageFacts,
    mode: Mode,
    reason: str,
    notes: Sequence[str] = (),
    fix: Fix | None = None,
    command_facts: CommandFacts | None = None,
) -> tuple[Plan, str]:
    """Return the launch plan and the job script for a cluster that toolkit did not probe.

    ``reason`` says why toolkit chose the launch mode; it becomes a comment in the script, as do ``notes``.
    """
    request = request_of(spec, job.env or {}, mode, site, job.program, command_facts)
    command = spec.runtime or site.container.command
    launch_plan = plan(_host(site, command), image, request, mode, site, fix.launch if fix else None)
    return launch_plan, script.job_script(spec, launch_plan, reason, command, site, image, notes)


def _host(site: Site, command: str) -> HostFacts:
    """Return the facts of a cluster that toolkit did not probe: its name and, if known, its container
    runtime.
    """
    kind = runtime_of_name(command)
    if kind is runtime_of_name(""):
        return HostFacts(place=site.title)
    runtime = ContainerRuntime(name=kind.NAMES[0], version="", path=command, seen=False)
    return HostFacts(place=site.title, runtime=runtime)


def places(
    base: str, name: str, image: ImageFacts, key: str | None = None, *, data: str = "", program: str = ""
) -> JobPaths:
    """Return the paths of a job's files on the cluster, below the folder ``base``."""
    run = posixpath.join(base, "runs", key or records.new_key(name))
    return JobPaths(run, posixpath.join(base, "images", posixpath.basename(image.path)), data, program)


def with_folder(job: JobFile, site: Site) -> Site:
    """Return the site profile. If the path from :func:`folder_of` contains a variable, this path replaces the
    profile's ``directory``.

    The job script expands variables in values of the site profile, but not in values of the job.
    """
    base = folder_of(job, site)
    return msgspec.structs.replace(site, directory=base) if "$" in base else site


def _data(job: JobFile, trainer: TrainerProgram | None, base: str) -> str:
    """Return the folder of a trainer's data on the cluster, or an empty string for a job without data.

    The folder has the name of the trainer's data set. If the trainer has no data set, the folder has the name
    of the folder that the user gave.
    """
    if trainer is None or not (trainer.dataset or job.data):
        return ""
    return posixpath.join(
        base, "data", trainer.dataset or posixpath.basename(posixpath.normpath(job.data or ""))
    )


def folder_of(job: JobFile, site: Site | None) -> str:
    """Return the folder for images, data and runs; the path may contain a variable such as ``$WORK``."""
    directory = job.directory or (site.directory if site else "") or _HOME
    if directory == "~" or directory.startswith("~/"):
        return posixpath.normpath(f"$HOME/{directory[2:]}")
    return directory if directory.startswith(("/", "$")) else posixpath.join("$HOME", directory)


def own_mode(image: ImageFacts, request: Request) -> Mode | None:
    """Return the launch mode for a program without MPI, or ``None`` if the program may use MPI."""
    return next(iter(best_modes(image, request)), None)


def usual_mode(image: ImageFacts) -> Mode:
    """Return the launch mode that works on most clusters for the image's MPI implementation."""
    implementation = image.mpi.implementation if image.mpi else "openmpi"
    return "srun-pmi2" if implementation in {"mpich", "intelmpi"} else "srun-pmix"


def _why(job: JobFile, site: Site, mode: Mode, default_mode: Mode | None) -> str:
    if job.mode:
        return f"you chose {mode}"
    if default_mode:
        return f"{mode} is a mode for programs without MPI, and this program uses no MPI"
    if site.launch.mode:
        return f"the site profile chooses {mode}"
    return f"{mode} is the usual mode for the MPI of the image"
