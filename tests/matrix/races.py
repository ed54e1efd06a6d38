"""Launches whose end is a matter of time.

One rank gives up, and whether its launcher ends the others, or which of them ends first, differs from try to
try: what is an init-failure here is a hang or a crash in the same launch on another cluster. Never right, and
never called so.
"""

from tests.matrix.record import Cell

RACES = {
    # Both ranks end, or one and srun waits for the other: 6 hangs of 10 tries.
    "bare venv-mpich-5.0.1 srun-pmi2 2x1 naive",
    "pmix venv-mpich-5.0.1 srun-pmi2 2x1 naive",
    "older venv-mpich-5.0.1 srun-pmi2 2x1 naive",
    "hydra venv-mpich-5.0.1 srun-pmi2 2x1 naive",
    "hydra venv-mpich-5.0.1 mpirun-host 2x2 naive",
    "hydra source-openmpi-4.1.4-pmi2 mpirun-host 1x2 naive",
    "hydra source-openmpi-4.1.4-pmi2 mpirun-host 2x2 planned",
    "pmix venv-impi-2021.13.1 mpirun-host 2x2 planned",
    "pmix venv-impi-2021.11.0 mpirun-host 2x2 planned",
    # The daemon of a rank finds no /tmp, or the munge that it is told to use: whichever rank is first.
    "pmix ubuntu-openmpi-2.1.1-ssh srun-pmix 2x1 trap --no-mount tmp",
    # Intel's Hydra waits for a rank that ended on another node, or does not: 5 hangs of 9 tries.
    "pmix with venv-impi-2021.13.1 source-openmpi-4.1.4-whole mpirun-host 2x1 naive",
    "pmix with venv-impi-2021.13.1 source-openmpi-4.1.4-pmi2 mpirun-host 2x1 naive direct",
}


def is_race(cell: Cell) -> bool:
    return cell.name in RACES
