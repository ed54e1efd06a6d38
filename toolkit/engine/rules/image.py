"""Rules about the image: what its MPI speaks, and whether the image is what it says."""

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, rule
from toolkit.engine.words import family, mpi_name
from toolkit.knowledge import Mismatch, counts
from toolkit.model.facts import ImageMpi
from toolkit.versions import within


def mismatch(mpi: ImageMpi, sees: str) -> Mismatch | None:
    """Return what is known of a library that is offered ``sees`` and cannot use it."""
    return next((row for row in knowledge.mpi().mismatch if _fits(row, mpi, sees)), None)


def _fits(row: Mismatch, mpi: ImageMpi, sees: str) -> bool:
    return (
        row.implementation == mpi.implementation
        and row.sees in {"", sees}
        and (not row.marker or row.marker in mpi.markers)
        and within(mpi.version or "", row.versions)
    )


def unanswered(case: Case, mpi: ImageMpi, sees: str, *names: str) -> Hit:
    """Judge an MPI that is offered an interface which it does not speak."""
    row = mismatch(mpi, sees)
    evidence = case.cite("image.mpi", *names)
    if row is None:
        because = f"what {mpi_name(mpi)} does without a launcher that it understands has not been measured"
        return Hit(evidence, "unknown", because)
    return Hit(evidence, row.outcome, row.because, source=row.source)


@rule(
    "image-lacks-mpi",
    "There is no MPI library in the image",
    severity="error",
    fix="build an image with MPI: toolkit image build, or bind the host's MPI",
    source="Apptainer user guide, MPI",
    needs=("image.mpi",),
)
def image_lacks_mpi(case: Case) -> Hit | None:
    """No libmpi was found on the paths that the loader of the image searches."""
    if case.image.mpi is not None:
        return None
    if case.request.alone and case.mode != "mpirun-container":
        return Hit(
            case.cite("image.mpi"), severity="warning", fix="nothing, if the program does not call MPI"
        )
    return Hit(
        case.cite("image.mpi"), "loader-failure", "a program that needs libmpi does not start in this image"
    )


@rule(
    "image-lacks-pmix",
    "The MPI in the image does not speak PMIx",
    severity="error",
    fix="use an interface that it speaks (srun --mpi=pmi2), or rebuild the image with PMIx",
    source="Slurm MPI Users Guide; tests/matrix: srun-pmix",
    needs=("image.mpi.interfaces",),
    modes=("srun-pmix",),
)
def image_lacks_pmix(case: Case) -> Hit | None:
    """srun offers PMIx, and the library that the program loads has no PMIx client.

    Depending on implementation and version the ranks abort in MPI_Init, or each believes to be alone
    and the job ends with exit status 0.
    """
    mpi = case.image.mpi
    if mpi is None or "pmix" in (mpi.interfaces or ()):
        return None
    return unanswered(case, mpi, "pmix", "image.mpi.interfaces")


@rule(
    "image-lacks-pmi2",
    "The MPI in the image speaks neither PMI-1 nor PMI-2",
    severity="error",
    fix="use srun --mpi=pmix (mode srun-pmix)",
    source="Slurm MPI Users Guide; tests/matrix: srun-pmi2",
    needs=("image.mpi.interfaces",),
    modes=("srun-pmi2",),
)
def image_lacks_pmi2(case: Case) -> Hit | None:
    """Slurm's pmi2 plugin answers PMI-1 and PMI-2 only. Open MPI as it is packaged has no client for them."""
    mpi = case.image.mpi
    if mpi is None or {"pmi1", "pmi2"} & set(mpi.interfaces or ()):
        return None
    return unanswered(case, mpi, "pmi2", "image.mpi.interfaces")


@rule(
    "image-mpi-not-measured",
    "How this MPI is started has not been measured",
    severity="warning",
    fix="try it: toolkit launch --force, with the preflight on",
    source="tests/matrix covers Open MPI, MPICH and Intel MPI",
    needs=("image.mpi.version",),
)
def image_mpi_not_measured(case: Case) -> Hit | None:
    """Only implementations with cells in the matrix are predicted; for others the engine says so."""
    mpi = case.image.mpi
    if mpi is None or any(row.implementation == mpi.implementation for row in knowledge.mpi().mismatch):
        return None
    return Hit(
        case.cite("image.mpi"), "unknown", f"{family(mpi.implementation)} is not one that is known here"
    )


@rule(
    "libfabric-missing",
    "The MPI in the image opens libfabric between nodes, and the image has none",
    severity="error",
    fix="add libfabric to the image (Debian: libfabric1), or bind the host's",
    source="tests/matrix: srun-pmi2 of Intel MPI, and 'libfabric.so.1 supplied'",
    needs=("image.mpi", "image.libfabric"),
    modes=("srun-pmi2",),
)
def libfabric_missing(case: Case) -> Hit | None:
    """Intel MPI has no transport of its own between nodes: it opens libfabric.so.1 when it starts."""
    mpi = case.image.mpi
    if mpi is None or mpi.implementation != "intelmpi" or case.image.libfabric:
        return None
    if case.request.nodes == 1:
        return None
    return Hit(
        case.cite("image.mpi", "image.libfabric"), "init-failure", "Intel MPI finds no libfabric in the image"
    )


@rule(
    "mpi-release-defect",
    "This release of MPI has a fault that shows here",
    severity="error",
    fix="use another release",
    source="recipes/knowledge/mpi.toml, [[defect]]",
    needs=("image.mpi.version",),
    modes=("srun-pmix", "mpirun-host"),
)
def mpi_release_defect(case: Case) -> Hit | None:
    """Single releases fail in ways that nothing else foretells; they are listed with their cells."""
    mpi = case.image.mpi
    if mpi is None:
        return None
    for row in knowledge.mpi().defect:
        if (
            row.implementation == mpi.implementation
            and within(mpi.version or "", row.versions)
            and counts(row.nodes, case.request.nodes)
            and counts(row.ranks_per_node, case.request.ranks_per_node)
            and row.lifted_by not in case.plan.env
        ):
            return Hit(case.cite("image.mpi"), row.outcome, row.title, row.title, row.fix, row.source)
    return None


@rule(
    "stack-disagrees",
    "The image is not what it says it is",
    severity="warning",
    fix="build the image again; until then believe what was found, not stack.json",
    source="toolkit.image.describe: stack.json against what is inside",
    needs=("image.stack",),
    advice=True,
)
def stack_disagrees(case: Case) -> Hit | None:
    """``/opt/toolkit/stack.json`` was written when the image was built; something was changed since."""
    if not case.image.disagreements:
        return None
    return Hit(tuple(f"image: {line}" for line in case.image.disagreements))
