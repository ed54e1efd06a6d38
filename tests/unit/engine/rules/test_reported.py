"""Test the rules about faults that only public reports describe."""

from typing import get_type_hints

import msgspec

from tests.unit.engine import examples
from tests.unit.engine.whole import LAUNCHER, MPI, MPICH, SLURM, absent, case, host, image, runtime, unread
from tests.unit.tables import every_row
from toolkit.engine.judge import judge
from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import predict_plan
from toolkit.engine.registry import RULES
from toolkit.engine.rules.reported import reported_fault
from toolkit.knowledge.reported import reported_faults
from toolkit.model.facts import HostFacts, ImageFacts, SlurmFacts
from toolkit.model.prediction import Plan, Request
from toolkit.versions import within

OLD = msgspec.structs.replace(MPI, version="3.1.4", plugins=False, soname="libmpi.so.40")
INTEL = msgspec.structs.replace(MPICH, implementation="intelmpi", version="2021.9", device="ch4:ofi")
HYDRA = msgspec.structs.replace(LAUNCHER, implementation="mpich", version="4.2.0", pmix=None)
SLURM_20_11 = msgspec.structs.replace(SLURM, version="20.11.1")
ROUNDED = msgspec.structs.replace(SLURM, version="20.11")
"""A Slurm version without its last number, as in many reports; only some of these releases have the fault."""
ORTE_1 = msgspec.structs.replace(LAUNCHER, version="1.8.8", pmix=None)
PSM3 = msgspec.structs.replace(MPICH, version="4.1.2", device="ch4:ofi")
NO_CARD = host(infiniband=(), runtime=examples.with_(examples.APPTAINER, setuid=True))
VADER = image(mpi=msgspec.structs.replace(OLD, version="3.1.3"), glibc="2.23")
CLIENT_2_2 = image(mpi=OLD, pmix="2.2.2")
CLIENT_5 = image(mpi=msgspec.structs.replace(OLD, version="5.0.3"), pmix="5.0.2")


def psm3(**changes):
    there = {"libfabric_version": "1.18.1", "libfabric_providers": ("psm3", "tcp"), **changes}
    return image(mpi=PSM3, **there)


def crowd(mode="mpirun-host", ranks=28, **changes):
    return case(of=image(mpi=OLD, pmix="2.1.4"), mode=mode, ranks_per_node=ranks, **changes)


AMD = host(amd_gpus=("gfx90a",) * 8, fabrics=("slingshot",))
PBS = absent(host(schedulers=("pbs",)), "slurm")
ROCM_7 = {"on": AMD, "of": absent(image(pytorch="2.10.0+rocm7.0"), "mpi"), "mode": "torch", "nodes": 2}
GDR = {"NCCL_NET_GDR_LEVEL": "PHB"}


def rccl(**changes):
    there = {
        "pytorch": "2.7.1+rocm6.2.4",
        "libfabric_version": "1.22.0",
        "libfabric_providers": ("cxi", "tcp"),
        "nccl_ofi": "/opt/x.so",
        **changes,
    }
    return case(on=AMD, of=absent(image(**there), "mpi"), mode="torch", nodes=2)


def rooted(*container):
    launcher = msgspec.structs.replace(LAUNCHER, version="4.1.2", pmix="4.1.2")
    return case(on=host(mpis=(launcher,)), mode="mpirun-host", container=container)


def crowded_mounts(of=None, **changes):
    """Return a launch with many ranks per node, for which the kernel mounts images by shared loop devices."""
    shared = {"version": "3.7.2", "setuid": True, "settings": {"shared loop devices": "yes"}, **changes}
    return case(runtime(name="singularity", **shared), of or image(), mode="srun-pmix", ranks_per_node=56)


FIRES = {
    "reported-fault": [
        case(on=host(pmix="2.2.2"), of=CLIENT_2_2, nodes=2, ranks_per_node=2),
        case(on=host(pmix="5.0.2"), of=CLIENT_5),
        case(of=VADER, ranks_per_node=2),
        crowd(),
        case(of=absent(image(mpi=INTEL), "pmix"), mode="srun-pmi2", ranks_per_node=80),
        case(on=host(slurm=SLURM_20_11, mpis=(HYDRA,)), of=image(mpi=MPICH), mode="mpirun-host"),
        case(on=runtime(name="singularity", version="2.5.1"), of=image(mpi=MPICH), mode="srun-pmi2"),
        case(on=NO_CARD, of=psm3(), mode="mpirun-container", nodes=1, ranks_per_node=2),
        case(on=PBS, of=image(mpi=MPICH), mode="mpirun-container", nodes=1, ranks_per_node=2),
        case(**ROCM_7, env=GDR),
        rccl(),
        rooted("--fakeroot"),
        crowded_mounts(),
        case(on=host(mpis=(ORTE_1,)), of=image(mpi=OLD, pmix="2.1.4"), mode="mpirun-host"),
    ],
}
QUIET = {
    "reported-fault": [
        case(of=VADER),
        case(of=VADER, ranks_per_node=2, env={"OMPI_MCA_btl": "^vader"}),
        case(of=msgspec.structs.replace(VADER, glibc="2.27"), ranks_per_node=2),
        case(),
        case(of=image(mpi=MPICH), mode="mpirun-container", nodes=1, ranks_per_node=2),
        case(**ROCM_7),
        rccl(pytorch="2.7.1+rocm6.4"),
        rccl(libfabric_version="1.15.2"),
        rooted(),
        crowded_mounts(setuid=False),
        crowded_mounts(settings={"shared loop devices": "no"}),
        crowded_mounts(of=image(format="sandbox")),
        crowded_mounts(version="3.8.0"),
        case(on=host(slurm=ROUNDED, mpis=(HYDRA,)), of=image(mpi=MPICH), mode="mpirun-host"),
        case(nodes=1, ranks_per_node=1),
        case(on=host(pmix="2.2.2"), of=CLIENT_2_2, env={"PMIX_MCA_gds": "hash"}),
        case(on=host(pmix="2.2.3"), of=CLIENT_2_2),
        case(on=host(pmix="5.0.3"), of=CLIENT_5),
        crowd(ranks=2),
        crowd(mode="srun-pmi2"),
        case(of=absent(image(mpi=INTEL), "pmix"), mode="srun-pmi2", ranks_per_node=2),
        case(on=host(slurm=SLURM_20_11, environment={"SLURM_OVERLAP": "1"}), mode="mpirun-host"),
        case(on=absent(host(mpis=()), "slurm"), mode="mpirun-host"),
        case(on=runtime(name="singularity", version="2.5.2"), of=image(mpi=MPICH), mode="srun-pmi2"),
        case(on=absent(host(), "runtime"), of=image(mpi=MPICH), mode="srun-pmi2"),
        case(of=psm3(), mode="mpirun-container", nodes=1, ranks_per_node=2),
        case(on=NO_CARD, of=psm3(libfabric_providers=("tcp",)), mode="mpirun-container"),
        case(on=NO_CARD, of=psm3(environment={"PSM3_DEVICES": "self,shm"}), mode="mpirun-container"),
        case(on=NO_CARD, of=absent(image(mpi=PSM3), "libfabric_providers"), mode="mpirun-container"),
        case(of=absent(image(), "mpi"), mode="srun-pmi2"),
        case(of=image(mpi=msgspec.structs.replace(PSM3, device=None)), mode="srun-pmi2"),
        case(on=NO_CARD, of=msgspec.structs.replace(psm3(), libfabric_providers=None), mode="srun-pmi2"),
    ],
}
UNDECIDED = {
    "reported-fault": [
        case(of=unread(VADER, "glibc"), ranks_per_node=2),
        case(on=unread(host(), "pmix"), of=CLIENT_2_2, nodes=2, ranks_per_node=2),
        case(on=unread(host(), "infiniband"), of=psm3(), mode="mpirun-container"),
        case(on=NO_CARD, of=unread(psm3(), "libfabric_providers"), mode="srun-pmi2"),
        case(**{**ROCM_7, "on": unread(AMD, "amd_gpus")}, env=GDR),
        case(**{**ROCM_7, "on": unread(AMD, "fabrics")}, env=GDR),
        case(unread(crowded_mounts(setuid=None).host_facts, "runtime.setuid"), ranks_per_node=56),
    ],
}
OUTCOMES = {"reported-fault": "init-failure"}


@every_row(
    "on,of,mode,name",
    [
        (host(pmix="2.2.2"), CLIENT_2_2, "srun-pmix", "PMIX_MCA_gds"),
        (NO_CARD, psm3(), "mpirun-container", "FI_PROVIDER"),
    ],
)
def test_the_plan_sets_what_lifts_a_fault(on, of, mode, name):
    request = Request(nodes=1, ranks_per_node=2)
    made = plan(on, of, request, mode)
    assert name in made.env
    assert "reported-fault" not in predict_plan(on, of, request, made).findings
    bare = Plan(mode=mode, launcher=made.launcher, inside=made.inside)
    assert predict_plan(on, of, request, bare).outcome == "init-failure"


def test_what_happens_by_chance_is_said():
    said, _ = judge(crowd(), (reported_fault,))
    assert said.by_chance == ("hang", "ok")


def test_every_rule_of_the_reports_is_cited():
    said, findings = judge(crowd(), RULES)
    (found,) = (finding for finding in findings if finding.id == "reported-fault")
    assert "issue" in found.source
    assert said.outcome == "init-failure"


def test_a_row_bounds_facts_that_are_versions():
    structs = {"host": HostFacts, "image": ImageFacts, "host.slurm": SlurmFacts}
    for row in reported_faults():
        for name, bounds in row.facts.items():
            side, _, field = name.rpartition(".")
            types = get_type_hints(structs[side])
            assert types[field] == str | None, name
            assert not within("0", bounds) or not within("999999", bounds), name
