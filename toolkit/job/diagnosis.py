"""What ``toolkit doctor`` judges: with ``--site`` or ``--job`` the job that ``launch`` would start."""

import posixpath
from dataclasses import dataclass

from toolkit.job.layering import announce, asked
from toolkit.launch.loaded import with_runtime
from toolkit.launch.specify import Places, name_of, request_of, specify
from toolkit.launch.unseen import folder_of
from toolkit.model.facts import HostFacts
from toolkit.model.prediction import Mode, Request
from toolkit.model.site import Site

NODES = 2
"""What a launch over a network takes at least."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a launch asks of the engine, and the site that it is for.

    ``words`` are the options that lead to it again.
    """

    request: Request
    site: Site | None = None
    modules: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def on(self, host: HostFacts) -> HostFacts:
        """Return the facts of a host with the runtime that modules of site and job load."""
        return with_runtime(host, self.site, self.modules)


def wanted(
    image: str,
    site: str | None,
    job_file: str | None,
    partition: str | None,
    nodes: int | None,
    ranks_per_node: int | None,
    mode: Mode | None,
) -> Wanted:
    """Return the launch to judge; options win over the job file.

    The cluster is not asked where its folders are; the folder of the run has its default name.

    Raises:
        BadInput: one line with place, field and choices.
    """
    if not site and not job_file:
        return Wanted(Request(nodes=nodes or NODES, ranks_per_node=ranks_per_node or 1, mode=mode))
    said = {"image": image, "site": site, "partition": partition, "ranks_per_node": ranks_per_node}
    said |= {"mode": mode, "nodes": nodes or (None if job_file else NODES)}
    given = {name: value for name, value in said.items() if value is not None}
    made = asked(given, (), job_file)
    if made.job.trainer is None and not made.job.command:
        made = asked(given, ("COMMAND",), job_file)
    announce(made)
    folder = posixpath.join(folder_of(made.job, made.site), "runs", name_of(made.job))
    spec = specify(made.job, Places(folder, image))
    words = (*(("--site", site) if site else ()), *(("--job", job_file) if job_file else ()))
    request = request_of(spec, made.job.env or {}, made.job.mode, made.site)
    return Wanted(request, made.site, spec.modules, words)
