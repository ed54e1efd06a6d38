"""Propose for each launch mode the plan that most likely works, based only on facts."""

from toolkit import knowledge
from toolkit.engine.host_variables import harmful_variables
from toolkit.engine.planning.variables import (
    can_share,
    copy_settings,
    driver_path,
    mode_variables,
    mpi_folders,
    old_ucx,
    provider_folder,
    reported_workarounds,
    variables_to_unset,
    workarounds,
)
from toolkit.engine.traits import (
    HYDRA,
    bind_target,
    copies_across_namespaces,
    gpu_options,
    has_option,
    is_masked,
    mounted_folders,
    mounted_mpi,
    pmix_type,
    runtime_of,
    splits_namespaces,
)
from toolkit.launcher import mpirun, pals
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import HostMpi
from toolkit.model.prediction import Mode, Plan, ProgramName, Request, Starter
from toolkit.program import program_of_name
from toolkit.program.choose import program_for, starter_of

GLOO_FILE = "toolkit-gloo.py"
"""The name of a Python file that connects Horovod's ranks in an image without toolkit's trainers. The job
script writes this file.
"""
RANKS_FILE = "toolkit-ranks.sh"
"""The name of a shell script that passes each rank its rank number and the addresses of the other ranks. The
job script writes this shell script.
"""
AGENT = "toolkit-agent"
"""The name of the program that mpirun inside a container calls instead of ssh; the job script writes this
program.
"""
NO_OTHER_NODE = "isolated"
"""The value of the MCA parameter ``plm`` with which mpirun of Open MPI 4 and earlier starts ranks only on
the node where mpirun runs.
"""


def propose(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> Plan:
    """Return the plan for the launch mode ``mode``, even if the launch will fail. Rules judge the
    plan later.
    """
    inside = mode == "mpirun-container"
    program = program_for(image, request, mode)
    if not program_of_name(program).BY_MPI:
        return _without_mpi(host, image, request, mode, program)
    return Plan(
        mode=mode,
        launcher=_launcher(host, image, request, mode),
        inside=inside,
        container=_container(host, image, request, mode),
        env={
            **({} if inside else mpi_folders(image, request, mode)),
            **workarounds(host, image, request, mode),
            **reported_workarounds(host, image, request, mode),
            **copy_settings(host, image, request, mode),
            **driver_path(host, image),
            **provider_folder(image, mode),
            **mode_variables(host, image, mode),
            **request.env,
        },
        unset=variables_to_unset(host, image, request, mode),
        binds=(*_binds(host), *(_mpi_mounts(host, image) if mode == "bind" else ())),
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
        env={**driver_path(host, image), **_of_accelerate(host, starter), **request.env},
        unset=harmful_variables(host, mode),
        binds=_binds(host),
        wrapper=("sh", RANKS_FILE) if program_of_name(program).peers(starter) else (),
        program=program,
        starter=starter,
    )


def _of_accelerate(host: HostFacts, starter: Starter) -> dict[str, str]:
    """Return the variable that makes Hugging Face's accelerate compute on CPUs if the host has no GPUs; empty
    for other starters and for hosts with GPUs.
    """
    without_gpus = "gpu_driver" in host.absent and not host.amd_gpus
    return {"ACCELERATE_USE_CPU": "true"} if starter == "accelerate" and without_gpus else {}


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
            # In a job of several nodes, ``fork`` would start every rank on the first node.
            forking = ("-launcher", "fork") if _has_to_fork(image) and request.nodes == 1 else ()
            return (path, *forking, *_without_ssh(image, request), *_agent(host, image, request))


def _launcher_of_mounted(host: HostFacts, provider: HostMpi | None) -> tuple[str, ...]:
    """Return the command that launches ranks that load the host's MPI: usually srun and its option ``--mpi``.

    The host MPI's own launcher starts the ranks if the host has no Slurm. It also starts the ranks if the
    MPI's launcher is Hydra and Slurm offers no interface that the MPI supports.
    """
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


def _mpi_mounts(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Return the folders that the launch must mount so that programs can use the host's MPI.

    Cray's PMI also reads files that slurmd writes for each Slurm step. The example in
    Lumi-supercomputer/lumi-userguide:docs/runjobs/scheduled-jobs/container-jobs.md binds /var/spool, which
    contains these files.
    """
    provider = mounted_mpi(host, image)
    folders = mounted_folders(provider)
    if not folders or provider is None or provider.implementation != "cray":
        return folders
    spool = host.slurm.settings.get("SlurmdSpoolDir", "") if host.slurm else ""
    return (*folders, spool if spool and "%" not in spool else "/var/spool/slurmd")


def _has_to_fork(image: ImageFacts) -> bool:
    """Return whether the image's launcher needs the option ``-launcher fork``, which starts local ranks
    directly. Without this option, the launcher would call srun, which the image does not have.
    """
    mpi = image.mpi
    return mpi is not None and any(row.of(mpi) and row.forked is False for row in knowledge.mpi().inside)


def _without_ssh(image: ImageFacts, request: Request) -> tuple[str, ...]:
    """Return the options with which the image's launcher starts local ranks without ssh; empty if the image
    has ssh, or if the job has several nodes.
    """
    mpi = image.mpi
    if mpi is None or request.nodes > 1 or "ssh" not in image.absent:
        return ()
    return next((row.words for row in knowledge.mpi().without_ssh if row.of(mpi)), ())


def _agent(host: HostFacts, image: ImageFacts, request: Request) -> tuple[str, ...]:
    """Return the options with which the image's launcher starts daemons on other nodes through
    ``toolkit-agent``.
    """
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
        *_shared_namespace(host, image, request, mode),
    )


def _by_runtime(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Return the options that select the native or OCI mode of SingularityCE, so that ranks get the
    launcher's variables.

    An OCI-SIF needs the OCI mode, which removes the launcher's variables unless ``--no-compat`` is set.
    """
    if not has_option(host, "--no-oci"):
        return ()
    if image.format == "oci-sif":
        return ("--oci", "--no-compat")
    asked = host.runtime is not None and host.runtime.settings.get("oci mode") == "yes"
    return ("--no-oci",) if asked else ()


def _driver(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Return the options that mount the GPU driver. Without the GPU driver, programs silently compute on the
    CPU.
    """
    return gpu_options(host, image)


def _left_out(host: HostFacts) -> tuple[str, ...]:
    """Return the option with which the container runtime skips some binds in its settings: the binds whose
    source path is missing on the host.

    The runtime reads the value of ``--no-mount`` as a comma-separated list, so toolkit omits paths with a
    comma. toolkit also omits paths in which the facts mask a user's name, because the real path is unknown.
    """
    targets = [bind_target(bind) for bind in host.runtime.unbound] if host.runtime else []
    named = [target for target in targets if "," not in target and not is_masked(target)]
    return ("--no-mount", ",".join(named)) if named and has_option(host, "--no-mount") else ()


def _shared_namespace(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    """Return the option that puts the ranks of a node into one user namespace, if the MPI's shared memory
    fails without this option.

    Without setuid, each ``apptainer exec`` creates a separate user namespace. Between separate user
    namespaces, the transports of MPICH and Intel MPI fail, and Open MPI 4 fails with messages of 3 MiB and
    more (tests/matrix: ``srun-pmi2-N1n2`` and ``-sharens``; rule ``large-messages-hang``).
    """
    mpi = image.mpi
    if mpi is None or not splits_namespaces(host, request, mode) or not can_share(host):
        return ()
    needed = (
        mpi.implementation in {"mpich", "intelmpi"} or copies_across_namespaces(mpi) or old_ucx(host, image)
    )
    return ("--sharens",) if needed else ()


def _binds(host: HostFacts) -> tuple[str, ...]:
    """Return which of the folders /tmp and /dev the launch must mount, because the runtime's settings do not
    mount them.

    PMIx and Open MPI store their session directory in /tmp. The folder /dev has the devices of a fast
    network, and the shared memory through which ranks of one node find each other.
    """
    if host.runtime is None:
        return ()
    unread = "runtime.settings" in host.unknown
    own_tmp = runtime_of(host).SHARES.get("tmp") == ""
    minimal = unread or host.runtime.settings.get("mount dev") == "minimal"
    wanted = {
        # PMIx and Open MPI use exactly the path /tmp.
        "/tmp": unread or own_tmp or host.runtime.settings.get("mount tmp") == "no",  # noqa: S108
        "/dev": minimal and has_option(host, "--bind /dev"),
    }
    return tuple(path for path, asked in wanted.items() if asked)


def _launcher_folders(image: ImageFacts, request: Request) -> tuple[str, ...]:
    """If the image's Open MPI was moved after its build, return the options of the container runtime that
    tell mpirun in the container the new folder, such as ``--env OPAL_PREFIX=/opt/ompi``. The plan's variables
    would reach only the ranks.

    The runtime reads the value of ``--env`` as a comma-separated list, so the function omits folders whose
    path contains a comma.
    """
    named = mpi_folders(image, request, "mpirun-container").items()
    return tuple(word for name, value in named if "," not in value for word in ("--env", f"{name}={value}"))


def _wrapper(image: ImageFacts) -> tuple[str, ...]:
    """Return the wrapper command that passes each Horovod rank its rank number in a launch without MPI."""
    if image.stack is None:
        return ("python3", GLOO_FILE, "--")
    return ("python", "-m", "toolkit.trainers.gloo", "--")
