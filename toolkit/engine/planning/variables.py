"""Choose the variables that a plan sets in the container, and the variables that the plan removes."""

import posixpath

from toolkit import knowledge
from toolkit.engine.host_variables import affects_mpi, harmful_variables, slurm_variables
from toolkit.engine.reports import matching_reports
from toolkit.engine.traits import (
    DRIVER,
    OPAL_FOLDERS,
    brings_orte,
    brings_prrte,
    copies_across_namespaces,
    driver_unsearched,
    has_option,
    host_launcher,
    launcher_pair,
    mounted_folders,
    mounted_mpi,
    needs_named_components,
    sends_by_ucx,
    splits_namespaces,
    tmp_is_private,
)
from toolkit.folders import is_below, is_system
from toolkit.knowledge import counts
from toolkit.knowledge.fabric import fabrics_of
from toolkit.knowledge.mpi import Namespaces
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import HostMpi
from toolkit.model.prediction import Mode, Request
from toolkit.versions import within

_JOB = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_NODELIST", "SLURM_JOB_NODELIST")
"""Variables from which a launcher detects a Slurm allocation (openpmix/prrte:src/mca/ras/slurm, plm/slurm).
"""

_GLOO = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}


def provider_folder(image: ImageFacts, mode: Mode) -> dict[str, str]:
    """Return FI_PROVIDER_PATH for Intel's libfabric, if libfabric needs this variable to find the folder of
    its providers (network plugins).
    """
    own = image.mpi is not None and image.mpi.implementation == "intelmpi" and mode not in {"bind", "gloo"}
    folder = image.providers_unsearched if own and "FI_PROVIDER_PATH" not in image.environment else None
    return {"FI_PROVIDER_PATH": folder} if folder else {}


def driver_path(host: HostFacts, image: ImageFacts) -> dict[str, str]:
    """Return an LD_LIBRARY_PATH with the folder of the GPU driver, if no script of the image adds this
    folder.

    Measured with Apptainer 1.4.5: with ``--nv``, a sandbox without ``/.singularity.d`` has no
    LD_LIBRARY_PATH.
    """
    own = image.environment.get("LD_LIBRARY_PATH", "")
    named = ":".join(filter(None, (own, DRIVER)))
    return {"LD_LIBRARY_PATH": named} if driver_unsearched(host, image) else {}


def can_share(host: HostFacts) -> bool:
    return has_option(host, "--sharens")


def _mounted_env(provider: HostMpi | None, image: ImageFacts) -> dict[str, str]:
    """Return variables that make the loader search the mounted folders first, and that name the folders of
    Open MPI's files.

    After the mounted folders, the loader still searches the image's folders and the GPU driver's folder.
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


def mpi_folders(image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """If the image's Open MPI was moved after its build, return the variable that names Open MPI's present
    folder, such as ``{"OPAL_PREFIX": "/opt/hpcx/ompi"}``; otherwise, return an empty table.
    """
    if image.mpi is None or mode in {"bind", "gloo"} or set(request.env) & OPAL_FOLDERS:
        return {}
    return image.mpi.led_by


def _needs_step(host: HostFacts, image: ImageFacts) -> bool:
    """Return whether ranks on the node of the host's mpirun need the variables of a Slurm step.

    The host's mpirun (PRRTE) itself starts the ranks on its own node, without srun, so these ranks are
    outside any Slurm step. An Open MPI 4 in the image looks for a Slurm step before it connects to PMIx.
    Without the variables of a step, each rank of Open MPI 4 starts as a world of size 1.
    """
    return brings_prrte(host_launcher(host)) and brings_orte(image.mpi)


PLAIN_PMIX = {"PMIX_SECURITY_MODE": "native", "PMIX_GDS_MODULE": "hash"}
"""The variables that select ``native`` and ``hash``, two modules that every PMIx client has. toolkit sets
these variables if a PMIx server of another release may prefer modules that the client lacks.
"""


def _security(host: HostFacts, image: ImageFacts) -> dict[str, str]:
    """Return the variable that selects the PMIx client's security module ``native``, if the PMIx server may
    prefer munge (Slurm's authentication service).

    The client selects ``native`` even without this variable, but then each rank prints a long message that
    the client's munge module is missing.
    """
    ways = image.pmix_components.get("psec", ())
    asks = host.munge is not False and "native" in ways and "munge" not in ways
    return {"PMIX_SECURITY_MODE": "native"} if asks else {}


def mode_variables(host: HostFacts, image: ImageFacts, mode: Mode) -> dict[str, str]:
    if mode == "srun-pmix":
        # PMIx's component ``hash``, which stores data without files, works without a shared /tmp. Every PMIx
        # server offers ``hash`` in addition to the component that it prefers.
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
        # mpirun puts its own folder, such as /usr/bin, first in the PATH of the ranks. With this PATH, ranks
        # would start the distribution's Python. So give the ranks the image's PATH.
        return {"PATH": image.environment["PATH"]}
    return {}


def workarounds(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Return variables that avoid a defect of the image's MPI release. The result is empty if the host may
    have a fast network, because these variables would disable the fast network.
    """
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


def reported_workarounds(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Return variables that avoid publicly reported faults, except variables that the image itself sets. For
    a job with one rank, the result is empty.
    """
    rows = (row for row, unknown in matching_reports(host, image, request, mode) if row.lift and not unknown)
    found = {row.lift[0]: row.lift[1] for row in rows}
    return {} if request.has_one_rank else {n: v for n, v in found.items() if n not in image.environment}


def copy_settings(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> dict[str, str]:
    """Return variables that disable direct memory copies between ranks, if the ranks of a node cannot share a
    user namespace; otherwise, return an empty table.
    """
    mpi = image.mpi
    if mpi is None or not splits_namespaces(host, request, mode) or can_share(host):
        return {}
    env = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"} if copies_across_namespaces(mpi) else {}
    row = old_ucx(host, image)
    name, _, value = row.lifted_by.partition("=") if row else ("", "", "")
    return env if not row or name in image.environment else {**env, name: value}


def old_ucx(host: HostFacts, image: ImageFacts) -> Namespaces | None:
    """If the image's MPI uses a fast network through a UCX release that fails between user namespaces, return
    the matching row of ``mpi.toml``; otherwise ``None``.
    """
    mpi = image.mpi
    there = fabrics_of(host.infiniband or (), host.fabrics or (), host.link_layers)
    networks = {row.ucx for row in there if row.ucx}
    if mpi is None or not networks & set(image.ucx_transports or ()) or not sends_by_ucx(mpi):
        return None
    rows = (row for row in knowledge.mpi().namespaces if row.by == "ucx" and row.of(mpi))
    return next((row for row in rows if within(image.ucx or "", row.ucx)), None)


def _misses_launcher(image: ImageFacts, request: Request) -> bool:
    """Return whether the image's launcher detects an allocation but has neither srun nor ssh.

    In an allocation, PRRTE without srun and ssh crashes with a segmentation fault. Without the variables of
    an allocation, mpirun starts the local ranks itself (tests/matrix: contained-sbatch-1node and
    contained-1node of Open MPI 5.0.8).
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


def variables_to_unset(host: HostFacts, image: ImageFacts, request: Request, mode: Mode) -> tuple[str, ...]:
    names = list(harmful_variables(host, mode))
    mpi = host_launcher(host)
    if mode in {"srun-pmix", "bind"}:
        # A PMIx client needs the same settings as its server, so keep the PMIX_ variables.
        names += [n for n in slurm_variables(host) if affects_mpi(n) and not n.startswith("PMIX_")]
    if mode == "mpirun-container" and _misses_launcher(image, request):
        names += _JOB
    if mode == "mpirun-host" and mpi is not None and mpi.implementation == "openmpi":
        # If the image's Open MPI has plugins, remove the path variables that the host's mpirun sets. With
        # these variables, the image's Open MPI would look for its plugins in the host's folders. If the
        # host's mpirun was moved after its build, mpirun sets several path variables. Remove all of them or
        # none, because ranks fail with only some of them (tests/matrix: -clean).
        if image.mpi is not None and image.mpi.plugins:
            names += mpi.leaks or ()
        elif "OPAL_PREFIX" in names and "PMIX_INSTALL_PREFIX" in (mpi.leaks or ()):
            # If the host sets OPAL_PREFIX, its launcher also sets PMIX_INSTALL_PREFIX. Remove both variables.
            names.append("PMIX_INSTALL_PREFIX")
        pair = launcher_pair(mpi, image.pmix, request) if image.pmix else None
        names += pair.unset if pair else ()
    return tuple(dict.fromkeys(names))
