"""Find a host MPI that an environment module mounts into every container through variables.

A centre's environment module may set ``SINGULARITY_BIND`` and ``SINGULARITYENV_LD_LIBRARY_PATH``. LUMI has a
module that sets both variables (Lumi-supercomputer/lumi-userguide:
docs/runjobs/scheduled-jobs/container-jobs.md).
"""

import posixpath
from typing import Literal

import msgspec

from toolkit.engine.host_mpi import is_replaced
from toolkit.engine.host_variables import runtime_prefixes
from toolkit.engine.search_path import launch_search_path
from toolkit.engine.traits import bind_target, mounted_mpi
from toolkit.folders import is_below, is_system
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Plan

UNREAD = (
    "a variable of the container runtime, such as APPTAINER_BIND, mounts an MPI of the host that "
    "`toolkit probe` did not inspect (host.folder_mpis): load the MPI module, then run `toolkit probe` again"
)
_BINDS = ("BIND", "BINDPATH")


def add_module_mounts(host: HostFacts, image: ImageFacts, plan: Plan) -> Plan | Literal["unread"] | None:
    """Return the plan with all binds that mount the host's MPI: the plan's own binds, and binds from
    variables of the host.

    Return ``None`` if programs load the image's own MPI. Return the text ``unread`` if programs may load an
    MPI of the host that is not in the facts.
    """
    if plan.mode == "bind":
        return plan
    path, binds = launch_search_path(host, plan), _bound_by_variables(host, plan)
    if not path or not binds:
        return None
    env = {**plan.env, "LD_LIBRARY_PATH": path}
    entered = msgspec.structs.replace(plan, binds=(*plan.binds, *binds), env=env)
    if is_replaced(mounted_mpi(host, image), image, entered):
        return entered
    known = {posixpath.dirname(mpi.library or "") for mpi in (*(host.mpis or ()), *(host.folder_mpis or ()))}
    targets = [bind_target(bind) for bind in binds]
    led = [f for f in path.split(":") if f and not is_system(f) and any(is_below(f, t) for t in targets)]
    return "unread" if any("mpi" in folder and folder not in known for folder in led) else None


def _bound_by_variables(host: HostFacts, plan: Plan) -> tuple[str, ...]:
    names = (f"{runtime}_{name}" for runtime in runtime_prefixes(host) for name in _BINDS)
    given = (host.environment.get(name, "") for name in names if name not in plan.unset)
    return tuple(bind.strip() for value in given for bind in value.split(",") if bind.strip())
