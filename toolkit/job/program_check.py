"""Check that an image contains what a program needs, for ``toolkit launch`` and ``toolkit doctor``."""

from dataclasses import replace
from pathlib import Path

import msgspec

from toolkit.errors import ProgramFault
from toolkit.image.software.contents import Contents
from toolkit.job.project.checks import findings, refuse, with_python
from toolkit.job.project.code import code_of
from toolkit.job.project.plain import OF_SCRIPT
from toolkit.job.project.ranks import rank_fault
from toolkit.job.project.starts import knows_modules
from toolkit.job.request.envfile import read_offer
from toolkit.job.request.flags import Flags
from toolkit.job.request.inputs import StartableImage
from toolkit.job.request.layering import JobRequest
from toolkit.job.sources import Sources
from toolkit.model.facts import ImageFacts
from toolkit.model.finding import LaunchFault
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell


def check_program(
    sources: Sources, request: JobRequest, flags: Flags, image: StartableImage, tell: Tell, *, gpus: bool
) -> tuple[Sources, JobFile]:
    """Check that the image contains what the job's program or trainer needs.

    ``gpus`` is true if the ranks may have GPUs.

    Returns:
        the files that the launch needs, and the job. If the user gave a script instead of a command, the
        job's command starts with ``python``, or with ``python3`` if the image has only ``python3``.

    Raises:
        ProgramFault: if the job would fail, unless the user gives ``--force``.
    """
    job, code = request.job, sources.code
    offered = read_offer(image.offers, sources.env) if image.offers else None
    if code is None:
        refuse(_trainer_faults(job, image.name, offered), flags, tell, ProgramFault)
        return sources, job
    if offered and request.origins.get("command") == OF_SCRIPT:
        code = with_python(code, offered)
        job = msgspec.structs.replace(job, command=code.words)
    faults = findings(code, job, image.name, offered, image.facts, in_folder=flags.sync, gpus=gpus)
    refuse(faults, flags, tell, ProgramFault)
    return replace(sources, code=code), job


def program_faults(
    job: JobFile, image: ImageFacts, contents: Contents, env: Path | None, *, gpus: bool
) -> tuple[LaunchFault, ...]:
    """Return the faults for which ``toolkit launch`` would refuse the command or the trainer of a job.

    Args:
        job: the job; a job with neither a command nor a trainer has no faults.
        image: the facts of the job's image.
        contents: the commands and modules in the image.
        env: the file of ``--env-image``, or ``None``.
        gpus: whether the ranks may have GPUs.
    """
    code, name = code_of(job, Flags()), Path(image.path).name
    if code is None:
        return tuple(_trainer_faults(job, name, read_offer(contents, env)))
    alone = rank_fault(job, code)
    faults = findings(code, job, name, read_offer(contents, env), image, gpus=gpus)
    return (*([alone] if alone else []), *faults)


def _trainer_faults(job: JobFile, image: str, contents: Contents | None) -> list[LaunchFault]:
    """Return a fault if the job starts a trainer, and the image does not contain toolkit's trainers.

    The result is empty if toolkit does not know all modules that the job can import, because an unknown
    module may be toolkit itself.
    """
    if job.trainer is None or contents is None or not knows_modules(job, contents):
        return []
    if "toolkit" in contents.modules:
        return []
    return [
        LaunchFault(
            f"{image} does not contain toolkit's trainers, which {job.trainer} needs",
            "use an image that toolkit built, for example from the recipe `torch-cpu`; or launch a script "
            "that does not need toolkit's trainers",
        )
    ]
