"""Find how a launcher passes each rank its rank number, and which launch interface the image's MPI uses.

A rank gets its rank number from environment variables, and from a server that these variables name. The
launcher, Slurm and the options of the container runtime decide which variables reach the rank.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.host_variables import option_of_variable, runtime_prefixes
from toolkit.engine.traits import (
    HYDRA,
    brings_orte,
    has_option,
    host_launcher,
    mounted_mpi,
    program_of,
    runtime_of,
    splits_namespaces,
)
from toolkit.knowledge.mpi import Sees
from toolkit.knowledge.pmix import is_plugin
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import Outcome
from toolkit.runtime.aspects import Aspect
from toolkit.versions import within

PMI = {"pmi1", "pmi2"}
_OF_CRAY = "cray_shasta"
"""The value of ``srun --mpi`` for Cray's PMI, which an MPICH in an image does not support."""

_CRAY = "cray"
_STEP = {"SLURM_STEP_ID", "SLURM_STEPID"}
_JOB = {"SLURM_JOB_ID", "SLURM_JOBID"}


@dataclass(frozen=True, slots=True)
class Offer:
    """The launch interfaces that a launcher offers to its ranks.

    ``pmix`` names the PMIx server (``slurm`` or ``launcher``); it is empty without PMIx. ``pmi`` is true if
    the launcher offers PMI-1 and PMI-2. ``shared`` is true if all ranks of a node have the same PMIx
    identity: srun gives this identity to Hydra's proxy on the node, and the ranks inherit it.
    """

    pmix: str = ""
    pmi: bool = False
    shared: bool = False

    @property
    def first_interface(self) -> Sees:
        """Return the interface that a rank finds first, as ``mpi.toml`` writes it: ``pmix``, ``pmi2`` or
        ``none``.
        """
        return "pmix" if self.pmix else "pmi2" if self.pmi else "none"


def offer(case: Case) -> Offer | None:
    """Return the interfaces that the launcher offers in this launch; ``None`` if they depend on an unknown
    fact.

    Container options that remove the launcher's variables do not change the result; see
    :func:`clearing_options`.
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
    """Return the interfaces that the launcher offers to ranks that load the host's mounted MPI.

    Slurm's Cray plugin, and PALS and aprun (launchers of Cray systems), offer Cray's PMI.
    """
    if program_of(case.plan.launcher) != "srun":
        provider = mounted_mpi(case.host_facts, case.original_facts)
        of_cray = provider is not None and provider.implementation == "cray"
        return Offer(pmi=True) if of_cray else _of_launcher(case, provider)
    words = {word[6:] for word in case.plan.launcher if word.startswith("--mpi=")}
    if not words:
        default = step_default(case)
        if default is None:
            return None
        words = {default}
    loaded = case.image_facts.mpi
    speaks = {"pmi2", _OF_CRAY} if loaded is None or loaded.implementation == "cray" else {"pmi2"}
    return Offer(pmix="slurm" if any(map(is_plugin, words)) else "", pmi=bool(words & speaks))


def _of_launcher(case: Case, host: HostMpi | None) -> Offer | None:
    if host is None:
        return Offer()
    if host.implementation == _CRAY:
        return Offer()  # PALS offers Cray's PMI, which an image's MPI does not support
    if host.implementation not in HYDRA:
        return Offer(pmix="launcher")
    default = step_default(case)
    if default is None:
        return None
    inherited = is_plugin(default)
    return Offer(pmix="slurm" if inherited else "", pmi=True, shared=inherited)


def spoken_interfaces(case: Case) -> set[str]:
    """Return the launch interfaces that the MPI of the ranks tries.

    An MPICH 4.2 or 4.3 that was built with PMI and PMIx tries only PMI, unless MPIR_CVAR_PMI_VERSION selects
    PMIx. From 5.0 on, MPICH looks for PMI and for PMIx (pmodels/mpich:src/util/mpir_pmi.c). Open MPI uses PMI
    only through Slurm's library, which does not work under mpirun.
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


def needs_own_daemons(mpi: ImageMpi) -> bool:
    """Return whether this Open MPI connects to its launcher's daemons by a protocol other than PMI and PMIx.

    Open MPI 1.10 and earlier have a separate protocol. From Open MPI 2.0 on, Open MPI's launcher ORTE offers
    PMIx (open-mpi/ompi:orte/orted/pmix at v2.0.0).
    """
    return knowledge.mpi().release.own_messages.of(mpi)


def interface_in_use(case: Case, interfaces: Offer) -> Literal["pmi", "pmix", ""]:
    """Return the interface through which the loaded MPI connects to its launcher; empty if launcher and MPI
    have no common interface.
    """
    faces = spoken_interfaces(case)
    if interfaces.pmi and faces & PMI:
        return "pmi"
    return "pmix" if interfaces.pmix and "pmix" in faces else ""


def in_slurm(case: Case) -> bool:
    """Return whether the launch runs in a Slurm allocation."""
    return case.request.allocation and "slurm" not in case.host_facts.absent


def step_default(case: Case) -> str | None:
    """Return the MPI type that srun uses without the option ``--mpi``. Hydra starts its proxies (one process
    on each node) with srun and without this option.

    Outside a Slurm allocation, the result is the text ``none``. If the type is unknown, the result is
    ``None``.
    """
    if not in_slurm(case):
        return "none"
    chosen = case.host_facts.environment.get("SLURM_MPI_TYPE")
    if chosen and "SLURM_MPI_TYPE" not in case.plan.unset:
        return chosen
    return case.host_facts.slurm.mpi_default if case.host_facts.slurm else None


def in_step(case: Case) -> bool:
    """Return whether a rank has the variables of a Slurm step."""
    if not in_slurm(case) or set(case.plan.unset) & _STEP or case.mode == "mpirun-container":
        return False
    if _STEP & set(case.plan.env):
        return True
    host = host_launcher(case.host_facts)
    if case.mode != "mpirun-host" or host is None or host.implementation in HYDRA:
        return True
    # On the node where mpirun runs, mpirun starts the ranks without srun, so these ranks are outside any
    # Slurm step. If mpirun does not run in a batch script, it runs on a node outside the job, so srun starts
    # all ranks in a Slurm step.
    slurm = case.host_facts.slurm
    told = bool(slurm and slurm.version and within(slurm.version, knowledge.mpi().outside_step.told_by_slurm))
    return told or not case.request.batch


def sees_allocation(case: Case) -> bool:
    """Return whether a launcher inside the container gets Slurm's variables about the allocation, such as
    SLURM_JOB_ID.
    """
    return in_slurm(case) and not clearing_options(case) and not set(case.plan.unset) & _JOB


def options(case: Case, names: AbstractSet[str]) -> dict[str, str]:
    """Return the options in ``names`` that the container runtime gets in this launch: option → origin. The
    origin names the plan, or a variable that the runtime reads instead of this option.
    """
    found = {w: f"plan: {' '.join(case.plan.container)}" for w in case.plan.container}
    for name in sorted(set(case.host_facts.environment) - set(case.plan.unset)):
        if name.startswith(runtime_prefixes(case.host_facts)) and (option := option_of_variable(name)):
            found.setdefault(f"--{option}", f"host: {name} is set")
    return {word: where for word, where in found.items() if word in names}


IN_NAMESPACE = frozenset({"-u", "--userns", "-f", "--fakeroot"})
"""Options with which even a setuid installation of Apptainer starts the container in a user namespace."""


def hides(case: Case, *aspects: Aspect) -> dict[str, str]:
    """Return the options that separate a container from these aspects of the node, such as the node's network
    or home folder: option → origin.

    The plan or a variable sets these options. By default, some container runtimes separate the container from
    an aspect. If the plan has no option that shares this aspect, the result has a text for the default, such
    as ``no --home``.
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


ENV_I = "`env -i`"
"""The key of the command ``env -i`` in the result of :func:`clearing_options`. If a script of the image runs
this command, the program starts without any variables.
"""


def clearing_options(case: Case) -> dict[str, str]:
    """Return the options of the container runtime that remove the launcher's variables before the program
    starts: option → origin. The result also contains OCI mode, and the command ``env -i`` in a script of the
    image, if they remove these variables.
    """
    oci, program = in_oci_mode(case), case.image_facts.program
    return (
        hides(case, "environment")
        | ({"OCI mode": oci} if oci and not options(case, {"--no-compat"}) else {})
        | ({ENV_I: f"image: {program.clears} runs env -i"} if program and program.clears else {})
    )


def in_oci_mode(case: Case) -> str:
    """Return the origin of SingularityCE 4's OCI mode (an option, a variable or singularity.conf); empty if
    the launch does not use this mode.

    In OCI mode, the container gets the host's variables only with --no-compat
    (sylabs/singularity:internal/pkg/runtime/launcher/oci at v4.3.7: process_linux.go, getProcessEnv;
    launcher_linux.go, prepareNativeEnv).
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
    """Return whether the plan mounts the host's complete /dev and the runtime supports this mount."""
    asked = any(bind.partition(":")[0] == "/dev" for bind in case.plan.binds)
    return asked and has_option(case.host_facts, "--bind /dev")


def own_shared_memory(case: Case) -> str:
    """Return the setting that gives each container a private /dev/shm; empty if containers share the host's
    /dev/shm.

    The result is also empty with ``mount dev = no`` in the runtime's configuration. The container then has no
    /dev/shm, and the MPI uses files in /tmp instead.
    """
    runtime = case.host_facts.runtime
    minimal = runtime is not None and runtime.settings.get("mount dev") == "minimal"
    if runtime is None or binds_devices(case) or runtime.settings.get("mount dev") == "no":
        return ""
    asked = next(iter(hides(case, "shm").values()), "")
    return asked or (f"host: {runtime.name}.conf: mount dev = minimal" if minimal else "")


def leaves_out_home(case: Case) -> bool:
    """Return whether an option or a setting keeps the host's home folder out of the container."""
    runtime = case.host_facts.runtime
    forbidden = runtime is not None and runtime.settings.get("mount home") == "no"
    return forbidden or bool(hides(case, "home"))


def waits_for_failed_rank(case: Case, *, connected: bool) -> bool:
    """Return whether the host's launcher continues to wait after a rank fails in MPI_Init.

    ``connected`` is true if the failed rank had connected to the launcher. Hydra of Intel MPI 2021.13 then
    continues to wait. This Hydra usually also waits if the job has several nodes (tests/matrix/truth: pmix
    with venv-impi-2021.13.1, mpirun-host). MPICH's Hydra stops the other ranks. Other releases of Intel MPI
    were not measured.
    """
    host = host_launcher(case.host_facts)
    if (
        case.mode != "mpirun-host"
        or host is None
        or not knowledge.mpi().release.waits_for_failed_rank.of(host)
    ):
        return False
    return connected or case.request.nodes > 1


def after_failed_rank(
    case: Case, failure: Outcome, reason: str, *, connected: bool = False
) -> tuple[Outcome, str, tuple[Outcome, ...]]:
    """Return the outcome of a launch in which a rank fails, the reason for this outcome, and other outcomes
    that occur by chance.

    ``failure`` is how the rank fails, and ``reason`` is why. If the launcher waits for the failed rank, the
    launch usually hangs, but may end with the outcome ``failure``.
    """
    if not waits_for_failed_rank(case, connected=connected):
        return failure, reason, ()
    return "hang", f"{reason}; mpirun of Intel MPI keeps waiting for the failed rank", (failure,)


def alone_in_namespace(case: Case) -> bool | None:
    """Return whether each rank of a node has a separate user namespace; ``None`` if unknown."""
    if "--sharens" in case.plan.container:
        return False
    found = splits_namespaces(case.host_facts, case.request, case.mode)
    asked = case.mode not in {"mpirun-container", "gloo"} and case.request.ranks_per_node > 1
    return True if asked and hides(case, "users") else found


def needs_hint(case: Case) -> bool:
    """Return whether each rank starts as a world of size 1 if the rank detects no Slurm step. This is the
    case for most releases of Open MPI before 5, unless ORTE on the host starts the ranks.

    ORTE, the launcher of Open MPI 4, sets variables that Open MPI 4 accepts instead of a Slurm step
    (open-mpi/ompi:orte/mca/ess). PRRTE, the launcher of Open MPI 5, does not set these variables.
    """
    mpi = case.image_facts.mpi
    if mpi is None or not brings_orte(mpi) or knowledge.mpi().release.ignores_slurm.of(mpi):
        return False
    return not (case.mode == "mpirun-host" and brings_orte(host_launcher(case.host_facts)))
