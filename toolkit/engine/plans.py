"""Propose the words of a launch: for every mode the plan that has the best chance, from facts alone."""

import posixpath

from toolkit import knowledge
from toolkit.folders import is_below, is_system
from toolkit.knowledge import counts
from toolkit.knowledge.fabric import fabrics_of
from toolkit.knowledge.mpi import Namespaces
from toolkit.knowledge.pmix import Pair, is_plugin, release_of
from toolkit.knowledge.runtime import knows
from toolkit.model.facts import HostFacts, HostMpi, ImageFacts, ImageMpi
from toolkit.model.prediction import Mode, Plan, Request
from toolkit.versions import within

_RUNTIMES = ("APPTAINER", "SINGULARITY")
_SYSTEM = {"/", "/usr", "/usr/local"}
"""Prefixes that a container has of its own."""
_JOB = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_NODELIST", "SLURM_JOB_NODELIST")
"""By what a launcher knows of an allocation (openpmix/prrte:src/mca/ras/slurm, plm/slurm)."""
_FORKS = {"mpich", "mvapich2"}
"""Implementations whose launcher has to be told that it is alone in the container."""


_GLOO = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}
GLOO_FILE = "toolkit-gloo.py"
"""What wires up ranks in an image that has no trainers of toolkit; a job script makes it in its folder."""
AGENT = "toolkit-agent"
"""What mpirun inside a container calls in place of ssh; a job script makes it in its folder."""


def propose(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> Plan:
    """Return the plan for ``mode``, whether or not it will work; rules judge that."""
    return Plan(
        mode=mode,
        launcher=_launcher(host, image, request, mode),
        inside=mode == "mpirun-container",
        container=_container(host, image, request, mode),
        env={
            **_lifts(host, image, request, mode),
            **_copying(host, image, request, mode),
            **_env(host, image, mode),
            **request.env,
        },
        unset=_unset(host, image, request, mode),
        binds=(*_binds(host), *(mounted_folders(host_launcher(host)) if mode == "bind" else ())),
        wrapper=_wrapper(image) if mode == "gloo" else (),
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
    plugins = [t for t in types if is_plugin(t)]
    # Slurm's own come first, the one that it takes for plain pmix before those of a release.
    return max(plugins, key=lambda t: (t == "pmix", t.startswith("pmix"), release_of(t)), default=None)


def pmix_major(host: HostFacts) -> int:
    """Return the major release of the PMIx that Slurm serves; 0 where the names of its plugins do not tell.

    A plugin refuses a library of another one than that of its name (SchedMD/slurm:src/plugins/mpi/pmix/
    mpi_pmix.c, pmixp_lib_get_version). Plain ``pmix`` is the only one that there is.
    """
    types = (host.slurm.mpi_types if host.slurm else None) or ()
    if pmix_type(host) == "pmix":
        told = {release_of(t) for t in types if is_plugin(t)} - {0}
        return told.pop() if len(told) == 1 else 0
    return release_of(pmix_type(host) or "")


def launcher_pair(
    host: HostMpi | ImageMpi, client: str, request: Request, unset: tuple[str, ...] | None = None
) -> Pair | None:
    """Return what is known of a launcher, which is the host's as a rule, and this PMIx client.

    ``unset`` are the variables that are taken away between them; ``None`` means those that help.
    """
    rows = [row for row in knowledge.pmix().mpirun if _fits(row, host, client, request)]
    if unset is None:
        return next((row for row in rows if row.outcome == "ok"), None)
    return next((row for row in rows if set(row.unset) <= set(unset)), None)


def _fits(row: Pair, host: HostMpi | ImageMpi, client: str, request: Request) -> bool:
    if row.server and not host.pmix:
        return False
    return (
        within(host.version or "", row.launcher)
        and within(host.pmix or "", row.server)
        and within(client, row.client)
        and counts(row.nodes, request.nodes)
        and row.batch in {None, request.batch}
    )


def _launcher(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    match mode:
        case "srun-pmix":
            return ("srun", f"--mpi={pmix_type(host) or 'pmix'}")
        case "srun-pmi2":
            return ("srun", "--mpi=pmi2")
        case "srun-none" | "gloo":
            return ("srun", "--mpi=none")
        case "bind":
            provider = host_launcher(host)
            pmix = provider is None or "pmix" in (provider.interfaces or ("pmix",))
            return ("srun", f"--mpi={pmix_type(host) or 'pmix'}" if pmix else "--mpi=pmi2")
        case "mpirun-host":
            return ("mpirun",)
        case "mpirun-container":
            path = (image.mpi.launcher if image.mpi else None) or "mpirun"
            hydra = image.mpi is not None and image.mpi.implementation in _FORKS
            # Hydra asks srun to start even local ranks, and the image has none; over several
            # nodes forking would put every rank on the first.
            forking = ("-launcher", "fork") if hydra and request.nodes == 1 else ()
            return (path, *forking, *_agent(host, image, request))


def _agent(host: HostFacts, image: ImageFacts, request: Request) -> tuple[str, ...]:
    """Return the words by which a launcher inside has the job script start its daemons on other nodes."""
    mpi = image.mpi
    if mpi is None or request.nodes == 1 or not request.allocation or "slurm" in host.absent:
        return ()
    return next((row.words for row in knowledge.mpi().agent if row.of(mpi)), ())


def _container(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    return (*_driver(host, image), *_left_out(host), *_together(host, image, request, mode))


def _driver(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Bring the GPUs' driver in; without it the image computes on the processors, often without a word."""
    return ("--nv",) if computes_on_gpus(host, image) else ()


def computes_on_gpus(host: HostFacts, image: ImageFacts) -> bool:
    """Tell whether the host has GPUs of NVIDIA, and the image was built to compute on them."""
    return bool(host.gpu_driver and host.gpus) and built_for_gpus(image)


def built_for_gpus(image: ImageFacts) -> bool:
    """Tell whether an image holds what computes on GPUs of NVIDIA."""
    return bool(image.cuda or image.tensorflow_cuda or image.pytorch_cuda or image.nccl)


def _left_out(host: HostFacts) -> tuple[str, ...]:
    """Leave out what the site binds into every container and the machine does not have.

    The option takes a list with commas between; a path that holds one, or is masked, cannot be named.
    """
    targets = [bind_target(bind) for bind in host.runtime.unbound] if host.runtime else []
    named = [target for target in targets if "," not in target and not is_masked(target)]
    return ("--no-mount", ",".join(named)) if named and _has_option(host, "--no-mount") else ()


def bind_target(bind: str) -> str:
    """Return where ``SRC[:DST[:OPTS]]`` is seen in the container."""
    source, _, rest = bind.partition(":")
    return rest.split(":")[0] or source


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


def splits(host: HostFacts, request: Request, mode: Mode) -> bool | None:
    """Tell whether ranks of one node get user namespaces of their own; ``None`` if that is not known."""
    if request.ranks_per_node == 1 or mode in {"mpirun-container", "gloo"} or host.runtime is None:
        return False
    return None if host.runtime.setuid is None else not host.runtime.setuid


def _can_share(host: HostFacts) -> bool:
    return _has_option(host, "--sharens")


def _has_option(host: HostFacts, option: str) -> bool:
    return host.runtime is not None and knows(host.runtime.name, host.runtime.version, option)


def brings_orte(mpi: HostMpi | ImageMpi | None) -> bool:
    """Tell whether this is an Open MPI before 5: with ORTE for a launcher, and btl/vader for a node."""
    return mpi is not None and knowledge.mpi().release.orte.of(mpi)


def brings_prrte(mpi: HostMpi | ImageMpi | None) -> bool:
    """Tell whether this is an Open MPI from 5 on, with PRRTE for a launcher."""
    return mpi is not None and knowledge.mpi().release.prrte.of(mpi)


def copies_blindly(mpi: ImageMpi) -> bool:
    """Tell whether large messages from another user namespace never arrive in this MPI.

    btl/vader of Open MPI 4 sees that cross-memory attach is refused and waits for fragments that
    nobody sends; Open MPI 5 has a framework of its own for it (opal/mca/smsc).
    """
    return brings_orte(mpi)


def _binds(host: HostFacts) -> tuple[str, ...]:
    """Bind /tmp where the site does not: PMIx and Open MPI keep their session there."""
    if host.runtime is None:
        return ()
    unread = "runtime.settings" in host.unknown
    needed = unread or host.runtime.settings.get("mount tmp") == "no"
    return ("/tmp",) if needed else ()  # noqa: S108 - the path that MPI uses


def mounted_folders(provider: HostMpi | None) -> tuple[str, ...]:
    """Return the folders that bring the host's MPI into a container.

    None where they are the system's, or where one of them cannot be named.
    """
    if provider is None or not provider.prefix or provider.prefix in _SYSTEM:
        return ()
    beside = (f for f in provider.folders or () if not is_system(f) and not is_below(f, provider.prefix))
    folders = tuple(dict.fromkeys((provider.prefix, *beside)))
    return () if any(map(is_masked, folders)) else folders


def is_masked(path: str) -> bool:
    """Tell whether facts hide part of a path: in them a home is ``~``, a person's name ``-``."""
    return path.startswith("~") or "-" in path.split("/")


def _mounted_env(provider: HostMpi | None, image: ImageFacts) -> dict[str, str]:
    """Let the loader look into the mounted folders first, and Open MPI find its own files there.

    Behind them it looks where it would have: where the image says, and where ``--nv`` puts the driver.
    """
    folders = mounted_folders(provider)
    if provider is None or not folders:
        return {}
    libraries = dict.fromkeys((posixpath.dirname(provider.library or ""), *(provider.folders or ())))
    own = (image.environment.get("LD_LIBRARY_PATH", ""), "/.singularity.d/libs")
    first = [f for f in libraries if f and (not is_system(f) or is_below(f, provider.prefix or "-"))]
    env = {"LD_LIBRARY_PATH": ":".join((*first, *(f for f in own if f)))}
    if provider.implementation == "openmpi" and provider.relocatable and provider.prefix:
        env["OPAL_PREFIX"] = provider.prefix
    if provider.plugins:
        env["OMPI_MCA_mca_base_component_path"] = provider.plugins
    return env


def tmp_is_private(host: HostFacts) -> bool | None:
    """Tell whether Slurm gives each job a /tmp of its own; ``None`` where its settings are not known."""
    if host.slurm is None or "slurm.settings" in host.unknown:
        return None
    return "tmpfs" in host.slurm.settings.get("JobContainerType", "")


def _needs_step(host: HostFacts, image: ImageFacts) -> bool:
    """Tell whether ranks that the host's mpirun starts on its own node have to be told of a step.

    PRRTE starts them itself, and an Open MPI 4 looks for a step of Slurm before it asks PMIx.
    """
    return brings_prrte(host_launcher(host)) and brings_orte(image.mpi)


PLAIN_PMIX = {"PMIX_SECURITY_MODE": "native", "PMIX_GDS_MODULE": "hash"}
"""What every PMIx client has, in place of what a server of another release offers first."""


def insists(image: ImageFacts) -> bool:
    """Tell whether the PMIx client ends where one of the components that the server names is not there.

    It takes two things. From 3.2.0 on PMIX_SECURITY_MODE and PMIX_GDS_MODULE become MCA parameters
    (openpmix/openpmix:src/runtime/pmix_init.c); 2.2.5 to 3.1.5 choose from what they have. Up to 3.2.3 a
    component that is named and missing is an error (src/mca/base/pmix_mca_base_component_find.c); from
    3.2.4rc1 on, which is in Open MPI 4.1.5, abort_on_load_error is off (#2927). In 4.0 to 4.2.2 the server's
    words for a client with fewer components do no harm (tests/matrix: 4.0.0 and 4.2.2 under PMIx 4.2 and 5).
    """
    return within(image.pmix or "", knowledge.pmix().insists.client)


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
        return _mounted_env(host_launcher(host), image)
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
        if row.lift and (alone or "{interface}" not in row.lift):
            env[row.lifted_by] = row.lift.format(interface=(host.interfaces or ("",))[0])
    return env


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


def sends_by_ucx(mpi: ImageMpi) -> bool:
    """Tell whether an Open MPI has the component that sends by UCX, which it prefers on a fast network."""
    return "ucx" in mpi.components.get("pml", ())


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
    names = list(harmful(host))
    mpi = host_launcher(host)
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
