"""The launchers that start the ranks of a job, such as srun and mpirun.

To add a launcher, add a module to this package, and a name to ``LAUNCHERS`` and to ``model/site.py``.
"""

from typing import Protocol

from toolkit.launcher import mpirun, pals, srun
from toolkit.launcher.ranks import RankWords
from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan, Request
from toolkit.model.site import Site


class Launcher(Protocol):
    """The attributes that the module of each launcher has."""

    COMMAND: str
    """The name of the launcher's command."""
    RANK: RankWords
    """The shell words from which a rank reads its number."""

    def words(
        self, planned: tuple[str, ...], host: HostFacts, request: Request, site: Site | None
    ) -> tuple[str, ...]:
        """Return the launcher's options: the options in the launch plan (``planned``), and options that bind
        ranks to cores and GPUs.
        """
        ...

    def counts(self, spec: JobSpec) -> list[str]:
        """Return the options that set the numbers of ranks and nodes."""
        ...


LAUNCHERS: tuple[Launcher, ...] = (srun, pals, mpirun)


def site_launcher(site: Site | None, planned: str) -> Launcher:
    """Return the launcher of a job at a site; ``planned`` is the launcher's command in the launch plan, such
    as ``srun``.
    """
    if planned == pals.COMMAND or (site is not None and site.launch.launcher == pals.NAME):
        return pals
    return srun if planned == srun.COMMAND else mpirun


def launcher_of(plan: Plan) -> Launcher:
    """Return the launcher of a launch plan. If the launcher runs inside the container, it is the image's
    mpirun.
    """
    outside = () if plan.inside else LAUNCHERS
    return next((one for one in outside if plan.launcher[0] == one.COMMAND), mpirun)
