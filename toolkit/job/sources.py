"""Find the files of this machine that a launch needs, before toolkit connects to a host."""

from dataclasses import dataclass
from pathlib import Path

from toolkit.job.project.code import Code, code_of
from toolkit.job.project.ranks import check_ranks
from toolkit.job.project.sweep_checks import check_sweep
from toolkit.job.request.envfile import env_file
from toolkit.job.request.flags import Flags, check_words
from toolkit.job.request.inputs import OnCluster, data_of, image_of
from toolkit.job.request.layering import JobRequest
from toolkit.job.request.locations import program_file
from toolkit.launch.request import trainers
from toolkit.model.fix import Fix


@dataclass(frozen=True, slots=True)
class Sources:
    """The files on this machine that a launch needs, such as the image and the data of a trainer."""

    image: Path | OnCluster
    data: Path | OnCluster | None
    fix: Fix | None = None
    program: Path | None = None
    """The file of the user's own trainer."""
    code: Code | None = None
    """The program that the job's command starts, with its project folder."""
    env: Path | None = None
    """The file of ``--env-image``."""


def check(request: JobRequest, flags: Flags) -> Sources:
    """Return the files that a launch needs, after toolkit has checked the options and these files. The check
    opens no connection and reads no large file.

    Raises:
        BadInput: if an option is wrong.
        Missing: if the image or the data set is not on this machine.
    """
    job = request.job
    fix = check_words(request, flags)
    known = trainers.find(job.trainer) if job.trainer else None
    dataset = known.dataset if known else ""
    folder = data_of(job.data, dataset, request.site) if dataset or job.data else None
    program = program_file(job.trainer or "") if known and known.own else None
    code = code_of(job, flags)
    check_ranks(job, code, flags)
    check_sweep(job, code, flags)
    env = env_file(job.env_image)
    return Sources(image_of(job.image or "", request.site), folder, fix, program, code, env)
