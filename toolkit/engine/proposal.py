"""Propose the words of a launch: for every mode the plan that has the best chance, from facts alone."""

import posixpath

from toolkit import knowledge
from toolkit.engine.inherited import harmful, set_by_slurm, steers_mpi
from toolkit.engine.reports import met
from toolkit.engine.traits import (
    DRIVER,
    HYDRA,
    OPAL_FOLDERS,
    bind_target,
    brings_orte,
    brings_prrte,
    copies_blindly,
    driver_unsearched,
    gpu_options,
    has_option,
    host_launcher,
    insists,
    is_masked,
    launcher_pair,
    mounted_folders,
    mounted_mpi,
    pmix_type,
    runtime_of,
    sends_by_ucx,
    splits,
    tmp_is_private,
)
from toolkit.folders import is_below, is_system
from toolkit.knowledge import counts
from toolkit.knowledge.fabric import fabrics_of
from toolkit.knowledge.mpi import Namespaces
from toolkit.model.facts import HostFacts, HostMpi, ImageFacts
from toolkit.model.prediction import Mode, Plan, ProgramName, Request
from toolkit.program import named
from toolkit.program.choose import program_for, starter_of
from toolkit.versions import within

_JOB = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_NODELIST", "SLURM_JOB_NODELIST")
"""By what a launcher knows of an allocation (openpmix/prrte:src/mca/ras/slurm, plm/slurm)."""
_GLOO = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}
GLOO_FILE = "toolkit-gloo.py"
"""What wires up ranks in an image that has no trainers of toolkit; a job script makes it in its folder."""
RANKS_FILE = "toolkit-ranks.sh"
"""What tells a rank its place and where the others are; a job script makes it in its folder."""
AGENT = "toolkit-agent"
"""What mpirun inside a container calls in place of ssh; a job script makes it in its folder."""
ISOLATED = "isolated"
"""What tells the mpirun of an Open MPI before 5 that there is no other node."""


def propose(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> Plan:
    """Return the plan for ``mode``, whether or not it will work; rules judge that."""
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
            **({} if inside else _led_by(image, request, mode)),
            **_lifts(host, image, request, mode),
            **_lifts_reported(host, image, request, mode),
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
    """Return the plan for a program whose ranks do not ask an MPI for each other."""
    starter = starter_of(program, request)
    return Plan(
        mode=mode,
        launcher=_launcher(host, image, request, mode),
        inside=mode == "mpirun-container",
        container=(*_by_runtime(host, image), *_driver(host, image), *_left_out(host)),
        env={**_driver_path(host, image), **request.env},
        unset=harmful(host, mode),
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
            # Over several nodes forking would put every rank on the first.
            forking = ("-launcher", "fork") if _has_to_fork(image) and request.nodes == 1 else ()
            return (path, *forking, *_without_ssh(image, request), *_agent(host, image, request))


def _launcher_of_mounted(host: HostFacts, provider: HostMpi | None) -> tuple[str, ...]:
    """Return what starts ranks that load an MPI of the host: what srun offers of it, else its own mpirun."""
    types = host.slurm.mpi_types if host.slurm else None
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
    """Return the folders of the host's MPI; Cray's PMI also reads what slurmd writes for each step.

    (Lumi-supercomputer/lumi-userguide: docs/runjobs/scheduled-jobs/container-jobs.md binds /var/spool.)
    """
    provider = mounted_mpi(host, image)
    folders = mounted_folders(provider)
    if not folders or provider is None or provider.implementation != "cray":
        return folders
    spool = host.slurm.settings.get("SlurmdSpoolDir", "") if host.slurm else ""
    return (*folders, spool if spool and "%" not in spool else "/var/spool/slurmd")


def _has_to_fork(image: ImageFacts) -> bool:
    """Tell whether the launcher inside asks srun, which the image lacks, for ranks of its own node."""
    mpi = image.mpi
    return mpi is not None and any(row.of(mpi) and row.forked is False for row in knowledge.mpi().inside)


def _without_ssh(image: ImageFacts, request: Request) -> tuple[str, ...]:
    """Return the words by which a launcher inside starts ranks of its own node without an ssh."""
    mpi = image.mpi
    if mpi is None or request.nodes > 1 or "ssh" not in image.absent:
        return ()
    return next((row.words for row in knowledge.mpi().without_ssh if row.of(mpi)), ())


def _agent(host: HostFacts, image: ImageFacts, request: Request) -> tuple[str, ...]:
    """Return the words by which a launcher inside has the job script start its daemons on other nodes."""
    mpi = image.mpi
    if mpi is None or request.nodes == 1 or not request.allocation or "slurm" in host.absent:
        return ()
    return next((row.words for row in knowledge.mpi().agent if row.of(mpi)), ())


def _container(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    led = _led_inside(image, request) if mode == "mpirun-container" else ()
    return (
        *runtime_of(host).standard(image, host.runtime),
        *_by_runtime(host, image),
        *_driver(host, image),
        *_left_out(host),
        *led,
        *_together(host, image, request, mode),
    )


def _by_runtime(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Start an image by the runtime that hands the launcher's variables on, where there are two.

    An OCI-SIF is left to the other one, which cleans the environment unless it is told not to.
    """
    if not has_option(host, "--no-oci"):
        return ()
    if image.format == "oci-sif":
        return ("--oci", "--no-compat")
    asked = host.runtime is not None and host.runtime.settings.get("oci mode") == "yes"
    return ("--no-oci",) if asked else ()


def _driver(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Bring the GPUs' driver in; without it the image computes on the processors, often without a word."""
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
    """Leave out what the site binds into every container and the machine does not have.

    The option takes a list with commas between; a path that holds one, or is masked, cannot be named.
    """
    targets = [bind_target(bind) for bind in host.runtime.unbound] if host.runtime else []
    named = [target for target in targets if "," not in target and not is_masked(target)]
    return ("--no-mount", ",".join(named)) if named and has_option(host, "--no-mount") else ()


def _together(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    """Put ranks of one node into one namespace where their shared memory needs it.

    Without setuid each ``apptainer exec`` makes a user namespace of its own, between which the
    transports of MPICH, Intel MPI and Open MPI 4 fail, the last with messages of 3 MiB and more
    (tests/matrix: ``srun-pmi2-N1n2`` and ``-sharens``; rule ``large-messages-hang``).
    """
    mpi = image.mpi
    if mpi is None or not splits(host, request, mode) or not _can_share(host):
        return ()
    needed = mpi.implementation in {"mpich", "intelmpi"} or copies_blindly(mpi) or _old_ucx(host, image)
    return ("--sharens",) if needed else ()


def _can_share(host: HostFacts) -> bool:
    return has_option(host, "--sharens")


def _binds(host: HostFacts) -> tuple[str, ...]:
    """Bind /tmp and /dev where the site does not.

    PMIx and Open MPI keep their session in the one; the other has the devices of a fast network, and the
    shared memory by which ranks of one node find each other.
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
    """Let the loader look into the mounted folders first, and Open MPI find its own files there.

    Behind them it looks where it would have: where the image says, and where ``--nv`` puts the driver.
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


def _led_by(image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Tell an Open MPI that was moved where its plugins lie."""
    if image.mpi is None or mode in {"bind", "gloo"} or set(request.env) & OPAL_FOLDERS:
        return {}
    return image.mpi.led_by


def _led_inside(image: ImageFacts, request: Request) -> tuple[str, ...]:
    """Tell the launcher in the container too, which starts before the ranks get variables of their own.

    The option takes a list with commas between; a path that holds one cannot be named.
    """
    named = _led_by(image, request, "mpirun-container").items()
    return tuple(word for name, value in named if "," not in value for word in ("--env", f"{name}={value}"))


def _needs_step(host: HostFacts, image: ImageFacts) -> bool:
    """Tell whether ranks that the host's mpirun starts on its own node have to be told of a step.

    PRRTE starts them itself, and an Open MPI 4 looks for a step of Slurm before it asks PMIx.
    """
    return brings_prrte(host_launcher(host)) and brings_orte(image.mpi)


PLAIN_PMIX = {"PMIX_SECURITY_MODE": "native", "PMIX_GDS_MODULE": "hash"}
"""What every PMIx client has, in place of what a server of another release offers first."""


def _security(host: HostFacts, image: ImageFacts) -> dict[str, str]:
    """Name the way to prove an identity that the client has, where the server offers munge before it.

    The client would find it by itself, and print a page for each rank about the one that it lacks.
    """
    ways = image.pmix_components.get("psec", ())
    asks = host.munge is not False and "native" in ways and "munge" not in ways
    return {"PMIX_SECURITY_MODE": "native"} if asks else {}


def _env(host: HostFacts, image: ImageFacts, mode: Mode) -> dict[str, str]:
    if mode == "srun-pmix":
        # A store that needs no common /tmp; servers offer it beside their own.
        apart = tmp_is_private(host) is not False and within(image.pmix or "", knowledge.pmix().stores.in_tmp)
        plain = PLAIN_PMIX if insists(image) else _security(host, image)
        return {**_client_env(image), **plain, **({"PMIX_MCA_gds": "hash"} if apart else {})}
    if mode == "mpirun-host" and _needs_step(host, image):
        return {knowledge.mpi().outside_step.variable: "0"}
    if mode == "bind":
        return _mounted_env(mounted_mpi(host, image), image)
    if mode == "gloo":
        return dict(_GLOO)
    if mode == "mpirun-container" and "PATH" in image.environment:
        # mpirun puts its own folder in front of PATH, and a distribution's python before the image's.
        return {"PATH": image.environment["PATH"]}
    return {}


def _wrapper(image: ImageFacts) -> tuple[str, ...]:
    """Return what is run in front of the ranks' command where no MPI tells them who they are."""
    if image.stack is None:
        return ("python3", GLOO_FILE, "--")
    return ("python", "-m", "toolkit.trainers.gloo", "--")


def _lifts(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Return what lifts a fault of the image's release, unless that would shut a fast fabric out."""
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


def _lifts_reported(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Return what lifts a fault that public reports describe, if the image does not set it already."""
    rows = (row for row, unknown in met(host, image, request, mode) if row.lift and not unknown)
    found = {row.lift[0]: row.lift[1] for row in rows}
    return {} if request.alone else {n: v for n, v in found.items() if n not in image.environment}


def _copying(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Turn copying between processes off where they cannot be put into one namespace."""
    mpi = image.mpi
    if mpi is None or not splits(host, request, mode) or _can_share(host):
        return {}
    env = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"} if copies_blindly(mpi) else {}
    row = _old_ucx(host, image)
    name, _, value = row.lifted_by.partition("=") if row else ("", "", "")
    return env if not row or name in image.environment else {**env, name: value}


def _old_ucx(host: HostFacts, image: ImageFacts) -> Namespaces | None:
    """Return what is known of a UCX that takes a fast network for this MPI, and fails between namespaces."""
    mpi = image.mpi
    there = fabrics_of(host.infiniband or (), host.fabrics or (), host.link_layers)
    networks = {row.ucx for row in there if row.ucx}
    if mpi is None or not networks & set(image.ucx_transports or ()) or not sends_by_ucx(mpi):
        return None
    rows = (row for row in knowledge.mpi().namespaces if row.by == "ucx" and row.of(mpi))
    return next((row for row in rows if within(image.ucx or "", row.ucx)), None)


def _mistakes_allocation(image: ImageFacts, request: Request) -> bool:
    """Tell whether a launcher inside looks for srun or ssh on seeing an allocation, and has neither.

    PRRTE then ends with a segmentation fault; it starts the ranks of its own node by itself where it
    sees no allocation (tests/matrix: contained-sbatch-1node against contained-1node of Open MPI 5.0.8).
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
    names = list(harmful(host, mode))
    mpi = host_launcher(host)
    if mode in {"srun-pmix", "bind"}:
        # What is meant for PMIx is said to both of its ends; a rank without it would not fit the server.
        names += [n for n in set_by_slurm(host) if steers_mpi(n) and not n.startswith("PMIX_")]
    if mode == "mpirun-container" and _mistakes_allocation(image, request):
        names += _JOB
    if mode == "mpirun-host" and mpi is not None and mpi.implementation == "openmpi":
        # Only plugins are searched for by path. An MPI in one piece is left alone: taking half
        # of a relocated launcher's variables away is worse than none (tests/matrix: -clean).
        if image.mpi is not None and image.mpi.plugins:
            names += mpi.leaks or ()
        elif "OPAL_PREFIX" in names and "PMIX_INSTALL_PREFIX" in (mpi.leaks or ()):
            # The host set the one half before its launcher did.
            names.append("PMIX_INSTALL_PREFIX")
        pair = launcher_pair(mpi, image.pmix, request) if image.pmix else None
        names += pair.unset if pair else ()
    return tuple(dict.fromkeys(names))
