"""Propose for each launch mode the plan that most likely works; facts are the only input."""

import posixpath

from toolkit import knowledge
from toolkit.engine.host_variables import affects_mpi, harmful_variables, slurm_variables
from toolkit.engine.reports import matching_reports
from toolkit.engine.traits import (
    DRIVER,
    HYDRA,
    OPAL_FOLDERS,
    bind_target,
    brings_orte,
    brings_prrte,
    copies_across_namespaces,
    driver_unsearched,
    gpu_options,
    has_option,
    host_launcher,
    is_masked,
    launcher_pair,
    mounted_folders,
    mounted_mpi,
    needs_named_components,
    pmix_type,
    runtime_of,
    sends_by_ucx,
    splits_namespaces,
    tmp_is_private,
)
from toolkit.folders import is_below, is_system
from toolkit.knowledge import counts
from toolkit.knowledge.fabric import fabrics_of
from toolkit.knowledge.mpi import Namespaces
from toolkit.launcher import mpirun, pals
from toolkit.model.facts import HostFacts, HostMpi, ImageFacts
from toolkit.model.prediction import Mode, Plan, ProgramName, Request
from toolkit.program import named
from toolkit.program.choose import program_for, starter_of
from toolkit.versions import within

_JOB = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_NODELIST", "SLURM_JOB_NODELIST")
"""Variables that tell a launcher about an allocation (openpmix/prrte:src/mca/ras/slurm, plm/slurm)."""
_GLOO = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}
GLOO_FILE = "toolkit-gloo.py"
"""The file, written by the job script, that connects ranks in an image without toolkit's trainers."""
RANKS_FILE = "toolkit-ranks.sh"
"""The file, written by the job script, that gives a rank its number and its peers."""
AGENT = "toolkit-agent"
"""The program, written by the job script, that mpirun inside a container calls instead of ssh."""
ISOLATED = "isolated"
"""The value that tells mpirun of Open MPI 4 and earlier that there is no other node."""


def propose(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> Plan:
    """Return the plan for ``mode``, even if it will fail; rules judge that."""
    inside = mode == "mpirun-container"
    program = program_for(image, request, mode)
    if not named(program).BY_MPI:
        return _without_mpi(host, image, request, mode, program)
    return Plan(
        mode=mode,
        launcher=_launcher(host, image, request, mode),
        inside=inside,
        container=_container(host, image, request, mode),
        env={
            **({} if inside else _mpi_folders(image, request, mode)),
            **_workarounds(host, image, request, mode),
            **_reported_workarounds(host, image, request, mode),
            **_copying(host, image, request, mode),
            **_driver_path(host, image),
            **_providers(image, mode),
            **_env(host, image, mode),
            **request.env,
        },
        unset=_unset(host, image, request, mode),
        binds=(*_binds(host), *(_mounted(host, image) if mode == "bind" else ())),
        wrapper=_wrapper(image) if mode == "gloo" else (),
    )


def _without_mpi(
    host: HostFacts, image: ImageFacts, request: Request, mode: Mode, program: ProgramName
) -> Plan:
    """Return the plan for a program whose ranks find each other without MPI."""
    starter = starter_of(program, request)
    return Plan(
        mode=mode,
        launcher=_launcher(host, image, request, mode),
        inside=mode == "mpirun-container",
        container=(*_by_runtime(host, image), *_driver(host, image), *_left_out(host)),
        env={**_driver_path(host, image), **request.env},
        unset=harmful_variables(host, mode),
        binds=_binds(host),
        wrapper=("sh", RANKS_FILE) if named(program).peers(starter) else (),
        program=program,
        starter=starter,
    )


def _launcher(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    match mode:
        case "srun-pmix":
            return ("srun", f"--mpi={pmix_type(host) or 'pmix'}")
        case "srun-pmi2":
            return ("srun", "--mpi=pmi2")
        case "srun-none" | "gloo" | "torch" | "jax" | "tf-config":
            return ("srun", "--mpi=none")
        case "bind":
            return _launcher_of_mounted(host, mounted_mpi(host, image))
        case "mpirun-host":
            return ("mpirun",)
        case "mpirun-container":
            path = (image.mpi.launcher if image.mpi else None) or "mpirun"
            # On several nodes, ``fork`` would start every rank on the first node.
            forking = ("-launcher", "fork") if _has_to_fork(image) and request.nodes == 1 else ()
            return (path, *forking, *_without_ssh(image, request), *_agent(host, image, request))


def _launcher_of_mounted(host: HostFacts, provider: HostMpi | None) -> tuple[str, ...]:
    """Return the launcher for ranks that load the host's MPI: srun if a type fits, else its own launcher."""
    types = host.slurm.mpi_types if host.slurm else None
    if "slurm" in host.absent and provider is not None:
        return (pals.COMMAND if provider.implementation == "cray" else mpirun.COMMAND,)
    if provider is not None and provider.implementation == "cray" and "cray_shasta" in (types or ()):
        return ("srun", "--mpi=cray_shasta")
    pmix = provider is None or "pmix" in (provider.interfaces or ("pmix",))
    offered = pmix_type(host) is not None if pmix else "pmi2" in (types or ())
    if (
        provider is not None
        and provider.launcher
        and provider.implementation in HYDRA
        and types
        and not offered
    ):
        return ("mpirun",)
    return ("srun", f"--mpi={pmix_type(host) or 'pmix'}" if pmix else "--mpi=pmi2")


def _mounted(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Return the folders to mount for the host's MPI.

    Cray's PMI also reads the files that slurmd writes for each step: docs/runjobs/scheduled-jobs/
    container-jobs.md of Lumi-supercomputer/lumi-userguide binds /var/spool.
    """
    provider = mounted_mpi(host, image)
    folders = mounted_folders(provider)
    if not folders or provider is None or provider.implementation != "cray":
        return folders
    spool = host.slurm.settings.get("SlurmdSpoolDir", "") if host.slurm else ""
    return (*folders, spool if spool and "%" not in spool else "/var/spool/slurmd")


def _has_to_fork(image: ImageFacts) -> bool:
    """Return whether the launcher in the image calls srun for local ranks, although the image has no srun."""
    mpi = image.mpi
    return mpi is not None and any(row.of(mpi) and row.forked is False for row in knowledge.mpi().inside)


def _without_ssh(image: ImageFacts, request: Request) -> tuple[str, ...]:
    """Return the words that let a launcher in the image start local ranks without ssh."""
    mpi = image.mpi
    if mpi is None or request.nodes > 1 or "ssh" not in image.absent:
        return ()
    return next((row.words for row in knowledge.mpi().without_ssh if row.of(mpi)), ())


def _agent(host: HostFacts, image: ImageFacts, request: Request) -> tuple[str, ...]:
    """Return the words that let a launcher in the image start daemons on other nodes by the job script."""
    mpi = image.mpi
    if mpi is None or request.nodes == 1 or not request.allocation or "slurm" in host.absent:
        return ()
    return next((row.words for row in knowledge.mpi().agent if row.of(mpi)), ())


def _container(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    led = _launcher_folders(image, request) if mode == "mpirun-container" else ()
    return (
        *runtime_of(host).standard(image, host.runtime),
        *_by_runtime(host, image),
        *_driver(host, image),
        *_left_out(host),
        *led,
        *_together(host, image, request, mode),
    )


def _by_runtime(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Choose the runtime that passes the launcher's variables on, if the host has two runtimes.

    The other runtime starts an OCI-SIF. It cleans the environment unless an option forbids that.
    """
    if not has_option(host, "--no-oci"):
        return ()
    if image.format == "oci-sif":
        return ("--oci", "--no-compat")
    asked = host.runtime is not None and host.runtime.settings.get("oci mode") == "yes"
    return ("--no-oci",) if asked else ()


def _driver(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Mount the GPUs' driver. Without it the image silently computes on the CPU."""
    return gpu_options(host, image)


def _providers(image: ImageFacts, mode: Mode) -> dict[str, str]:
    """Name the folder of the providers of Intel's libfabric, if it searches another one."""
    own = image.mpi is not None and image.mpi.implementation == "intelmpi" and mode not in {"bind", "gloo"}
    folder = image.providers_unsearched if own and "FI_PROVIDER_PATH" not in image.environment else None
    return {"FI_PROVIDER_PATH": folder} if folder else {}


def _driver_path(host: HostFacts, image: ImageFacts) -> dict[str, str]:
    """Lead programs to the driver, if the image lacks the script of the runtime that does.

    Measured with Apptainer 1.4.5: under ``--nv`` a folder without ``/.singularity.d`` has no LD_LIBRARY_PATH.
    """
    own = image.environment.get("LD_LIBRARY_PATH", "")
    named = ":".join(filter(None, (own, DRIVER)))
    return {"LD_LIBRARY_PATH": named} if driver_unsearched(host, image) else {}


def _left_out(host: HostFacts) -> tuple[str, ...]:
    """Leave out binds that the site sets for every container and whose source this machine lacks.

    The option takes a list separated by commas, so it cannot name a path with a comma, or a masked path.
    """
    targets = [bind_target(bind) for bind in host.runtime.unbound] if host.runtime else []
    named = [target for target in targets if "," not in target and not is_masked(target)]
    return ("--no-mount", ",".join(named)) if named and has_option(host, "--no-mount") else ()


def _together(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    """Put ranks of one node into one namespace if their shared memory needs it.

    Without setuid, each ``apptainer exec`` makes a separate user namespace. Between such namespaces the
    transports of MPICH, Intel MPI and Open MPI 4 fail; Open MPI 4 fails with messages of 3 MiB and more
    (tests/matrix: ``srun-pmi2-N1n2`` and ``-sharens``; rule ``large-messages-hang``).
    """
    mpi = image.mpi
    if mpi is None or not splits_namespaces(host, request, mode) or not _can_share(host):
        return ()
    needed = (
        mpi.implementation in {"mpich", "intelmpi"} or copies_across_namespaces(mpi) or _old_ucx(host, image)
    )
    return ("--sharens",) if needed else ()


def _can_share(host: HostFacts) -> bool:
    return has_option(host, "--sharens")


def _binds(host: HostFacts) -> tuple[str, ...]:
    """Bind /tmp and /dev if the site does not bind them.

    PMIx and Open MPI keep their session in /tmp. /dev has the devices of a fast network, and the shared
    memory by which ranks of one node find each other.
    """
    if host.runtime is None:
        return ()
    unread = "runtime.settings" in host.unknown
    own_tmp = runtime_of(host).SHARES.get("tmp") == ""
    minimal = unread or host.runtime.settings.get("mount dev") == "minimal"
    wanted = {
        # The path that MPI uses.
        "/tmp": unread or own_tmp or host.runtime.settings.get("mount tmp") == "no",  # noqa: S108
        "/dev": minimal and has_option(host, "--bind /dev"),
    }
    return tuple(path for path, asked in wanted.items() if asked)


def _mounted_env(provider: HostMpi | None, image: ImageFacts) -> dict[str, str]:
    """Make the loader search the mounted folders first, and let Open MPI find its files there.

    After the mounted folders the loader searches as before: folders of the image, and ``--nv``'s driver.
    """
    folders = mounted_folders(provider)
    if provider is None or not folders:
        return {}
    libraries = dict.fromkeys((posixpath.dirname(provider.library or ""), *(provider.folders or ())))
    own = (image.environment.get("LD_LIBRARY_PATH", ""), DRIVER)
    first = [f for f in libraries if f and (not is_system(f) or is_below(f, provider.prefix or "-"))]
    env = {"LD_LIBRARY_PATH": ":".join((*first, *(f for f in own if f)))}
    if provider.implementation == "openmpi" and provider.relocatable and provider.prefix:
        env["OPAL_PREFIX"] = provider.prefix
    if provider.plugins:
        env["OMPI_MCA_mca_base_component_path"] = provider.plugins
    return env


def _mpi_folders(image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Tell an Open MPI that was moved where its plugins are."""
    if image.mpi is None or mode in {"bind", "gloo"} or set(request.env) & OPAL_FOLDERS:
        return {}
    return image.mpi.led_by


def _launcher_folders(image: ImageFacts, request: Request) -> tuple[str, ...]:
    """Set the variables for the launcher in the container too. It starts before the ranks get theirs.

    The option takes a list separated by commas, so it cannot name a path with a comma.
    """
    named = _mpi_folders(image, request, "mpirun-container").items()
    return tuple(word for name, value in named if "," not in value for word in ("--env", f"{name}={value}"))


def _needs_step(host: HostFacts, image: ImageFacts) -> bool:
    """Return whether local ranks of the host's mpirun need the variables of a Slurm step.

    PRRTE starts local ranks itself. An Open MPI 4 looks for a Slurm step before it asks PMIx.
    """
    return brings_prrte(host_launcher(host)) and brings_orte(image.mpi)


PLAIN_PMIX = {"PMIX_SECURITY_MODE": "native", "PMIX_GDS_MODULE": "hash"}
"""Modules that every PMIx client has, for servers of another release that name other modules first."""


def _security(host: HostFacts, image: ImageFacts) -> dict[str, str]:
    """Name the security module that the client has, if the server lists munge first.

    The client would find the module itself, but each rank would print a page about the missing munge.
    """
    ways = image.pmix_components.get("psec", ())
    asks = host.munge is not False and "native" in ways and "munge" not in ways
    return {"PMIX_SECURITY_MODE": "native"} if asks else {}


def _env(host: HostFacts, image: ImageFacts, mode: Mode) -> dict[str, str]:
    if mode == "srun-pmix":
        # This store needs no common /tmp; servers list it beside their own.
        apart = tmp_is_private(host) is not False and within(image.pmix or "", knowledge.pmix().stores.in_tmp)
        plain = PLAIN_PMIX if needs_named_components(image) else _security(host, image)
        return {**_client_env(image), **plain, **({"PMIX_MCA_gds": "hash"} if apart else {})}
    if mode == "mpirun-host" and _needs_step(host, image):
        return {knowledge.mpi().outside_step.variable: "0"}
    if mode == "bind":
        return _mounted_env(mounted_mpi(host, image), image)
    if mode == "gloo":
        return dict(_GLOO)
    if mode == "mpirun-container" and "PATH" in image.environment:
        # mpirun puts its own folder at the start of PATH, so the distribution's python would come first.
        return {"PATH": image.environment["PATH"]}
    return {}


def _wrapper(image: ImageFacts) -> tuple[str, ...]:
    """Return the wrapper that tells ranks their number, if no MPI does."""
    if image.stack is None:
        return ("python3", GLOO_FILE, "--")
    return ("python", "-m", "toolkit.trainers.gloo", "--")


def _workarounds(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Return settings that avoid a fault of the image's release, unless they would disable a fast fabric."""
    mpi = image.mpi
    wired = {"srun-pmix": "pmix", "srun-pmi2": "pmi", "mpirun-host": ""}.get(mode)
    if mpi is None or wired is None or host.infiniband != () or host.fabrics:
        return {}
    alone = host.interfaces is not None and len(host.interfaces) == 1
    env: dict[str, str] = {}
    for row in knowledge.mpi().defect:
        other = row.served_by and wired and row.served_by != wired
        if not row.of(mpi) or other or not counts(row.nodes, request.nodes):
            continue
        if row.lifts(mpi) and (alone or "{interface}" not in row.lift):
            env[row.lifted_by] = row.lift.format(interface=(host.interfaces or ("",))[0])
    return env


def _reported_workarounds(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Return settings that avoid a publicly reported fault, if the image does not set them."""
    rows = (row for row, unknown in matching_reports(host, image, request, mode) if row.lift and not unknown)
    found = {row.lift[0]: row.lift[1] for row in rows}
    return {} if request.alone else {n: v for n, v in found.items() if n not in image.environment}


def _copying(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Turn off copying between processes if the ranks cannot share a namespace."""
    mpi = image.mpi
    if mpi is None or not splits_namespaces(host, request, mode) or _can_share(host):
        return {}
    env = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"} if copies_across_namespaces(mpi) else {}
    row = _old_ucx(host, image)
    name, _, value = row.lifted_by.partition("=") if row else ("", "", "")
    return env if not row or name in image.environment else {**env, name: value}


def _old_ucx(host: HostFacts, image: ImageFacts) -> Namespaces | None:
    """Return the row of a UCX that this MPI uses on a fast network, and that fails between namespaces."""
    mpi = image.mpi
    there = fabrics_of(host.infiniband or (), host.fabrics or (), host.link_layers)
    networks = {row.ucx for row in there if row.ucx}
    if mpi is None or not networks & set(image.ucx_transports or ()) or not sends_by_ucx(mpi):
        return None
    rows = (row for row in knowledge.mpi().namespaces if row.by == "ucx" and row.of(mpi))
    return next((row for row in rows if within(image.ucx or "", row.ucx)), None)


def _misses_launcher(image: ImageFacts, request: Request) -> bool:
    """Return whether a launcher in the image sees an allocation, and has neither srun nor ssh.

    PRRTE then crashes with a segmentation fault. Without an allocation it starts local ranks itself
    (tests/matrix: contained-sbatch-1node and contained-1node of Open MPI 5.0.8).
    """
    mpi = image.mpi
    if mpi is None or request.nodes > 1 or "ssh" not in image.absent:
        return False
    return any(r.of(mpi) and r.allocation and r.outcome == "crash" for r in knowledge.mpi().inside)


def _client_env(image: ImageFacts) -> dict[str, str]:
    client = image.pmix or ""
    env: dict[str, str] = {}
    for caution in knowledge.pmix().caution:
        if client and within(client, caution.client):
            env |= caution.env
    return env


def _unset(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    names = list(harmful_variables(host, mode))
    mpi = host_launcher(host)
    if mode in {"srun-pmix", "bind"}:
        # Settings of PMIx must reach client and server; otherwise the rank does not fit the server.
        names += [n for n in slurm_variables(host) if affects_mpi(n) and not n.startswith("PMIX_")]
    if mode == "mpirun-container" and _misses_launcher(image, request):
        names += _JOB
    if mode == "mpirun-host" and mpi is not None and mpi.implementation == "openmpi":
        # Open MPI looks for plugins by path. Leave an MPI without plugins alone: if only half of the
        # variables of a moved launcher are removed, ranks fail (tests/matrix: -clean).
        if image.mpi is not None and image.mpi.plugins:
            names += mpi.leaks or ()
        elif "OPAL_PREFIX" in names and "PMIX_INSTALL_PREFIX" in (mpi.leaks or ()):
            # The host sets this half before its launcher sets the other.
            names.append("PMIX_INSTALL_PREFIX")
        pair = launcher_pair(mpi, image.pmix, request) if image.pmix else None
        names += pair.unset if pair else ()
    return tuple(dict.fromkeys(names))
