"""Write a job for a site that nobody can ask now: by its profile and by what an image is called; pure."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from toolkit import scheduler as schedulers
from toolkit.engine.plan import plan
from toolkit.launch.jobscript import script
from toolkit.launch.jobscript.preflight import has_check
from toolkit.launch.request import trainers
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
from toolkit.runtime import named

_HOME = "$HOME/toolkit"
"""The folder at a site whose profile names none."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """A job whose outcome is not predicted, and its script.

    ``data`` and ``program`` are where those have to be there, empty for a job that has none.
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
    shown: CommandFacts | None = None,
) -> Unseen:
    """Render the script of a job for ``site``; the image is where it will be once it is copied there.

    What a ``fix`` says of mode and words is taken over. ``shown`` is what the program shows of itself.

    Raises:
        BadInput: for a job that cannot be.
    """
    site, base = with_folder(job, site), folder_of(job, site)
    known = trainers.find(job.trainer) if job.trainer else None
    data = _data(job, known, base)
    program = (
        posixpath.join(base, "programs", posixpath.basename(job.trainer or "")) if known and known.own else ""
    )
    found = places(base, name_of(job), image, key, data=data, program=program)
    if job.command and not job.workdir:
        start = schedulers.of(site).SUBMIT_DIR
        found = replace(found, start=start, mounts=(start,))
    spec = specify(job, found)
    spec = msgspec.structs.replace(
        spec, preflight=bool(job.preflight) and has_check(image, trainer=known is not None)
    )
    own = own_mode(image, request_of(spec, {}, None, site, job.program, shown))
    mode = fix.launch.mode if fix else job.mode or own or site.launch.mode or usual_mode(image)
    why = f"{mode} is what the fix is for" if fix else _why(job, site, mode, own)
    because = f"not predicted, as nothing was asked of {site.title}; {why}"
    made, text = script_of(spec, job, site, image, mode, because, notes, fix, shown)
    return Unseen(spec, made, text, data, program)


def script_of(
    spec: JobSpec,
    job: JobFile,
    site: Site,
    image: ImageFacts,
    mode: Mode,
    because: str,
    notes: Sequence[str] = (),
    fix: Fix | None = None,
    shown: CommandFacts | None = None,
) -> tuple[Plan, str]:
    """Return the plan of a launch at a site of which no facts are known, and its script."""
    request = request_of(spec, job.env or {}, mode, site, job.program, shown)
    command = spec.runtime or site.container.command
    made = plan(_host(site, command), image, request, mode, site, fix.launch if fix else None)
    return made, script.job_script(spec, made, because, command, site, image, notes)


def _host(site: Site, command: str) -> HostFacts:
    """Return the facts of a site that was not asked: only a runtime other than Apptainer is known."""
    kind = named(command)
    if kind is named(""):
        return HostFacts(place=site.title)
    runtime = ContainerRuntime(name=kind.NAMES[0], version="", path=command, seen=False)
    return HostFacts(place=site.title, runtime=runtime)


def places(
    base: str, name: str, image: ImageFacts, key: str | None = None, *, data: str = "", program: str = ""
) -> JobPaths:
    """Return where a job will find what it needs below the folder ``base`` of a site."""
    run = posixpath.join(base, "runs", key or records.new_key(name))
    return JobPaths(run, posixpath.join(base, "images", posixpath.basename(image.path)), data, program)


def with_folder(job: JobFile, site: Site) -> Site:
    """Return the site with the folder of the job, if that names a variable which the site looks up."""
    base = folder_of(job, site)
    return msgspec.structs.replace(site, directory=base) if "$" in base else site


def _data(job: JobFile, known: TrainerProgram | None, base: str) -> str:
    """Return where the data will be: a set by its name, other data by that of their folder."""
    if known is None or not (known.dataset or job.data):
        return ""
    return posixpath.join(
        base, "data", known.dataset or posixpath.basename(posixpath.normpath(job.data or ""))
    )


def folder_of(job: JobFile, site: Site | None) -> str:
    """Return the folder for images, data and runs, in which ``$NAME`` may be a variable of the site."""
    given = job.directory or (site.directory if site else "") or _HOME
    if given == "~" or given.startswith("~/"):
        return posixpath.normpath(f"$HOME/{given[2:]}")
    return given if given.startswith(("/", "$")) else posixpath.join("$HOME", given)


def own_mode(image: ImageFacts, request: Request) -> Mode | None:
    """Return the mode that is made for a program without MPI; ``None`` if its ranks may need one."""
    return next(iter(best_modes(image, request)), None)


def usual_mode(image: ImageFacts) -> Mode:
    """Return the mode in which an image starts at most sites: by the interface that its MPI has."""
    implementation = image.mpi.implementation if image.mpi else "openmpi"
    return "srun-pmi2" if implementation in {"mpich", "intelmpi"} else "srun-pmix"


def _why(job: JobFile, site: Site, mode: Mode, own: Mode | None) -> str:
    if job.mode:
        return f"{mode} was asked for"
    if own:
        return f"{mode} is for programs without MPI, such as this one"
    if site.launch.mode:
        return f"{mode} is what the site profile names"
    return f"{mode} is usual for the MPI of the image"
