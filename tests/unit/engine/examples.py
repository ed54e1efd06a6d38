"""A host and an image on which every launch works. Each test changes some of their facts."""

from typing import Any

import msgspec

from toolkit.engine.case import Case
from toolkit.engine.planning.proposal import propose
from toolkit.model.facts import ContainerRuntime, HostFacts, ImageFacts, SlurmFacts
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import Mode, Plan, Request

SLURM = SlurmFacts(
    version="24.11.5",
    mpi_types=("none", "pmix", "cray_shasta", "pmi2", "pmix_v5"),
    mpi_default="pmix",
    nodes=2,
    partitions=("debug",),
)
OPEN_MPI_5 = HostMpi(
    implementation="openmpi",
    version="5.0.7",
    launcher="/usr/bin/mpirun",
    leaks=("OMPI_MCA_mca_base_component_path",),
    pmix="5.0.7a1",
)
APPTAINER = ContainerRuntime(name="apptainer", version="1.4.5", path="/usr/bin/apptainer", setuid=False)
HOST = HostFacts(
    place="cluster demo",
    architecture="x86_64",
    kernel="6.1.0",
    distribution="debian 13 (trixie)",
    glibc="2.41",
    slurm=SLURM,
    pmix="5.0.7",
    mpis=(OPEN_MPI_5,),
    runtime=APPTAINER,
    user_namespaces=True,
    evidence={"slurm.mpi_types": "srun --mpi=list: none pmix cray_shasta pmi2 pmix_v5"},
    absent={"gpu_driver": "no NVIDIA driver"},
)
OPEN_MPI_4 = ImageMpi(
    implementation="openmpi",
    version="4.1.4",
    library="/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4",
    interfaces=("pmix",),
    launcher="/usr/bin/mpirun",
    plugins=True,
)
MPICH = ImageMpi(
    implementation="mpich",
    version="4.0.2",
    library="/usr/lib/x86_64-linux-gnu/libmpich.so.12.2.2",
    interfaces=("pmi1",),
    launcher="/usr/bin/mpirun",
    plugins=False,
)
INTEL_MPI = msgspec.structs.replace(
    MPICH, implementation="intelmpi", version="2021.19.0", interfaces=("pmi1", "pmi2")
)
IMAGE = ImageFacts(
    path="/images/train.sif",
    format="sif",
    architecture="x86_64",
    distribution="debian 12 (bookworm)",
    glibc="2.36",
    mpi=OPEN_MPI_4,
    pmix="4.2.2",
    libfabric="/usr/lib/x86_64-linux-gnu/libfabric.so.1",
    ssh="/usr/bin/ssh",
    python="3.11.2",
    absent={"stack": "/opt/toolkit/stack.json: not in the image "},
    evidence={"mpi": "libmpi.so.40: openmpi 4.1.4", "pmix": "libpmix.so.2.6.2 is PMIx 4.2.2"},
)


def with_(facts: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(facts, **changes)


def without(facts: Any, name: str, why: str = "looked for, not there") -> Any:
    """Return a copy of the facts in which the fact ``name`` is known to be absent."""
    return with_(facts, **{name: None, "absent": {**facts.absent, name: why}})


def unread(facts: Any, name: str, why: str = "no answer in time") -> Any:
    """Return a copy of the facts in which the fact ``name`` could not be read."""
    return with_(facts, **{name: None, "unknown": {**facts.unknown, name: why}})


def image_with(mpi: ImageMpi, pmix: str | None = None) -> ImageFacts:
    image: ImageFacts = with_(IMAGE, mpi=mpi, pmix=pmix)
    return image if pmix else without(image, "pmix")


def case(
    mode: Mode,
    host: HostFacts = HOST,
    image: ImageFacts = IMAGE,
    *,
    nodes: int = 2,
    ranks_per_node: int = 1,
    given: dict[str, str] | None = None,
    **plan: Any,
) -> Case:
    """Return a launch with the engine's plan, changed by ``plan``. ``given`` has the user's environment
    variables.
    """
    request = Request(nodes=nodes, ranks_per_node=ranks_per_node, env=given or {})
    proposed: Plan = with_(propose(host, image, request, mode), **plan)
    return Case(host, image, request, proposed)
