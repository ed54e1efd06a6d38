import os

import pytest

from toolkit.trainers.launcher import cores, started_rank, started_size


@pytest.mark.parametrize(
    ("environment", "rank", "size"),
    [
        ({}, 0, 1),
        ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4"}, 3, 4),
        ({"SLURM_PROCID": "1", "PMIX_RANK": "1", "SLURM_STEP_NUM_TASKS": "2"}, 1, 2),
        # A rank of mpirun sees the variables of the step that its daemon runs in.
        (
            {
                "OMPI_COMM_WORLD_RANK": "5",
                "OMPI_COMM_WORLD_SIZE": "8",
                "SLURM_PROCID": "0",
                "SLURM_STEP_NUM_TASKS": "2",
            },
            5,
            8,
        ),
        ({"SLURM_PROCID": "", "SLURM_STEP_NUM_TASKS": "two"}, 0, 1),
    ],
)
def test_the_launchers_own_variables_tell_rank_and_size(environment, rank, size):
    assert (started_rank(environment), started_size(environment)) == (rank, size)


def test_cores_are_what_slurm_gave_but_never_more_than_may_be_used():
    allowed = len(os.sched_getaffinity(0))
    assert cores({"SLURM_CPUS_PER_TASK": "1"}, local_size=1) == 1
    assert cores({"SLURM_CPUS_PER_TASK": "4096"}, local_size=1) == allowed


def test_without_slurm_ranks_of_a_node_share_its_cores():
    allowed = len(os.sched_getaffinity(0))
    assert cores({}, local_size=1) == allowed
    assert cores({}, local_size=10 * allowed) == 1
    assert cores({"SLURM_CPUS_PER_TASK": "0"}, local_size=1) == allowed
