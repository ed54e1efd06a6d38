"""Rules about the image's own launcher (mpirun): its settings, its user ID and its PMIx plugins."""

from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, rule
from toolkit.engine.rules.surroundings import lacks_tmpdir
from toolkit.engine.traits import HOST_FOLDERS, bind_target, brings_orte
from toolkit.engine.wireup import hides
from toolkit.engine.words import mpi_name
from toolkit.folders import is_below
from toolkit.model.prediction import Outcome
from toolkit.versions import within

_WRITABLE = (*HOST_FOLDERS, "/dev/shm")  # noqa: S108 - folders that the runtime mounts
_AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
_INTERFACES = "OMPI_MCA_oob_tcp_if_include"
_NO_SERVER = frozenset(("isolated", "cray", "flux", "s1", "s2"))
"""Components of Open MPI's framework pmix that contain no PMIx server (open-mpi/ompi:opal/mca/pmix at
v4.1.4).
"""


@rule(
    "image-tmpdir-not-writable",
    "TMPDIR names a folder in which the image's launcher cannot write",
    severity="error",
    fix="export APPTAINERENV_TMPDIR=/tmp before you submit; or bind the folder that TMPDIR names",
    instead=("srun-pmix", "mpirun-host"),
    source=(
        "measured on five clusters with Open MPI 4.1.4: 'A call to mkdir was unable to create'; "
        "open-mpi/ompi issue 8017 (TMPDIR of the job)"
    ),
    facts=("image.mpi", "host.tmpdir"),
    modes=("mpirun-container",),
)
def image_tmpdir_not_writable(case: Case) -> Hit | None:
    """Open MPI's launcher creates its session directory below TMPDIR, and fails if TMPDIR is a folder of the
    read-only image. The value of TMPDIR comes from the image or, if the image does not set TMPDIR, from the
    job. Ranks that srun or the host's mpirun starts use the PMIx server's folder instead of TMPDIR.
    """
    mpi, folder = case.image.mpi, case.image_facts.environment.get("TMPDIR")
    evidence = f"image: ENV TMPDIR={folder}"
    if not folder and not hides(case, "environment") and lacks_tmpdir(case, case.host_facts.tmpdir):
        folder, evidence = case.host_facts.tmpdir, f"host: TMPDIR={case.host_facts.tmpdir}"
    if mpi is None or mpi.implementation != "openmpi" or not folder:
        return None
    targets = (*_WRITABLE, *(bind_target(bind) for bind in case.plan.binds))
    if any(is_below(folder, target) for target in targets) or "TMPDIR=" in " ".join(case.plan.container):
        return None
    because = f"the launcher of {mpi_name(mpi)} cannot write in TMPDIR={folder}"
    outcome: Outcome = "init-failure" if brings_orte(mpi) else "unknown"
    return Hit((evidence, *case.cite("image.mpi")), outcome, because)


@rule(
    "image-launcher-refuses-root",
    "Open MPI's launcher in the container refuses to run as root",
    severity="error",
    fix=(
        "start the container without `--fakeroot`; or set "
        "`--env OMPI_ALLOW_RUN_AS_ROOT=1 --env OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1`"
    ),
    source=(
        "open-mpi/ompi:docs/man-openmpi/man1/mpirun.1.rst, --allow-run-as-root; tests/matrix: --fakeroot, "
        "'prterun has detected an attempt to run as root'"
    ),
    facts=("image.mpi", "image.mpi.launcher"),
    modes=("mpirun-container",),
)
def image_launcher_refuses_root(case: Case) -> Hit | None:
    """With `--fakeroot`, the user has user ID 0 in the container. With user ID 0, Open MPI's mpirun stops
    before it starts a rank. To allow user ID 0, give mpirun the option `--allow-run-as-root`, or set both
    OMPI_ALLOW_RUN_AS_ROOT and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM to 1.
    """
    case.ask("image.mpi", "image.mpi.launcher")
    mpi, found = case.image_facts.mpi, hides(case, "identity")
    if not found or mpi is None or mpi.implementation != "openmpi" or not mpi.launcher:
        return None
    given = {**case.image_facts.environment, **case.plan.env}
    if "--allow-run-as-root" in case.plan.launcher or all(given.get(name) == "1" for name in _AS_ROOT):
        return None
    because = f"with {next(iter(found))}, mpirun of {mpi_name(mpi)} has user ID 0, and refuses to run"
    return Hit((*dict.fromkeys(found.values()), *case.cite("image.mpi")), "init-failure", because)


@rule(
    "image-launcher-without-pmix",
    "Open MPI's launcher in the container has no PMIx server",
    severity="error",
    fix="install all plugins of Open MPI in the image, at least mca_pmix_ext3x.so or mca_pmix_pmix3x.so",
    instead=("srun-pmix", "mpirun-host"),
    source="tests/matrix/habits: fresh-trap-slimmed-pmix ('Not found in file ess_hnp_module.c')",
    facts=("image.mpi", "image.mpi.launcher"),
    modes=("mpirun-container",),
)
def image_launcher_without_pmix(case: Case) -> Hit | None:
    """In Open MPI 2 to 4, the PMIx server of mpirun is in a plugin of the framework pmix. If a build step of
    the image removed all plugins with a PMIx server, mpirun stops before it starts a rank.
    """
    case.ask("image.mpi", "image.mpi.launcher")
    mpi = case.image_facts.mpi
    if mpi is None or not mpi.launcher or not mpi.plugins or "ess" not in mpi.components:
        return None
    if mpi.implementation != "openmpi" or not within(mpi.version or "0", ">=2,<5"):
        return None
    if set(mpi.components.get("pmix", ())) - _NO_SERVER:
        return None
    because = f"mpirun of {mpi_name(mpi)} has no plugin with a PMIx server"
    return Hit(case.cite("image.mpi", "image.mpi.launcher"), "init-failure", because)


@rule(
    "image-launcher-interface",
    "A launcher setting in the image names a network interface that the host does not have",
    severity="error",
    fix="remove oob_tcp_if_include from the image's openmpi-mca-params.conf or environment",
    instead=("srun-pmix", "mpirun-host"),
    source="measured on five clusters with Open MPI 4.1.4: oob_tcp_if_include = ib0 in a file of the image",
    facts=("image.mpi", "image.environment", "host.interfaces"),
    modes=("mpirun-container",),
)
def image_launcher_interface(case: Case) -> Hit | None:
    """If oob_tcp_if_include is set, the launcher of Open MPI 4 and earlier connects to its daemons only over
    the network interfaces that oob_tcp_if_include names. The launcher fails if the host has none of these
    interfaces.
    """
    case.ask("image.environment", failed_only=True)
    mpi, image = case.image.mpi, case.image_facts
    said = image.environment.get(_INTERFACES) or image.settings.get(_INTERFACES)
    if mpi is None or not brings_orte(mpi) or not said or "/" in said:
        return None
    case.ask("host.interfaces")
    if {word.strip() for word in said.split(",")} & {"lo", *(case.host.interfaces or ())}:
        return None
    because = f"the image sets oob_tcp_if_include={said} for its launcher, and the host has no such interface"
    there = f"host: interfaces: {' '.join(case.host.interfaces or ())}"
    return Hit((f"image: {_INTERFACES}={said}", there), "init-failure", because)
