"""Schedulers: the header and the variables of a job script.

A new scheduler is a module in this package, a template, and a name in the model.
"""

from typing import Protocol

from toolkit.model.job import JobSpec
from toolkit.model.site import Site
from toolkit.scheduler import pbs, slurm


class Scheduler(Protocol):
    """The attributes that each module of this package has."""

    NAME: str
    """The name of the scheduler in site profiles."""
    TEMPLATE: str
    """The template of the job script below ``slurm/``."""
    SUBMIT_DIR: str
    """The job's variable, with ``$``, that contains the folder of the submission."""
    JOB: str
    """The shell expression for the job's number."""
    NODES: str
    """A shell command that prints the job's nodes, one per line; the script runs on the first node."""
    ADDRESS: str
    """A shell command that prints the address of node ``$first``, if its name does not resolve; may be empty.
    """

    def header(self, spec: JobSpec, site: Site | None = None) -> list[str]:
        """Return the scheduler's lines for the head of the script, without their prefix.

        Raises:
            BadInput: if the scheduler has no option for a field.
        """
        ...


SCHEDULERS: tuple[Scheduler, ...] = (slurm, pbs)


def scheduler_of(site: Site | None) -> Scheduler:
    """Return the scheduler of a site; Slurm without a site."""
    return next((one for one in SCHEDULERS if site and site.scheduler == one.NAME), slurm)
