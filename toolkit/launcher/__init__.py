"""The launchers that start the ranks of a job, such as srun and mpirun.

To add a launcher, add a module to this package, add the module to ``LAUNCHERS``, and add the launcher's name
to ``Launch.launcher`` in ``model/site.py``.
"""

from typing import Protocol

from toolkit.launcher import mpirun, pals, srun
from toolkit.launcher.ranks import RankWords
from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan, Request
from toolkit.model.site import Site


class Launcher(Protocol):
    """The names that each launcher's module defines."""

    COMMAND: str
    """The name of the launcher's command."""
    RANK: RankWords
    """The shell words from which a rank reads its rank number, its number on its node, and the node's number.
    """

    def words(
        self, plan_options: tuple[str, ...], host: HostFacts, request: Request, site: Site | None
    ) -> tuple[str, ...]:
        """Return the launcher's options: ``plan_options`` (the options in the launch plan), options that bind
        ranks to cores or GPUs, and options from the site profile.

        A launcher omits the options that it does not accept.
        """
        ...

    def counts(self, spec: JobSpec) -> list[str]:
        """Return the options for the number of ranks and, for some launchers, of nodes or ranks per node."""
        ...


LAUNCHERS: tuple[Launcher, ...] = (srun, pals, mpirun)


def site_launcher(site: Site | None, command: str) -> Launcher:
    """Return the launcher of a job at a site; ``command`` is the launcher's command in the launch plan, such
    as ``srun``.
    """
    if command == pals.COMMAND or (site is not None and site.launch.launcher == pals.NAME):
        return pals
    return srun if command == srun.COMMAND else mpirun


def launcher_of(plan: Plan) -> Launcher:
    """Return the launcher that a launch plan names; a launcher inside the container is always mpirun."""
    outside = () if plan.inside else LAUNCHERS
    return next((one for one in outside if plan.launcher[0] == one.COMMAND), mpirun)
