"""What ``toolkit doctor`` judges: with ``--site`` or ``--job`` the job that ``launch`` would start."""

import posixpath
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.engine.predict import predict
from toolkit.job.facts import facts_of
from toolkit.job.places import Where
from toolkit.job.request.layering import announce, asked
from toolkit.job.sight import shown_by, view, view_of
from toolkit.launch.loaded import with_runtime
from toolkit.launch.request import layers
from toolkit.launch.request.layers import OPTION
from toolkit.launch.request.specify import JobPaths, name_of, request_of, specify
from toolkit.launch.unseen import folder_of
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Mode, Request, Verdict
from toolkit.model.progress import Tell
from toolkit.model.rank import WHOLE, RankView
from toolkit.model.site import Site

NODES = 2
"""What a launch over a network takes at least."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What a launch asks of the engine, and the site that it is for.

    ``words`` are the options that lead to it again, ``view`` is what its ranks see of the image.
    """

    request: Request
    site: Site | None = None
    modules: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    view: RankView = WHOLE
    runtime: str = ""

    def judge(self, host: HostFacts, image: ImageFacts) -> "Diagnosis":
        """Return the verdict on the launch; modules of site and job may add a runtime to the host's facts."""
        known = with_runtime(host, self.site, self.modules, self.runtime)
        return Diagnosis(known, image, self, predict(known, image, self.request, self.site))


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A verdict, and what it was reached from: the facts of host and image, and the launch."""

    host: HostFacts
    image: ImageFacts
    wanted: LaunchRequest
    verdict: Verdict


def wanted(
    image: str,
    site: str | None,
    job_file: str | None,
    partition: str | None,
    nodes: int | None,
    ranks_per_node: int | None,
    mode: Mode | None,
    tell: Tell,
    command: tuple[str, ...] = (),
    runtime: str | None = None,
) -> LaunchRequest:
    """Return the launch to judge; options win over the job file, ``command`` over its program.

    The cluster is not asked where its folders are; the folder of the run has its default name.

    Raises:
        BadInput: one line with place, field and choices.
    """
    layers.checked({"nodes": nodes, "ranks_per_node": ranks_per_node, "mode": mode}, OPTION, {}, strict=True)
    if not site and not job_file:
        request = Request(nodes=nodes or NODES, ranks_per_node=ranks_per_node or 1, mode=mode)
        shown = shown_by(command)
        request = msgspec.structs.replace(request, command=command, joins=shown.joins, says=dict(shown.says))
        words = _runtime_words(runtime)
        return LaunchRequest(request, words=words, view=view(command), runtime=runtime or "")
    said = {"image": image, "site": site, "partition": partition, "ranks_per_node": ranks_per_node}
    said |= {"mode": mode, "runtime": runtime, "nodes": nodes or (None if job_file else NODES)}
    given = {name: value for name, value in said.items() if value is not None}
    made = asked(given, command, job_file)
    seen = view_of(made.job, made.site)
    if made.job.trainer is None and not made.job.command:
        made = asked(given, ("COMMAND",), job_file)
    announce(made, tell=tell)
    folder = posixpath.join(folder_of(made.job, made.site), "runs", name_of(made.job))
    spec = specify(made.job, JobPaths(folder, image))
    words = (*(("--site", site) if site else ()), *(("--job", job_file) if job_file else ()))
    words += _runtime_words(runtime)
    request = request_of(
        spec, made.job.env or {}, made.job.mode, made.site, made.job.program, shown_by(command)
    )
    if not seen.command:  # the command is a placeholder
        request = msgspec.structs.replace(request, command=())
    return LaunchRequest(request, made.site, spec.modules, words, seen, spec.runtime)


def _runtime_words(runtime: str | None) -> tuple[str, ...]:
    return ("--runtime", runtime) if runtime else ()


def diagnose(
    image: str | ImageFacts,
    place: HostFacts | Path | None,
    wanted: LaunchRequest,
    where: Where,
    partition: str | None,
    tell: Tell,
) -> Diagnosis:
    """Read the image, then the facts of the place, and judge the launch.

    Args:
        image: an image, or its facts.
        place: the facts of the place or a facts file; ``None`` to probe ``where``.
        wanted: the launch.
        where: the place to probe.
        partition: the Slurm partition of which one node is probed.
        tell: receives progress.

    Raises:
        BadInput: if the image or the facts file cannot be read.
        CheckFailed: if the image is damaged, or the answer of the probe is cut short.
        Missing: if the place is unreachable.
    """
    if isinstance(image, str):
        from toolkit.image.inspect import inspect
        from toolkit.job.request.locations import named_image

        image = inspect(named_image(image), tell=tell, view=wanted.view)
    if not isinstance(place, HostFacts):
        place = facts_of(place, where, partition)
    return wanted.judge(place, image)
