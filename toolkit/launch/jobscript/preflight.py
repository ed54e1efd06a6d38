"""Build the command of the preflight, a check that runs before the program of a job."""

import posixpath
from collections.abc import Sequence

import msgspec

from toolkit.data import shipped_folder
from toolkit.engine.traits import families
from toolkit.errors import BadInput
from toolkit.launch.jobscript import peers
from toolkit.launch.request.gpus import has_gpus
from toolkit.launcher.srun import NODES
from toolkit.model.facts import ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan
from toolkit.model.site import Site
from toolkit.program import ALL_PROGRAMS as PROGRAMS
from toolkit.program import program_of_name
from toolkit.runtime.apptainer import bind

PREFLIGHT = ("python", "-m", "toolkit.trainers.preflight")
"""The preflight command in toolkit's own images; the job script adds the option ``--tasks``."""

FILE = "toolkit-preflight.sh"
"""The name of the script that checks the MPI that the program loads; the job script writes this file."""


def has_check(image: ImageFacts, *, trainer: bool = False, user_site: bool = False) -> bool:
    """Return whether a preflight can check the ranks of a job with this image.

    ``trainer`` is true if the job runs a trainer. ``user_site`` is true if Python in the container may import
    packages from the user's home folder.
    """
    own = _is_own(image, trainer=trainer) or bool(_of_program(image, user_site=user_site))
    return own or _has_framework(image)


def _has_framework(image: ImageFacts) -> bool:
    return any(program.in_image(image) for program in PROGRAMS if not program.BY_MPI)


def is_of_program(spec: JobSpec, image: ImageFacts | None) -> bool:
    """Return whether the preflight runs :data:`FILE`, which checks the MPI that the program loads.

    This script is necessary if the image lacks the module ``toolkit.trainers.preflight``, or if this module
    would not use the program's MPI.
    """
    if image is None or _is_own(image, trainer=bool(spec.trainer)):
        return False
    return bool(_of_program(image, user_site=spec.user_site))


def with_possible_preflight(spec: JobSpec, plan: Plan, image: ImageFacts | None) -> JobSpec:
    """Return the job, without its preflight if no preflight can check the ranks of this job."""
    if not program_of_name(plan.program).BY_MPI:
        checked = peers.has_check(plan)
    else:
        own = image is None or _is_own(image, trainer=bool(spec.trainer))
        checked = own or is_of_program(spec, image)
        checked = checked and not (plan.mode == "gloo" and is_of_program(spec, image))
    return spec if checked else msgspec.structs.replace(spec, preflight=False)


def file_of(spec: JobSpec, plan: Plan, image: ImageFacts | None) -> tuple[str, str]:
    """Return the name and text of the file that the job script writes for the preflight, or empty strings."""
    if peers.has_check(plan):
        return peers.FILE, peers.program_text()
    return (FILE, program_text()) if is_of_program(spec, image) else ("", "")


def title_of(plan: Plan) -> str:
    """Return the name of the software that connects the ranks in the preflight, such as MPI or Gloo."""
    if peers.has_check(plan):
        return program_of_name(plan.program).TITLE
    return "Gloo" if plan.mode == "gloo" else "MPI"


def _is_own(image: ImageFacts, *, trainer: bool) -> bool:
    """Return whether the preflight module of toolkit in the image can check the ranks of the job.

    The module can check trainers, other Python scripts, and programs without MPI, such as ``hostname``. For a
    program without MPI, the module checks the launcher. If toolkit does not know the program, but the
    image has the module, the result is true.
    """
    program = image.program
    return image.stack is not None and (trainer or program is None or bool(program.python) or not program.mpi)


def _of_program(image: ImageFacts, *, user_site: bool = False) -> tuple[str, ...]:
    """Return the options for the script that checks the MPI that the program loads.

    If toolkit does not know which MPI the program loads, the options depend on ``user_site``. If
    ``user_site`` is true, the script imports mpi4py from the user's home folder or from the image. If
    ``user_site`` is false, there are no options.

    If the program links its MPI statically, or Python cannot load the MPI, the script checks only PMI.
    """
    program, mpi = image.program, image.mpi
    if mpi is None or (program is not None and not program.mpi) or families(image):
        python_words = ("--python", program.python) if program and program.python else ()
        return (*python_words, "--mpi4py", "yes") if user_site else ()
    linked = program is not None and program.linked
    python = program.python if program else ""
    mpi4py = python and (user_site or any("/mpi4py/" in path for path in image.programs))
    path = image.environment.get("LD_LIBRARY_PATH", "") if program and len(program.chain) > 1 else ""
    options = {
        "--library": "" if linked else mpi.library,
        "--python": python,
        "--mpi4py": "yes" if mpi4py else "",
        "--speaks": ",".join(mpi.interfaces or ()),
        "--path": path,
    }
    return tuple(word for option, value in options.items() if value for word in (option, value))


def words(
    spec: JobSpec, site: Site | None, image: ImageFacts | None, plan: Plan | None = None
) -> tuple[str, ...]:
    """Return the command of the preflight.

    For an unknown image, or an image without toolkit, the command has no options for nodes and GPUs.
    """
    if plan is not None and peers.has_check(plan):
        return peers.words(spec, plan)
    if image is not None and is_of_program(spec, image):
        options = _of_program(image, user_site=spec.user_site)
        if plan is not None and plan.mode == "bind":
            options = _with_soname(options, image)
        shares = plan is not None and "--sharens" in plan.container and spec.ranks_per_node > 1
        together = ("--together", str(spec.ranks_per_node)) if shares else ()
        return ("sh", posixpath.join(spec.directory, FILE), *options, *together)
    if image is None or "toolkit" not in (image.stack or {}):
        return (*PREFLIGHT, *_limits_alone(spec))
    gpus = spec.gpus_per_node or 0
    if not spec.gpus_per_node and site and has_gpus(spec, site):
        partition = site.partition(spec.partition or "")
        gpus = (partition.gpus if partition else None) or 0
    more = ["--nodes", NODES if spec.elastic else str(spec.nodes), "--output", spec.directory]
    more += ["--gpus-per-node", str(gpus)] if gpus else []
    more += limits(spec)
    return (*PREFLIGHT, *more, *(("--image", spec.image) if _bindable(spec.image) else ()))


def _with_soname(options: tuple[str, ...], image: ImageFacts) -> tuple[str, ...]:
    """Return the options with the soname of the MPI library instead of its path, so that ld.so loads the
    host's MPI library.
    """
    soname = image.mpi.soname if image.mpi else None
    words = list(options)
    if soname and "--library" in words:
        words[words.index("--library") + 1] = soname
    return tuple(words)


def program_text() -> str:
    """Return the text of the script that checks the MPI that the program loads."""
    return (shipped_folder("slurm") / FILE).read_text(encoding="utf-8")


def limits(spec: JobSpec) -> tuple[str, ...]:
    """Return the preflight options for the minimum network speed and free disk space that the user set."""
    speed = ("--fabric-gbit", str(spec.fabric_gbit)) if spec.fabric_gbit else ()
    return (*speed, *(("--min-free", spec.min_free) if spec.min_free else ()))


def local_command(spec: JobSpec, image: ImageFacts | None = None) -> tuple[str, ...]:
    """Return the preflight command for a job on this machine."""
    if image is not None and is_of_program(spec, image):
        return ("sh", posixpath.join(spec.directory, FILE), *_of_program(image, user_site=spec.user_site))
    return (*PREFLIGHT, *_limits_alone(spec))


def _limits_alone(spec: JobSpec) -> tuple[str, ...]:
    """Return the options of :func:`limits`, and ``--output`` if the job has a minimum of free disk space."""
    return (*(("--output", spec.directory) if spec.min_free else ()), *limits(spec))


def binds(spec: JobSpec, preflight: Sequence[str]) -> tuple[str, ...]:
    """Return the mount of the image file if the preflight reads the image file."""
    return (bind(spec.image, read_only=True),) if "--image" in preflight else ()


def _bindable(path: str) -> bool:
    try:
        return bool(bind(path))
    except BadInput:
        return False
