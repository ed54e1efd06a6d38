"""Propose the words of a launch: for every mode the plan that has the best chance, from facts alone."""

from toolkit import knowledge
from toolkit.knowledge import Pair, counts
from toolkit.model.facts import HostFacts, HostMpi, ImageFacts
from toolkit.model.prediction import Mode, Plan, Request
from toolkit.versions import within

_RUNTIMES = ("APPTAINER", "SINGULARITY")
_SHARENS_SINCE = {"apptainer": ">=1.3"}
"""Runtimes that can put the ranks of a node into one namespace (apptainer/apptainer:CHANGELOG.md 1.3)."""


def propose(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> Plan:
    """Return the plan for ``mode``, whether or not it will work; rules judge that."""
    return Plan(
        mode=mode,
        launcher=_launcher(host, image, request, mode),
        inside=mode == "mpirun-container",
        container=_container(host, image, request, mode),
        env={**_env(host, image, mode), **request.env},
        unset=_unset(host, image, request, mode),
        binds=_binds(host),
    )


def harmful(host: HostFacts) -> tuple[str, ...]:
    """Return the variables of the host that a job would inherit and that are meant for its own MPI."""
    return tuple(name for name in sorted(host.environment) if _is_harmful(name))


def _is_harmful(name: str) -> bool:
    for runtime in _RUNTIMES:
        # The runtime sets the rest of the name inside the container.
        name = name.removeprefix(f"{runtime}ENV_")
    return steers_mpi(name) or container_option(name) is not None


def steers_mpi(name: str) -> bool:
    """Tell whether a variable changes what an MPI does, or which Python modules it is called from."""
    known = knowledge.mpi().variables
    return name in {*known.paths, *known.harmful} or name.startswith(known.harmful_prefixes)


def container_option(name: str) -> str | None:
    """Return the option that a variable stands for: ``cleanenv`` for ``APPTAINER_CLEANENV``."""
    runtime, _, option = name.partition("_")
    if runtime not in _RUNTIMES or option not in knowledge.mpi().variables.container_options:
        return None
    return option.lower().replace("_", "-")


def host_launcher(host: HostFacts) -> HostMpi | None:
    """Return the MPI whose mpirun is found first on the host."""
    return host.mpis[0] if host.mpis else None


def pmix_type(host: HostFacts) -> str | None:
    """Return what to write behind ``--mpi=`` for PMIx, or ``None`` where Slurm has no PMIx."""
    types = (host.slurm.mpi_types if host.slurm else None) or ()
    if "pmix" in types:
        return "pmix"
    versioned = sorted(t for t in types if t.startswith("pmix_v"))
    return versioned[-1] if versioned else None


def launcher_pair(
    host: HostMpi, client: str, nodes: int, unset: tuple[str, ...] | None = None
) -> Pair | None:
    """Return what is known of the host's launcher and this PMIx client.

    ``unset`` are the variables that are taken away between them; ``None`` means those that help.
    """
    rows = [row for row in knowledge.pmix().mpirun if _fits(row, host, client, nodes)]
    if unset is None:
        return next((row for row in rows if row.outcome == "ok"), None)
    return next((row for row in rows if set(row.unset) <= set(unset)), None)


def _fits(row: Pair, host: HostMpi, client: str, nodes: int) -> bool:
    if row.server and not host.pmix:
        return False
    return (
        within(host.version or "", row.launcher)
        and within(host.pmix or "", row.server)
        and within(client, row.client)
        and counts(row.nodes, nodes)
    )


def _launcher(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    match mode:
        case "srun-pmix":
            return ("srun", f"--mpi={pmix_type(host) or 'pmix'}")
        case "srun-pmi2":
            return ("srun", "--mpi=pmi2")
        case "mpirun-host":
            return ("mpirun",)
        case "mpirun-container":
            path = (image.mpi.launcher if image.mpi else None) or "mpirun"
            hydra = image.mpi is not None and image.mpi.implementation == "mpich"
            # Hydra asks srun to start even local ranks, and the image has none; over several
            # nodes forking would put every rank on the first.
            return (path, "-launcher", "fork") if hydra and request.nodes == 1 else (path,)


def _container(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    """Put ranks of one node into one namespace where their shared memory needs it.

    Without setuid each ``apptainer exec`` makes a user namespace of its own, between which
    MPICH's and Intel MPI's transports fail (tests/matrix: ``srun-pmi2-N1n2`` and ``-sharens``).
    """
    runtime, mpi = host.runtime, image.mpi
    if request.ranks_per_node == 1 or mode == "mpirun-container" or runtime is None or mpi is None:
        return ()
    can = runtime.setuid is False and within(runtime.version, _SHARENS_SINCE.get(runtime.name, "<0"))
    return ("--sharens",) if can and mpi.implementation in {"mpich", "intelmpi"} else ()


def _binds(host: HostFacts) -> tuple[str, ...]:
    """Bind /tmp where the site does not: PMIx and Open MPI keep their session there."""
    if host.runtime is None:
        return ()
    unread = "runtime.settings" in host.unknown
    needed = unread or host.runtime.settings.get("mount tmp") == "no"
    return ("/tmp",) if needed else ()  # noqa: S108 - the path that MPI uses


def tmp_is_private(host: HostFacts) -> bool | None:
    """Tell whether Slurm gives each job a /tmp of its own; ``None`` where its settings are not known."""
    if host.slurm is None or "slurm.settings" in host.unknown:
        return None
    return "tmpfs" in host.slurm.settings.get("JobContainerType", "")


def needs_step(host: HostFacts, image: ImageFacts) -> bool:
    """Tell whether ranks that the host's mpirun starts on its own node have to be told of a step."""
    row, launcher, mpi = knowledge.mpi().outside_step, host_launcher(host), image.mpi
    if launcher is None or mpi is None or {launcher.implementation, mpi.implementation} != {"openmpi"}:
        return False
    return within(launcher.version or "", row.launcher) and within(mpi.version or "", row.image)


def _env(host: HostFacts, image: ImageFacts, mode: Mode) -> dict[str, str]:
    if mode == "srun-pmix":
        # A store that needs no common /tmp; servers offer it beside their own.
        apart = tmp_is_private(host) is not False and within(image.pmix or "", ">=5")
        return {**_client_env(image), **({"PMIX_MCA_gds": "hash"} if apart else {})}
    if mode == "mpirun-host" and needs_step(host, image):
        return {knowledge.mpi().outside_step.variable: "0"}
    if mode == "mpirun-container" and "PATH" in image.environment:
        # mpirun puts its own folder in front of PATH, and a distribution's python before the image's.
        return {"PATH": image.environment["PATH"]}
    return {}


def _client_env(image: ImageFacts) -> dict[str, str]:
    client = image.pmix or ""
    env: dict[str, str] = {}
    for caution in knowledge.pmix().caution:
        if client and within(client, caution.client):
            env |= caution.env
    return env


def _unset(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    names = list(harmful(host))
    mpi = host_launcher(host)
    if mode == "mpirun-host" and mpi is not None and mpi.implementation == "openmpi":
        # Only plugins are searched for by path. An MPI in one piece is left alone: taking half
        # of a relocated launcher's variables away is worse than none (tests/matrix: -clean).
        if image.mpi is not None and image.mpi.plugins:
            names += mpi.leaks or ()
        pair = launcher_pair(mpi, image.pmix, request.nodes) if image.pmix else None
        names += pair.unset if pair else ()
    return tuple(dict.fromkeys(names))
