"""The names of programs that start ranks."""

LAUNCHERS = frozenset(
    {
        *("srun", "aprun", "jsrun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "horovodrun"),
        *("mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich"),
    }
)
"""Names of launchers that users may write before their program, although toolkit adds the launcher itself."""
