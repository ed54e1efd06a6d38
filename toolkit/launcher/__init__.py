"""Launchers: what starts the ranks of a job. A new launcher is a module in this package, and its name in the
model.
"""

from typing import Protocol

from toolkit.launcher import mpirun, pals, srun
from toolkit.launcher.ranks import RankWords
from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan, Request
from toolkit.model.site import Site


class Launcher(Protocol):
    """The attributes of each module of this package."""

    COMMAND: str
    """The program that is called."""
    RANK: RankWords
    """How a rank finds its own number."""

    def words(
        self, planned: tuple[str, ...], host: HostFacts, request: Request, site: Site | None
    ) -> tuple[str, ...]:
        """Return the options of a launch: the planned options, and the options that bind ranks to cores and
        GPUs.
        """
        ...

    def counts(self, spec: JobSpec) -> list[str]:
        """Return the options that say how many ranks there are, and on how many nodes."""
        ...


LAUNCHERS: tuple[Launcher, ...] = (srun, pals, mpirun)


def site_launcher(site: Site | None, planned: str) -> Launcher:
    """Return the words that start ranks at a site instead of the planned command."""
    if planned == pals.COMMAND or (site is not None and site.launch.launcher == pals.NAME):
        return pals
    return srun if planned == srun.COMMAND else mpirun


def launcher_of(plan: Plan) -> Launcher:
    """Return the launcher of a plan; one inside the container is the image's own."""
    outside = () if plan.inside else LAUNCHERS
    return next((one for one in outside if plan.launcher[0] == one.COMMAND), mpirun)
