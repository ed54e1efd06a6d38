"""How a launch goes about its job, and what can be said against a call before image and data are sought."""

from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.job.request import fixfile
from toolkit.job.request.keys import demanded
from toolkit.job.request.layering import JobRequest
from toolkit.job.request.locations import check_directory
from toolkit.launch.request import trainers
from toolkit.launch.request.specify import name_of
from toolkit.model.facts import ImageFacts
from toolkit.model.fix import Fix
from toolkit.model.progress import Tell


@dataclass(frozen=True, slots=True)
class Flags:
    """How a launch goes about its job, which is no part of the job: ``fix`` and ``verify_key`` are files."""

    force: bool = False
    fix: str | None = None
    verify_key: str | None = None
    no_verify: bool = False
    explain: bool = False
    copies: bool = False
    """Several ranks of a program that joins none are meant."""
    sync: bool = True
    project: str | None = None
    """The folder that goes to another machine; by default the folder of the script."""


def check_words(asked: JobRequest, flags: Flags) -> Fix | None:
    """Judge what is asked for without looking for image and data; return the fix that is to be taken over.

    Raises:
        BadInput: for an option that cannot be.
    """
    job = asked.job
    name_of(job)
    known = trainers.find(job.trainer) if job.trainer else None
    if known and known.bring and not job.data:
        raise BadInput(f"{known.name}: say where its images are with --data DIR", fix="see docs/data.md")
    check_directory(job.directory or "")
    fix = fixfile.load(Path(flags.fix)) if flags.fix is not None else None
    if fix and job.mode not in {None, fix.launch.mode}:
        raise BadInput(f"--mode {job.mode}: {flags.fix} is for {fix.launch.mode}; leave one of them out")
    demanded(flags.verify_key, flags.no_verify, asked.key, asked.site, job.site)
    return fix


def tell_fix(flags: Flags, fix: Fix, image: ImageFacts, tell: Tell) -> None:
    """Say what a fix adds, and whether it was made for another image."""
    add = fix.launch
    env = (f"{name}={value}" for name, value in add.env.items())
    words = (*add.container, *env, *(f"-u {name}" for name in add.unset), *(f"--bind {b}" for b in add.binds))
    tell.step(f"With {flags.fix}: mode {add.mode}{', ' if words else ''}{', '.join(words)}")
    if fix.digest and image.digest and fix.digest != image.digest:
        tell.step(f"{flags.fix} was made for {fix.image or 'an image'} with other contents than this one")
