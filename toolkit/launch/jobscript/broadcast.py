"""Decide whether a job copies its image to a local disk of each node, and write the script lines for the
copy."""

from collections.abc import Mapping, Sequence

from toolkit import scheduler as schedulers
from toolkit.data import shipped_folder
from toolkit.model.job import JobSpec
from toolkit.model.site import Site
from toolkit.render import quote_word, with_variables
from toolkit.runtime import runtime_of_name
from toolkit.scheduler import slurm

FEW = 4
"""With more nodes than this number, a job by default copies its image to each node."""
MOST_MIB = 40_960
"""The maximum disk space, in MiB, that a user's jobs use for copies of images on a node."""
_FILE = "broadcast.sh"
_TMP = "/tmp"  # noqa: S108 - a local folder of each node, unless the site profile names another folder


def decide_broadcast(spec: JobSpec, site: Site | None, runtime: str) -> tuple[bool, str]:
    """Return whether the job copies its image to each node, and the reason.

    Args:
        spec: the job; its field ``broadcast`` is the user's choice.
        site: the profile of the job's site, or ``None``.
        runtime: the command of the container runtime.
    """
    if spec.broadcast == "off":
        return False, "--broadcast off"
    if (
        schedulers.scheduler_of(site) is not slurm
        or spec.elastic
        or not runtime_of_name(runtime).MOUNTS_IMAGES
    ):
        return False, "only a Slurm job with Apptainer and a fixed number of nodes copies its image"
    if spec.broadcast == "on":
        return True, "--broadcast on"
    if spec.nodes > FEW:
        return True, f"{spec.nodes} nodes would read the image from the shared file system at once"
    return False, f"{spec.nodes} nodes are few enough to read the image from the shared file system"


def pieces_of(files: Sequence[tuple[str, str, str, int]]) -> dict[str, str]:
    """For each copied file, map its path to the shell word that replaces the path in the job script, such as
    ``"$image_file"``.
    """
    return {path: f'"${name}"' for name, path, _, _ in files}


def files_of(spec: JobSpec, copies: Mapping[str, tuple[str, int]]) -> list[tuple[str, str, str, int]]:
    """Return the shell variable, path, SHA-256 and size in bytes of each file that the job copies.

    Args:
        spec: the job.
        copies: the digest (``sha256:…``) and size in bytes of each file, by path; empty if the job copies no
        file.
    """
    named_files = (("image_file", spec.image), ("env_file", spec.env_image))
    known = [(name, path, *copies[path]) for name, path in named_files if path in copies]
    return [(name, path, digest.removeprefix("sha256:"), size) for name, path, digest, size in known]


def values(
    spec: JobSpec, site: Site | None, copies: Mapping[str, tuple[str, int]], start: str
) -> dict[str, object]:
    """Return the template values of ``parts/broadcast.sh.j2``.

    ``start`` is the command that starts a program once on each node.
    """
    base = with_variables(site.scratch) if site and site.scratch else quote_word(_TMP)
    return {
        "broadcast": files_of(spec, copies),
        "broadcast_script": (shipped_folder("slurm") / _FILE).read_text(encoding="utf-8") if copies else "",
        "broadcast_start": start,
        "broadcast_folder": f'{base}/toolkit-"$(id -u)"',
        "broadcast_most": MOST_MIB,
    }
