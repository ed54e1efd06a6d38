from tests.unit.tables import every_row
from toolkit.trainers.ranks.launcher import cores, started_rank, started_size


@every_row(
    ("environment", "rank", "size"),
    [
        ({}, 0, 1),
        ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4"}, 3, 4),
        ({"SLURM_PROCID": "1", "PMIX_RANK": "1", "SLURM_STEP_NUM_TASKS": "2"}, 1, 2),
        # A rank of mpirun also has the Slurm variables of the step in which mpirun's daemon runs.
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
        # MPICH's mpirun, and horovodrun with Gloo, both within a step of one task.
        ({"PMI_RANK": "3", "PMI_SIZE": "4", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, 3, 4),
        ({"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, 1, 2),
        ({"SLURM_PROCID": "", "SLURM_STEP_NUM_TASKS": "two"}, 0, 1),
    ],
)
def test_the_launchers_own_variables_tell_rank_and_size(environment, rank, size):
    assert (started_rank(environment), started_size(environment)) == (rank, size)


@every_row(
    ("environment", "local_size", "allowed", "node", "cores_each"),
    [
        # The number of cores comes from Slurm, but is at most the number that the process may use.
        ({"SLURM_CPUS_PER_TASK": "1"}, 1, 8, 8, 1),
        ({"SLURM_CPUS_PER_TASK": "4096"}, 1, 8, 8, 8),
        ({"SLURM_CPUS_PER_TASK": "0"}, 1, 8, 8, 8),
        # Ranks without binding share the node's cores.
        ({}, 1, 8, 8, 8),
        ({}, 4, 8, 8, 2),
        ({}, 80, 8, 8, 1),
        # Each rank is bound to separate cores.
        ({}, 2, 4, 8, 4),
        ({}, 2, 2, 64, 2),
        ({}, 8, 1, 8, 1),
        # Four ranks on two sockets, two ranks bound to each socket.
        ({}, 4, 32, 64, 16),
        # A job has half of the node's cores, and its ranks have no separate binding.
        ({"SLURM_CPUS_ON_NODE": "4"}, 2, 4, 8, 2),
        ({"SLURM_CPUS_ON_NODE": "4"}, 2, 2, 8, 2),
    ],
)
def test_cores_are_divided_among_the_ranks_that_share_them(
    environment, local_size, allowed, node, cores_each
):
    assert cores(environment, local_size, allowed_cores=allowed, node_cores=node) == cores_each
