"""Test the rules about an MPI that uses Slurm's PMI library."""

import msgspec

from tests.unit.engine.whole import MPICH, absent, case, image
from tests.unit.tables import every_row
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES

OWN = ("libc.so.6", "libm.so.6")
SLURMS = (*OWN, "libpmi.so.0", "libslurm_pmi.so")


def on(*needs, **changes):
    made = msgspec.structs.replace(MPICH, version="4.0.2", device="ch3:nemesis", needs=needs, **changes)
    return absent(image(mpi=made), "pmix")


FIRES = {
    "slurm-pmi-unreachable": [
        case(of=on(*SLURMS), mode="srun-pmi2"),
        case(of=on(*SLURMS), mode="mpirun-host"),
        case(of=on(*SLURMS), mode="srun-pmi2", binds=("/etc/slurm",)),
    ],
}
QUIET = {
    "slurm-pmi-unreachable": [
        case(of=on(*OWN), mode="srun-pmi2"),
        case(of=on(*OWN, "libpmi2.so.0"), mode="srun-pmi2"),
        case(of=on(*OWN, "libpmi.so.0"), mode="srun-pmi2"),
        case(of=on(*SLURMS), mode="srun-pmi2", container=("--cleanenv",)),
        case(of=on(*SLURMS, implementation="openmpi"), mode="srun-pmi2"),
        case(of=absent(image(), "mpi"), mode="srun-pmi2"),
    ],
}
UNDECIDED: dict[str, list[object]] = {}
OUTCOMES = {"slurm-pmi-unreachable": "init-failure"}


@every_row("mode", ["srun-pmix", "srun-pmi2", "srun-none", "mpirun-host"])
@every_row("nodes", [1, 2])
def test_a_rank_ends_in_mpi_init_wherever_it_sees_a_job_and_is_alone_where_it_sees_none(mode, nodes):
    seen = case(of=on(*SLURMS), mode=mode, nodes=nodes, ranks_per_node=2)
    assert judge(seen, RULES)[0].outcome == "init-failure"
    unseen = case(of=on(*SLURMS), mode=mode, nodes=nodes, ranks_per_node=2, container=("--cleanenv",))
    assert judge(unseen, RULES)[0].outcome == "singletons"
