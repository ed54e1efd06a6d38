"""Find the files on this machine that a launch needs, before toolkit connects to the cluster."""

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
    """The image, the data and the other files that a launch needs.

    The image and the data are on this machine (``Path``) or already on the cluster (``OnCluster``). All other
    files are on this machine. ``fix`` is the content of the file that ``--fix`` names.
    """

    image: Path | OnCluster
    data: Path | OnCluster | None
    fix: Fix | None = None
    program: Path | None = None
    """The Python file of a trainer that the user wrote."""
    code: Code | None = None
    """The job's command, with the project folder of the program that the command starts."""
    env: Path | None = None
    """The environment image that the user gives with ``--env-image``."""


def check(request: JobRequest, flags: Flags) -> Sources:
    """Check the options of a launch and the files that the launch needs, and return these files.

    The check opens no connection and reads no large file.

    Raises:
        BadInput: if an option is wrong.
        Missing: if the image or the data set should be on this machine, but does not exist.
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
