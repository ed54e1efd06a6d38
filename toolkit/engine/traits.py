"""Derive properties of a host or an image from its facts: MPI, PMIx, GPUs and namespaces.

toolkit uses these properties to plan a launch and to predict the outcome.
"""

import posixpath
from itertools import pairwise

from toolkit import knowledge
from toolkit.folders import is_below, is_system
from toolkit.knowledge import counts
from toolkit.knowledge.pmix import Pair, is_plugin, release_of
from toolkit.knowledge.runtime import knows
from toolkit.model.facts import HostFacts, ImageFacts, SlurmFacts
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import Mode, Plan, Request
from toolkit.runtime import Runtime, apptainer, enroot, runtime_of_name
from toolkit.versions import parse, within

OPAL_FOLDERS = frozenset(("OPAL_PREFIX", "OPAL_LIBDIR", "OPAL_PKGLIBDIR"))
"""Variables that change the folders in which Open MPI searches for its plugins
(open-mpi/ompi:opal/mca/installdirs/env).
"""
HYDRA = {"mpich", "intelmpi", "mvapich2"}
"""MPI implementations whose launcher is Hydra, which offers PMI-1 and PMI-2."""
MPICH_ABI = {*HYDRA, "cray", "parastation"}
"""MPI implementations whose library is binary compatible with MPICH 3.1 and later (mpich.org/abi)."""
PROCESSOR = ("host.cpu_vendor", "host.cpu_threads")
"""Facts that :func:`amd_unthreaded` needs."""
_BINDS = {"-B", "--bind", "-v", "--volume", "-b"}
"""Options of container runtimes that mount a folder of the host."""
_SYSTEM = {"/", "/usr", "/usr/local"}
"""Folders that every image has. A launch must not mount these folders of the host, because the mounts would
hide the image's folders.
"""

HOST_FOLDERS = ("/tmp", "/var/tmp")  # noqa: S108 - folder names, not temporary files
"""Folders of the host that a container runtime mounts by default. The mounts hide the image's folders with
the same paths.
"""


def host_launcher(host: HostFacts) -> HostMpi | None:
    """Return the MPI whose mpirun is first on the host's PATH; ``None`` if PATH has no mpirun."""
    return host.mpis[0] if host.mpis else None


def is_same_mpi(host: HostMpi | None, image: ImageMpi) -> bool:
    """Return whether the MPIs of host and image have the same implementation and release. Such MPIs have the
    same protocol between launcher and ranks.
    """
    if host is None or not host.version or host.implementation != image.implementation:
        return False
    return host.version == image.version


def mounted_mpi(host: HostFacts, image: ImageFacts) -> HostMpi | None:
    """Return the MPI of the host that the launch mode ``bind`` mounts.

    This is the first MPI outside the system folders whose library has the soname of the image's MPI library.
    For an image without MPI, the soname does not matter. If no MPI matches, the result is the MPI whose
    mpirun is first on PATH. If PATH has no mpirun, the result is the first MPI in ``host.folder_mpis``, which
    lists MPI libraries without an mpirun on PATH. The result is ``None`` if the host has no MPI.
    """
    there = tuple(mpi for mpi in (host_launcher(host), *(host.folder_mpis or ())) if mpi is not None)
    wanted = image.mpi.soname if image.mpi else None
    fitting = (m for m in there if mounted_folders(m) and (image.mpi is None or m.soname == wanted))
    return next(fitting, there[0] if there else None)


def amd_unthreaded(host: HostFacts) -> bool | None:
    """Return whether the processors are from AMD and have one thread per core; ``None`` if unknown.

    On such processors, Intel MPI 2019.4's mpiexec crashes. mpiexec divides by a number from CPUID
    0x8000001E: the threads per core minus one, which is zero on such processors.
    """
    if host.cpu_vendor is None or host.cpu_threads is None:
        return False if "cpu_vendor" in host.absent else None
    return host.cpu_vendor == "AuthenticAMD" and host.cpu_threads == 1


def pmix_type(host: HostFacts) -> str | None:
    """Return the value of ``srun --mpi=`` for PMIx, or ``None`` if Slurm has no PMIx plugin."""
    types = (host.slurm.mpi_types if host.slurm else None) or ()
    plugins = [t for t in types if is_plugin(t)]
    # ``pmix`` without a number selects Slurm's default PMIx plugin, so prefer it to a numbered plugin.
    return max(plugins, key=lambda t: (t == "pmix", t.startswith("pmix"), release_of(t)), default=None)


def pmix_majors(host: HostFacts) -> tuple[int, ...]:
    """Return the possible major releases of Slurm's PMIx; empty if no PMIx plugin has a release in its name.

    A plugin refuses a libpmix whose major release differs from the release in the plugin's name
    (SchedMD/slurm:src/plugins/mpi/pmix/mpi_pmix.c, pmixp_lib_get_version). Plain ``pmix`` is a link to a
    numbered plugin. Slurm's installation links the newest plugin (Makefile.am, install-exec-hook,
    slurm-20-11-9-1 to 25-11-0-1), so the newest release comes first in the result.
    """
    types = (host.slurm.mpi_types if host.slurm else None) or ()
    if pmix_type(host) == "pmix":
        return tuple(sorted({release_of(t) for t in types if is_plugin(t)} - {0}, reverse=True))
    told = release_of(pmix_type(host) or "")
    return (told,) if told else ()


def launcher_pair(
    host: HostMpi | ImageMpi, client: str, request: Request, unset: tuple[str, ...] | None = None
) -> Pair | None:
    """Return the first row of ``pmix.toml`` that applies to the launcher ``host`` (usually the host's mpirun)
    and the PMIx release ``client`` in the image; ``None`` if no row applies.

    ``unset`` names the launcher's variables that the launch removes before the container starts. A row with
    ``unset`` applies only if the launch removes all variables that the row lists. If the argument ``unset``
    is ``None``, only rows with the outcome ``ok`` apply.
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


def computes_on_gpus(host: HostFacts, image: ImageFacts) -> bool:
    """Return whether the host has NVIDIA GPUs and the image contains software for NVIDIA GPUs."""
    return bool(host.gpu_driver and host.gpus) and built_for_gpus(image)


def asks_for_gpus(host: HostFacts, request: Request, plan: Plan) -> bool:
    """Return whether a job requests GPUs, or the container options in ``plan`` mount NVIDIA or AMD GPUs."""
    kind = runtime_of(host)
    options = (kind.GPUS, kind.AMD_GPUS)
    return request.gpus or any(words and set(words) <= set(plan.container) for words in options)


def gpu_options(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Return the options with which the container runtime mounts the host's GPUs; empty if the host has no
    GPUs, or the image has no software for these GPUs.
    """
    if image.pytorch_rocm and host.amd_gpus:
        return runtime_of(host).AMD_GPUS
    return nvidia_options(host, image) if computes_on_gpus(host, image) else ()


def nvidia_options(host: HostFacts, image: ImageFacts) -> tuple[str, ...]:
    """Return the options with which the container runtime mounts NVIDIA GPUs. If the image sets
    NVIDIA_VISIBLE_DEVICES, enroot needs no option, so the result is empty.
    """
    kind = runtime_of(host)
    of_enroot = kind in (enroot.PYXIS, enroot.RUNTIME)
    return () if of_enroot and enroot.VISIBLE in image.environment else kind.GPUS


DRIVER = "/.singularity.d/libs"
"""The folder in the container where Apptainer mounts the libraries of the host's GPU driver. Usually, a
script of the image adds this folder to LD_LIBRARY_PATH.
"""


def driver_unsearched(host: HostFacts, image: ImageFacts) -> bool:
    """Return whether the runtime mounts the host's GPU driver into a folder that no script of the image adds
    to LD_LIBRARY_PATH.
    """
    named = host.runtime is None or host.runtime.name in apptainer.NAMES
    return image.driver_searched is False and named and bool(gpu_options(host, image))


def built_for_gpus(image: ImageFacts) -> bool:
    """Return whether an image contains software that computes on NVIDIA GPUs."""
    return bool(image.cuda or image.tensorflow_cuda or image.pytorch_cuda or image.nccl)


def runtime_of(host: HostFacts) -> Runtime:
    """Return the container runtime of a host, or Apptainer if the facts name no runtime."""
    return runtime_of_name(host.runtime.name if host.runtime else "")


def has_option(host: HostFacts, option: str) -> bool:
    """Return whether the host's release of the container runtime has an option, such as ``--sharens``."""
    found = host.runtime
    return found is not None and knows(found.name, found.version or "", option)  # "" is an unknown release


def program_of(launcher: tuple[str, ...]) -> str:
    """Return the name of the program that starts the ranks, such as ``srun``, ``jsrun`` or ``mpirun``."""
    return posixpath.basename(launcher[0])


def bind_target(bind: str) -> str:
    """Return the path in the container that a bind ``SRC[:DST[:OPTS]]`` names."""
    source, _, rest = bind.partition(":")
    return rest.split(":")[0] or source


def bind_targets(plan: Plan) -> tuple[str, ...]:
    """Return the paths in the container where a launch mounts folders: the targets of ``binds``, and the
    targets in options such as ``--bind``.
    """
    words = plan.container
    after = (given for word, given in pairwise(words) if word in _BINDS)
    joined = (w.partition("=")[2] for w in words if w.partition("=")[0] in _BINDS and "=" in w)
    said = (bind for given in (*after, *joined) for bind in given.split(","))
    return tuple(dict.fromkeys(bind_target(bind) for bind in (*plan.binds, *said)))


def made_by_user(host: HostFacts) -> bool | None:
    """Return whether the container runtime creates containers in a user namespace, without root rights;
    ``None`` if unknown.
    """
    by_root = runtime_of(host).BY_ROOT
    if by_root is None:
        by_root = host.runtime.setuid if host.runtime else None
    return None if by_root is None else not by_root


def splits_namespaces(host: HostFacts, request: Request, mode: Mode) -> bool | None:
    """Return whether the ranks of a node get separate user namespaces; ``None`` if unknown."""
    if request.ranks_per_node == 1 or mode in {"mpirun-container", "gloo"} or host.runtime is None:
        return False
    if not runtime_of(host).SPLITS:
        return False
    return None if host.runtime.setuid is None else not host.runtime.setuid


def brings_orte(mpi: HostMpi | ImageMpi | None) -> bool:
    """Return whether an MPI is an Open MPI before release 5: its launcher is ORTE, and the ranks of a node
    send messages through btl/vader.
    """
    return mpi is not None and knowledge.mpi().release.orte.of(mpi)


def brings_prrte(mpi: HostMpi | ImageMpi | None) -> bool:
    """Return whether an MPI is Open MPI 5 or later, which has the launcher PRRTE."""
    return mpi is not None and knowledge.mpi().release.prrte.of(mpi)


def copies_across_namespaces(mpi: ImageMpi) -> bool:
    """Return whether an MPI hangs when ranks in different user namespaces exchange large messages.

    btl/vader of Open MPI 4 copies large messages from one process to another (cross-memory attach). If the
    kernel refuses these copies, btl/vader detects the refusal, but waits for fragments that no rank sends.
    Open MPI 5 does not hang, because it has a separate framework for copies between processes
    (opal/mca/smsc).
    """
    return brings_orte(mpi)


def mounted_folders(provider: HostMpi | None) -> tuple[str, ...]:
    """Return the folders that a launch mounts for the host's MPI.

    The result is empty if the MPI is in a system folder, or if the facts mask a part of a path (see
    :func:`is_masked`).
    """
    if provider is None or not provider.prefix or provider.prefix in _SYSTEM:
        return ()
    beside = (f for f in provider.folders or () if not is_system(f) and not is_below(f, provider.prefix))
    folders = tuple(dict.fromkeys((provider.prefix, *beside)))
    return () if any(map(is_masked, folders)) else folders


def is_masked(path: str) -> bool:
    """Return whether the facts mask a part of a path: ``~`` replaces a home folder, and ``-`` replaces a
    user's name.
    """
    return path.startswith("~") or "-" in path.split("/")


def tmp_is_private(host: HostFacts) -> bool | None:
    """Return whether Slurm gives each job a private /tmp; ``None`` if Slurm's settings are unknown."""
    if host.slurm is None or "slurm.settings" in host.unknown:
        return None
    return private_tmp(host.slurm) is not None


def private_tmp(slurm: SlurmFacts) -> str | None:
    """Return the setting with which Slurm gives each job a private /tmp; ``None`` without such a setting.

    Before Slurm 25.11, the setting is JobContainerType. From Slurm 25.11 on, it is NamespaceType. A tmpfs
    plugin and the plugin namespace/linux each give jobs a private /tmp (slurm.schedmd.com/namespace.html).
    """
    for name in ("JobContainerType", "NamespaceType"):
        value = slurm.settings.get(name, "")
        if "tmpfs" in value or value == "namespace/linux":
            return f"{name} = {value}"
    return None


def needs_named_components(image: ImageFacts) -> bool:
    """Return whether the image's PMIx client fails if it lacks a component that the PMIx server names.

    Only PMIx clients 3.2.0 to 3.2.3 fail. PMIx clients 2.2.5 to 3.1.5 choose only from their own components.
    From PMIx 3.2.0 on, the client turns the variables PMIX_SECURITY_MODE and PMIX_GDS_MODULE into MCA
    parameters, which are PMIx's settings (openpmix/openpmix:src/runtime/pmix_init.c). In PMIx 3.2.0 to 3.2.3,
    a parameter that names a missing component is an error (src/mca/base/pmix_mca_base_component_find.c).
    From PMIx 3.2.4rc1 on (in Open MPI 4.1.5), PMIx's parameter abort_on_load_error is off, so a missing
    component is not an error (#2927). PMIx clients 4.0 to 4.2.2 accept missing components (tests/matrix:
    4.0.0 and 4.2.2 under PMIx 4.2 and 5).
    """
    return within(image.pmix or "", knowledge.pmix().insists.client)


def sends_by_ucx(mpi: ImageMpi) -> bool:
    """Return whether an Open MPI has the component pml/ucx, which it prefers on a fast network."""
    return "ucx" in mpi.components.get("pml", ())


def families(image: ImageFacts) -> tuple[tuple[ImageMpi, tuple[str, ...]], ...]:
    """Return each MPI of an image with the programs that load this MPI, if the MPIs start in different ways.

    Two MPIs start in the same way if they have the same implementation, major release and launch interfaces.
    The result is empty if all MPIs start in the same way, or if toolkit knows from the job's command which
    program runs.
    """
    if image.program is not None:
        return ()
    known = {mpi.library: mpi for mpi in (*((image.mpi,) if image.mpi else ()), *image.other_mpis)}
    found: dict[tuple[object, ...], tuple[ImageMpi, list[str]]] = {}
    for program, library in image.programs.items():
        if mpi := known.get(library):
            found.setdefault(_kind(mpi), (mpi, []))[1].append(program)
    return tuple((mpi, tuple(users)) for mpi, users in found.values()) if len(found) > 1 else ()


def _kind(mpi: ImageMpi) -> tuple[object, ...]:
    release = parse(mpi.version or "")
    return mpi.implementation, mpi.interfaces, release.major if release else mpi.version
