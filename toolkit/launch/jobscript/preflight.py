"""The words of the check that runs before a training, as far as the image's own version of it knows them."""

from collections.abc import Sequence

from toolkit.errors import BadInput
from toolkit.launch.request.gpus import has_gpus
from toolkit.launcher.srun import NODES
from toolkit.model.facts import ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.site import Site
from toolkit.runtime.apptainer import bind
from toolkit.versions import within

PREFLIGHT = ("python", "-m", "toolkit.trainers.preflight")
"""What is run in the container first; ``--tasks`` is added by the script."""

_KNOWS_MORE = ">=0.2"
"""Releases of toolkit whose preflight looks at nodes, GPUs, free space and the image too."""


def words(spec: JobSpec, site: Site | None, image: ImageFacts | None) -> tuple[str, ...]:
    """Return the command of the preflight; images of before 0.2 have one that counts ranks alone.

    Raises:
        BadInput: if the image's own preflight cannot check what is asked for.
    """
    release = (image.stack or {}).get("toolkit") if image else None
    if not isinstance(release, str) or not within(release, _KNOWS_MORE):
        if isinstance(release, str) and (asked := limits(spec)):
            raise BadInput(
                f"{asked[0]}: the preflight in this image, of toolkit {release}, does not know it",
                fix="build the image anew, or leave the option out",
            )
        return (*PREFLIGHT, *_limits_alone(spec))
    gpus = spec.gpus_per_node or 0
    if not spec.gpus_per_node and site and has_gpus(spec, site):
        partition = site.partition(spec.partition or "")
        gpus = (partition.gpus if partition else None) or 0
    more = ["--nodes", NODES if spec.elastic else str(spec.nodes), "--output", spec.directory]
    more += ["--gpus-per-node", str(gpus)] if gpus else []
    more += limits(spec)
    return (*PREFLIGHT, *more, *(("--image", spec.image) if _bindable(spec.image) else ()))


def limits(spec: JobSpec) -> tuple[str, ...]:
    """Return the words for what a person wants to be checked besides."""
    speed = ("--fabric-gbit", str(spec.fabric_gbit)) if spec.fabric_gbit else ()
    return (*speed, *(("--min-free", spec.min_free) if spec.min_free else ()))


def here(spec: JobSpec) -> tuple[str, ...]:
    """Return the command of the preflight on this machine alone."""
    return (*PREFLIGHT, *_limits_alone(spec))


def _limits_alone(spec: JobSpec) -> tuple[str, ...]:
    """Return them for a preflight that is asked for nothing else; free space is that of a folder."""
    return (*(("--output", spec.directory) if spec.min_free else ()), *limits(spec))


def binds(spec: JobSpec, preflight: Sequence[str]) -> tuple[str, ...]:
    """Return the bind of the image's own file, where the preflight looks at it."""
    return (bind(spec.image, read_only=True),) if "--image" in preflight else ()


def _bindable(path: str) -> bool:
    try:
        return bool(bind(path))
    except BadInput:
        return False
