"""An example job, example plans, and functions that render job scripts."""

from typing import Any

import msgspec

from toolkit.engine.planning.site_additions import add_site_settings
from toolkit.launch.jobscript import localscript, script
from toolkit.launch.request.specify import request_of
from toolkit.model.facts import ContainerRuntime, HostFacts, ImageFacts
from toolkit.model.job import ImageCheck, JobRecord, JobSpec
from toolkit.model.prediction import Plan
from toolkit.model.site import Site
from toolkit.runtime import podman

NO_HOST, NO_IMAGE = HostFacts(place="here"), ImageFacts(path="x", format="sif")
"""A host and an image without known facts."""

SPEC = JobSpec(
    name="mnist",
    image="/work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif",
    command=("python", "-m", "toolkit.trainers.mnist", "--data", "/work/ada/toolkit/data/mnist"),
    directory="/work/ada/toolkit/runs/mnist-1",
    nodes=2,
    binds=("/work/ada/toolkit/runs/mnist-1",),
)

SRUN = Plan(mode="srun-pmix", launcher=("srun", "--mpi=pmix"), unset=("OMPI_MCA_btl",), env={"A": "1 2"})
MPIRUN = Plan(mode="mpirun-host", launcher=("mpirun", "--map-by", "ppr:1:node"), unset=("OPAL_PREFIX",))
GLOO = Plan(
    mode="gloo",
    launcher=("srun", "--mpi=none"),
    env={"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"},
    wrapper=("python", "-m", "toolkit.trainers.gloo", "--"),
)
TORCH = Plan(
    mode="torch", launcher=("srun", "--mpi=none"), wrapper=("sh", "toolkit-ranks.sh"), program="torch"
)
CARRIED = msgspec.structs.replace(GLOO, wrapper=("python3", "toolkit-gloo.py", "--"))
PODMAN = Plan(
    mode="srun-pmix",
    launcher=("srun", "--mpi=pmix"),
    container=podman.standard(NO_IMAGE, ContainerRuntime(name="podman", version="5.4.2", path="podman")),
    binds=("/tmp",),
)
BIND = Plan(
    mode="bind",
    launcher=("srun", "--mpi=pmix"),
    env={"LD_LIBRARY_PATH": "/opt/ompi/lib:/opt/ucx/lib", "OPAL_PREFIX": "/opt/ompi"},
    binds=("/opt/ompi", "/opt/ucx/lib"),
)
CONTAINED = Plan(mode="mpirun-container", launcher=("mpirun",), inside=True)
ACROSS = msgspec.structs.replace(
    CONTAINED,
    launcher=("/usr/bin/mpirun", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", "toolkit-agent"),
    unset=("OMPI_MCA_btl",),
)

RECORD = JobRecord(
    key="mnist-20261121-000000-abc123",
    id="7",
    place="this machine",
    spec=SPEC,
    mode="srun-pmix",
    plan=SRUN,
    predicted="ok",
    image_digest="sha256:00",
    image_check=ImageCheck(signature="none"),
    submitted="2026-11-21T00:00:00+00:00",
)


def spec(**changes: object) -> JobSpec:
    return msgspec.structs.replace(SPEC, **changes)


def launch(
    what: JobSpec,
    plan: Plan,
    site: Site | None = None,
    host: HostFacts = NO_HOST,
    image: ImageFacts = NO_IMAGE,
) -> Plan:
    """Return a copy of the plan with the settings of the site, the facts and the job."""
    return add_site_settings(plan, host, image, request_of(what, what.env, plan.mode, site), site)


def job_script(
    what: JobSpec,
    plan: Plan,
    because: str,
    runtime: str = "singularity",
    site: Site | None = None,
    **more: Any,
) -> str:
    return script.job_script(what, launch(what, plan, site), because, runtime, site, **more)


def local_script(
    what: JobSpec, plan: Plan, because: str, image: ImageFacts = NO_IMAGE, runtime: str = localscript.RUNTIME
) -> str:
    known = None if image is NO_IMAGE else image
    return localscript.local_script(what, launch(what, plan, image=image), because, runtime, known)
