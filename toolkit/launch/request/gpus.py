"""Find whether ranks get GPUs, and whether an image could use GPUs that the job does not request."""

from toolkit.engine.traits import built_for_gpus
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell
from toolkit.model.site import Site


def has_gpus(spec: JobSpec, site: Site | None) -> bool:
    """Return whether ranks get GPUs: the job requests GPUs, or its partition always provides GPUs."""
    if site is not None:
        return site.has_gpus(spec.partition, spec.gpus_per_node)
    return bool(spec.gpus_per_node)


def may_have_gpus(job: JobFile, site: Site | None, host: HostFacts) -> bool:
    """Return whether ranks may have GPUs: ranks get GPUs, or the probed host has GPUs or a GPU driver."""
    wants_gpus = site.has_gpus(job.partition, job.gpus_per_node) if site else bool(job.gpus_per_node)
    return wants_gpus or bool(host.gpus or host.gpu_driver)


def tell_idle(
    name: str, spec: JobSpec, site: Site | None, host: HostFacts | None, image: ImageFacts, tell: Tell
) -> None:
    """Print a notice if the image can use GPUs of the cluster but the job does not request GPUs.

    ``name`` is the name of the image.
    """
    if idle := _idle_gpus(spec, site, host, image):
        tell.step(f"{name} can use GPUs, but the job does not request GPUs; add --gpus-per-node {idle}")


def _idle_gpus(spec: JobSpec, site: Site | None, host: HostFacts | None, image: ImageFacts) -> str:
    """Return the number of GPUs per node that the image can use but the job does not request.

    If toolkit did not probe the host, and the site profile has no partitions, the number is unknown. The
    result is then the letter ``N``. If there are no such GPUs, the result is empty.
    """
    if spec.gpus_per_node is not None or has_gpus(spec, site) or not built_for_gpus(image):
        return ""
    if host is not None:
        return str(len(host.gpus or ()) or "") if host.gpu_driver else ""
    if site is not None and not site.partitions:
        return "N"
    partition = site.partition(spec.partition or "") if site else None
    return str(partition.gpus or "") if partition else ""
