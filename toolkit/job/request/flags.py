"""Launch options that are not fields of a job, and checks that read neither the image nor data."""

from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.job.request.keys import merge_demands
from toolkit.job.request.layering import JobRequest
from toolkit.job.request.locations import check_directory
from toolkit.launch.request import trainers
from toolkit.launch.request.specify import name_of
from toolkit.model.facts import ImageFacts
from toolkit.model.fix import Fix
from toolkit.model.progress import Tell


@dataclass(frozen=True, slots=True)
class Flags:
    """Launch options that are not fields of a job; ``fix`` and ``verify_key`` are paths of files."""

    force: bool = False
    fix: str | None = None
    verify_key: str | None = None
    no_verify: bool = False
    explain: bool = False
    copies: bool = False
    """Whether toolkit may launch a program whose ranks do not communicate. Each rank then runs an independent
    copy of the program.
    """
    sync: bool = True
    """Whether toolkit copies the project to another machine; false with ``--no-sync``."""
    project: str | None = None
    """The project folder; if it is ``None``, toolkit derives the folder from the script of the command."""


def check_words(request: JobRequest, flags: Flags) -> Fix | None:
    """Check the options as far as possible without the image and the data.

    The result is the fix in the file that ``--fix`` names, or ``None`` without this option.

    Raises:
        BadInput: if an option is wrong.
    """
    job = request.job
    name_of(job)
    known = trainers.find(job.trainer) if job.trainer else None
    if known and known.data_required and not job.data:
        raise BadInput(
            f"{known.name}: the option --data is missing; give the folder with the training images",
            fix="add `--data DIR`; docs/data.md describes the files in this folder",
        )
    check_directory(job.directory or "")
    fix = _load_fix(flags.fix) if flags.fix is not None else None
    if fix and job.mode not in {None, fix.launch.mode}:
        raise BadInput(
            f"--mode {job.mode}: {flags.fix} is for mode {fix.launch.mode}; leave out --mode or --fix"
        )
    merge_demands(flags.verify_key, flags.no_verify, request.key, request.site, job.site)
    return fix


def _load_fix(path: str) -> Fix:
    from toolkit.job.request import fixfile  # slow: imports the engine

    return fixfile.load(Path(path))


def tell_fix(flags: Flags, fix: Fix, image: ImageFacts, tell: Tell) -> None:
    """Print the mode, options and variables that a fix file adds to the launch; warn if the fix file is for a
    different image.
    """
    add = fix.launch
    env = (f"{name}={value}" for name, value in add.env.items())
    words = (*add.container, *env, *(f"-u {name}" for name in add.unset), *(f"--bind {b}" for b in add.binds))
    tell.step(f"The fix file {flags.fix} sets: mode {add.mode}{', ' if words else ''}{', '.join(words)}")
    if fix.digest and image.digest and fix.digest != image.digest:
        tell.step(
            f"{flags.fix} was made for {fix.image or 'another image'}; the job's image has different contents"
        )
