"""What a launcher puts in front of every rank, and which of it the MPI in the image takes; pure.

A rank learns who it is from variables and from a server that they name. Which variables reach it
follows from the launcher, from Slurm around it and from the options of the container.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.inherited import asked_by, obeyed
from toolkit.engine.traits import (
    HYDRA,
    brings_orte,
    has_option,
    host_launcher,
    mounted_mpi,
    runtime_of,
    splits,
)
from toolkit.knowledge.mpi import Sees
from toolkit.knowledge.pmix import is_plugin
from toolkit.model.facts import HostMpi, ImageMpi
from toolkit.runtime.aspects import Aspect
from toolkit.versions import within

PMI = {"pmi1", "pmi2"}
_PMI_TYPES = {"pmi2", "cray_shasta"}
"""What ``srun --mpi`` takes for PMI."""

_STEP = {"SLURM_STEP_ID", "SLURM_STEPID"}
_JOB = {"SLURM_JOB_ID", "SLURM_JOBID"}


@dataclass(frozen=True, slots=True)
class Offer:
    """``pmix`` names who serves PMIx (``slurm``, ``launcher``), ``pmi`` tells that PMI-1 and PMI-2 are.

    ``shared`` says that the ranks of a node were all given the PMIx identity of the one process that
    started them.
    """

    pmix: str = ""
    pmi: bool = False
    shared: bool = False

    @property
    def sees(self) -> Sees:
        """Return what a rank sees first, in the words of ``mpi.toml``."""
        return "pmix" if self.pmix else "pmi2" if self.pmi else "none"


def offer(case: Case) -> Offer | None:
    """Return what the ranks of this launch find; ``None`` where a fact that decides it is not known.

    Nothing is taken off for a container that cleans the environment: see :func:`cleaned`.
    """
    match case.mode:
        case "srun-pmix":
            return Offer(pmix="slurm")
        case "srun-pmi2":
            return Offer(pmi=True)
        case "bind":
            return _to_mounted(case)
        case "mpirun-host":
            return _of_launcher(case, host_launcher(case.host_facts))
        case _:
            return Offer()


def _to_mounted(case: Case) -> Offer | None:
    """Return what ranks find that load an MPI of the host; Cray's plugin serves Cray's PMI."""
    if not case.plan.launcher[0].endswith("srun"):
        return _of_launcher(case, mounted_mpi(case.host_facts, case.original_facts))
    words = {word[6:] for word in case.plan.launcher if word.startswith("--mpi=")}
    return Offer(pmix="slurm" if any(map(is_plugin, words)) else "", pmi=bool(words & _PMI_TYPES))


def _of_launcher(case: Case, host: HostMpi | None) -> Offer | None:
    if host is None:
        return Offer()
    if host.implementation not in HYDRA:
        return Offer(pmix="launcher")
    default = step_default(case)
    if default is None:
        return None
    inherited = is_plugin(default)
    return Offer(pmix="slurm" if inherited else "", pmi=True, shared=inherited)


def spoken(case: Case) -> set[str]:
    """Return the interfaces that the loaded MPI tries by itself.

    MPICH 4.2 and 4.3, built for PMI and PMIx, speak PMI-1 unless they are told otherwise; from 5.0 on they
    look which there is (pmodels/mpich:src/util/mpir_pmi.c, MPIR_CVAR_PMI_VERSION). Open MPI speaks PMI
    through Slurm's own library, which no mpirun serves.
    """
    mpi = case.image_facts.mpi
    faces = set((mpi.interfaces if mpi else None) or ())
    if (
        mpi is not None
        and mpi.implementation == "openmpi"
        and case.mode in {"mpirun-host", "mpirun-container"}
    ):
        return faces - PMI
    if mpi is None or not knowledge.mpi().release.pmi_first.of(mpi):
        return faces
    told = case.plan.env.get("MPIR_CVAR_PMI_VERSION") == "x"
    return faces if told or not faces & PMI else faces & PMI


def knows_orte_alone(mpi: ImageMpi) -> bool:
    """Tell whether this Open MPI finds the daemons of its own launcher, without PMI and PMIx.

    From 2.0 on ORTE serves PMIx (open-mpi/ompi:orte/orted/pmix at v2.0.0; v1.10 has its own messages).
    """
    return knowledge.mpi().release.own_messages.of(mpi)


def served(case: Case, found: Offer) -> Literal["pmi", "pmix", ""]:
    """Return the interface by which the loaded MPI finds its launcher, if there is one."""
    faces = spoken(case)
    if found.pmi and faces & PMI:
        return "pmi"
    return "pmix" if found.pmix and "pmix" in faces else ""


def in_slurm(case: Case) -> bool:
    """Return whether there is an allocation of Slurm around the launch, not of another scheduler."""
    return case.request.allocation and "slurm" not in case.host_facts.absent


def step_default(case: Case) -> str | None:
    """Return the MPI type of a step that names none, as Hydra's proxies are; ``none`` without Slurm."""
    if not in_slurm(case):
        return "none"
    chosen = case.host_facts.environment.get("SLURM_MPI_TYPE")
    if chosen and "SLURM_MPI_TYPE" not in case.plan.unset:
        return chosen
    return case.host_facts.slurm.mpi_default if case.host_facts.slurm else None


def in_step(case: Case) -> bool:
    """Tell whether a rank sees that it is part of a step of Slurm."""
    if not in_slurm(case) or set(case.plan.unset) & _STEP or case.mode == "mpirun-container":
        return False
    if _STEP & set(case.plan.env):
        return True
    host = host_launcher(case.host_facts)
    if case.mode != "mpirun-host" or host is None or host.implementation in HYDRA:
        return True
    # PRRTE starts the ranks of its own node itself; in a batch script that node has ranks.
    slurm = case.host_facts.slurm
    told = bool(slurm and slurm.version and within(slurm.version, knowledge.mpi().outside_step.told_by_slurm))
    return told or not case.request.batch


def allocation_seen(case: Case) -> bool:
    """Tell whether a launcher inside the container sees the allocation around it."""
    return in_slurm(case) and not cleaned(case) and not set(case.plan.unset) & _JOB


def options(case: Case, wanted: AbstractSet[str]) -> dict[str, str]:
    """Return options in force, with where each is said: the plan, or a variable that the runtime obeys."""
    found = {w: f"plan: {' '.join(case.plan.container)}" for w in case.plan.container}
    for name in sorted(set(case.host_facts.environment) - set(case.plan.unset)):
        if name.startswith(obeyed(case.host_facts)) and (option := asked_by(name)):
            found.setdefault(f"--{option}", f"host: {name} is set")
    return {word: where for word, where in found.items() if word in wanted}


def hides(case: Case, *aspects: Aspect) -> dict[str, str]:
    """Return options that separate a container from its node in some aspects, each with its source.

    It is an option in force, or an absent option without which the runtime does not share that.
    """
    kind = runtime_of(case.host_facts)
    found: dict[str, str] = {}
    for aspect in aspects:
        found |= options(case, kind.HIDES.get(aspect, frozenset()))
        asked = kind.SHARES.get(aspect)
        if asked is not None and (not asked or asked not in case.plan.container):
            shown = f"no {asked}" if asked else f"own {aspect}"
            found[shown] = f"plan: {kind.NAMES[0]} {' '.join(case.plan.container)}".strip()
    return found


def cleaned(case: Case) -> dict[str, str]:
    """Return the options that start the container without the variables of the launcher."""
    oci = in_oci_mode(case)
    return hides(case, "environment") | (
        {"OCI mode": oci} if oci and not options(case, {"--no-compat"}) else {}
    )


def in_oci_mode(case: Case) -> str:
    """Return what has SingularityCE 4 leave the container to an OCI runtime; empty text where nothing does.

    That one gets none of the host's variables unless --no-compat is given (sylabs/singularity:internal/pkg/
    runtime/launcher/oci at v4.3.7: process_linux.go, getProcessEnv; launcher_linux.go, prepareNativeEnv).
    """
    runtime = case.host_facts.runtime
    if runtime is None or not has_option(case.host_facts, "--no-oci"):
        return ""
    if "--no-oci" in case.plan.container:
        return ""
    asked = next(iter(options(case, {"--oci"}).values()), "")
    configured = runtime.settings.get("oci mode") == "yes"
    return asked or ("host: singularity.conf: oci mode = yes" if configured else "")


def binds_devices(case: Case) -> bool:
    """Tell whether all of the host's /dev is asked for, which a runtime gives unless 'mount dev' is no."""
    asked = any(bind.partition(":")[0] == "/dev" for bind in case.plan.binds)
    return asked and has_option(case.host_facts, "--bind /dev")


def own_shared_memory(case: Case) -> str:
    """Return what gives each container a /dev/shm of its own; empty text where it has that of the host.

    With 'mount dev = no' there is none at all, and an MPI makes do with files in /tmp.
    """
    runtime = case.host_facts.runtime
    minimal = runtime is not None and runtime.settings.get("mount dev") == "minimal"
    if runtime is None or binds_devices(case) or runtime.settings.get("mount dev") == "no":
        return ""
    asked = next(iter(hides(case, "shm").values()), "")
    return asked or (f"host: {runtime.name}.conf: mount dev = minimal" if minimal else "")


def leaves_out_home(case: Case) -> bool:
    """Tell whether the home folder of the host is not mounted."""
    runtime = case.host_facts.runtime
    forbidden = runtime is not None and runtime.settings.get("mount home") == "no"
    return forbidden or bool(hides(case, "home"))


def waits_for_the_dead(case: Case, *, met: bool) -> bool:
    """Tell whether the host's launcher goes on waiting when a rank gives up in MPI_Init.

    The Hydra of Intel MPI 2021.13 does where the rank had ``met`` it, and mostly where its proxies are on
    several nodes (tests/matrix/truth: pmix with venv-impi-2021.13.1, mpirun-host); that of MPICH ends the
    others. Other releases of Intel's were not measured.
    """
    host = host_launcher(case.host_facts)
    if case.mode != "mpirun-host" or host is None or not knowledge.mpi().release.waits_for_the_dead.of(host):
        return False
    return met or case.request.nodes > 1


def alone_in_namespace(case: Case) -> bool | None:
    """Tell whether each rank of a node is in a user namespace of its own; ``None`` if that is not known."""
    if "--sharens" in case.plan.container:
        return False
    found = splits(case.host_facts, case.request, case.mode)
    asked = case.mode not in {"mpirun-container", "gloo"} and case.request.ranks_per_node > 1
    return True if asked and hides(case, "users") else found


def needs_hint(case: Case) -> bool:
    """Tell whether the image's Open MPI 4 takes itself for a singleton unless it sees a step of Slurm.

    Its own launcher says so by other variables (open-mpi/ompi:orte/mca/ess); PRRTE does not.
    """
    mpi = case.image_facts.mpi
    if mpi is None or not brings_orte(mpi) or knowledge.mpi().release.ignores_slurm.of(mpi):
        return False
    return not (case.mode == "mpirun-host" and brings_orte(host_launcher(case.host_facts)))
