"""Read the tables in ``recipes/knowledge`` and the site profiles in ``slurm/sites``."""

from toolkit.knowledge.mpi import bundled_pmix, counts, mpi, mpi_of_file
from toolkit.knowledge.pmix import pmix, pmix_of_file
from toolkit.knowledge.signatures import signatures

__all__ = ["bundled_pmix", "counts", "mpi", "mpi_of_file", "pmix", "pmix_of_file", "signatures"]
