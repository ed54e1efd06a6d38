"""Schedulers: how a job is asked for. A new scheduler is a module in this package, a template, and its name
in the model.
"""

from typing import Protocol

from toolkit.model.job import JobSpec
from toolkit.model.site import Site
from toolkit.scheduler import pbs, slurm


class Scheduler(Protocol):
    """What a module of this package has."""

    NAME: str
    """The name in site profiles."""
    TEMPLATE: str
    """The job script below ``slurm/``."""
    SUBMIT_DIR: str
    """The variable in a job that names the folder where it was submitted, with a ``$``."""
    JOB: str
    """The shell variable that contains the job's number."""
    NODES: str
    """A command of the script that prints the nodes of the job, one a line; the script runs on the first."""
    ADDRESS: str
    """A command that prints the address of the node ``$first``, if its name does not resolve; or nothing."""

    def header(self, spec: JobSpec, site: Site | None = None) -> list[str]:
        """Return the lines that the scheduler reads from the head of the script, without their prefix.

        Raises:
            BadInput: for a field that the scheduler has no option for.
        """
        ...


SCHEDULERS: tuple[Scheduler, ...] = (slurm, pbs)


def scheduler_of(site: Site | None) -> Scheduler:
    """Return the scheduler of a site; without one Slurm."""
    return next((one for one in SCHEDULERS if site and site.scheduler == one.NAME), slurm)
