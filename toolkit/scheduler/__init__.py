"""The schedulers that toolkit supports. The module of each scheduler provides the scheduler's
options at the head of a job script, and shell variables and commands for use in the script.

To add a scheduler, add a module to this package and a template to ``slurm/``. Then add the module to
``SCHEDULERS``, and the scheduler's name to ``Site.scheduler`` in ``model/site.py``.
"""

from typing import Protocol

from toolkit.model.job import JobSpec
from toolkit.model.site import Site
from toolkit.scheduler import pbs, slurm


class Scheduler(Protocol):
    """The functions and attributes that the module of each scheduler provides."""

    NAME: str
    """The name of the scheduler in site profiles."""
    TEMPLATE: str
    """The file name of the job script's template in the folder ``slurm/``."""
    SUBMIT_DIR: str
    """The shell variable, with ``$``, that contains the folder from which the user submitted the job."""
    JOB: str
    """The shell expression for the job id."""
    NODES: str
    """A shell command that prints the names of the job's nodes, one per line; the job script runs on the
    first of these nodes."""
    ADDRESS: str
    """A shell command that prints the network address of the job's first node, whose name is in ``$first``.
    The job script needs the address on clusters that cannot resolve node names. ``ADDRESS`` is empty if the
    scheduler has no such command.
    """

    def header(self, spec: JobSpec, site: Site | None = None) -> list[str]:
        """Return the scheduler's options at the head of the job script, without a prefix such as ``#SBATCH``.

        Raises:
            BadInput: if the scheduler has no option for a field of ``spec`` that the user set.
        """
        ...


SCHEDULERS: tuple[Scheduler, ...] = (slurm, pbs)


def scheduler_of(site: Site | None) -> Scheduler:
    """Return the scheduler that a site profile names. Return Slurm if there is no profile."""
    return next((one for one in SCHEDULERS if site and site.scheduler == one.NAME), slurm)
