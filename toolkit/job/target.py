"""Collect the facts about a job's host (the probe), and read the job's image."""

import posixpath
from dataclasses import dataclass
from pathlib import Path

from toolkit.job.meanwhile import Meanwhile
from toolkit.job.rank_view import view_of_job
from toolkit.job.request.envfile import (
    NO_ENV,
    MountedEnv,
    check_runtime,
    clear_env,
    env_file,
)
from toolkit.job.request.flags import Flags
from toolkit.job.request.gate import ImageClearance, clear, demand_of
from toolkit.job.request.inputs import (
    OnCluster,
    StartableImage,
    find_startable,
    inspect_input,
)
from toolkit.job.request.layering import JobRequest
from toolkit.job.request.locations import directory, image_there
from toolkit.launch import loaded
from toolkit.launch.jobscript import script
from toolkit.launch.tracking import records
from toolkit.model.facts import HostFacts
from toolkit.model.progress import Tell
from toolkit.model.sitefacts import SiteFacts
from toolkit.probe.asking import of_job
from toolkit.probe.probe import gather
from toolkit.probe.remembered import HostMemory
from toolkit.run.command import Runner
from toolkit.run.known_hash import known_remote_hash
from toolkit.run.patience import AWAY_SECONDS, PatientRunner, tell_of_loss
from toolkit.run.stage import Parcel


@dataclass(frozen=True, slots=True)
class Target:
    """The facts about a host, and an image for a job on this host.

    ``base`` is the folder on the host in which toolkit keeps images, data and runs. ``image_path`` is the
    path of the image on the host. ``parcels`` lists the files that toolkit copies to the host.
    ``assumptions`` are sentences about facts that toolkit assumes, because the probe could not read them.
    ``cluster`` contains the partitions. If the job names an account or a QOS, ``cluster`` also contains the
    user's accounts.
    """

    runner: Runner
    image: StartableImage
    clearance: ImageClearance
    host: HostFacts
    base: str
    image_path: str
    parcels: tuple[Parcel, ...]
    assumptions: tuple[str, ...]
    cluster: SiteFacts
    env: MountedEnv = NO_ENV

    def run(self, name: str) -> str:
        """Return the path of a folder on the host for a new run of the job ``name``."""
        return posixpath.join(self.base, "runs", records.new_key(name))


def target_of(
    runner: Runner,
    request: JobRequest,
    flags: Flags,
    image: Path | OnCluster,
    tell: Tell,
    *,
    remote: bool,
    copy_check: bool = False,
    memory: HostMemory | None = None,
) -> Target:
    """Read the image, check the image's signatures, and collect the facts about the host.

    This function does not change the host, so toolkit can safely retry after a broken connection. ``remote``
    is true if the host is another machine. If ``copy_check`` is true, toolkit checks whether the host already
    has an identical copy of the image. ``memory`` reuses the facts of an earlier probe if they are recent and
    the host is unchanged; without ``memory``, toolkit probes the host.
    """
    patient = PatientRunner(runner, tell_of_loss(tell), AWAY_SECONDS)
    try:
        memory = memory or HostMemory(0)
        return _target(patient, request, flags, image, tell, memory, remote=remote, copy_check=copy_check)
    except BaseException:
        patient.stop()  # stop the retries in the threads of `_target`, which may still wait for the host
        raise


def _target(
    runner: Runner,
    request: JobRequest,
    flags: Flags,
    image: Path | OnCluster,
    tell: Tell,
    memory: HostMemory,
    *,
    remote: bool,
    copy_check: bool,
) -> Target:
    job = request.job
    tell.step(f"Reading {image.name} and probing {runner.place}")
    choice = of_job(job.partition, accounts=bool(job.account or job.qos))
    probing = Meanwhile(lambda: memory.gather(runner, choice, lambda: gather(runner, choice)))
    placing = Meanwhile(lambda: directory(runner, job.directory, remote=remote, variables=_of_site(request)))
    command = job.runtime or (request.site.container.command if request.site else "")
    view = view_of_job(job, request.site)
    startable = find_startable(
        inspect_input(runner, image, request.site, tell, remote=remote, view=view), command
    )
    copying = Meanwhile(lambda: find_copy(runner, startable, placing.result(), copy_check=copy_check))
    demand = demand_of(request, flags.verify_key, flags.no_verify)
    cleared = clear(startable, demand, tell)
    script.load_template(request.site)
    facts = probing.result()
    if memory.age is not None:
        tell.step(
            f"{runner.place} is unchanged since the probe {_ago(memory.age)}, so toolkit reuses the facts"
        )
    host = loaded.with_runtime(facts.host, request.site, job.modules or (), job.runtime or "")
    command = loaded.command_of(host, request.site, job.runtime or "")
    find_startable(startable, command)
    check_runtime(job.env_image, command)
    assumed = loaded.assumption_line(host)
    for line in assumed:
        tell.step(f"{runner.place}: {line}")
    base = placing.result()
    image_path, copied = copying.result()
    env = clear_env(
        env_file(job.env_image), startable, demand, tell, base=base if remote else "", force=flags.force
    )
    copied = (*copied, *env.parcels)
    return Target(runner, startable, cleared, host, base, image_path, copied, assumed, facts.site, env)


def copies_of(target: Target) -> dict[str, tuple[str, int]]:
    """Return the image's digest and its size in bytes, by the image's path on the host.

    If the user gives ``--env-image``, the result also contains the environment image. The result is empty if
    the job's image exists only on the host.
    """
    if target.image.local_file is None:
        return {}
    sizes = {target.image_path: (target.clearance.digest, target.image.local_file.stat().st_size)}
    if target.env.local_file is not None:
        sizes[target.env.cluster_path] = (target.env.digest, target.env.local_file.stat().st_size)
    return sizes


def find_copy(
    runner: Runner, image: StartableImage, base: str, *, copy_check: bool
) -> tuple[str, tuple[Parcel, ...]]:
    """Return the image's path on the host, and the image file to copy to the folder ``base`` on the host.

    There is no file to copy if ``image.cluster_path`` is set, because the image is then already on the host.
    If ``copy_check`` is true, there is also no file to copy if an identical file is already below ``base``.
    """
    if image.cluster_path or image.local_file is None:
        return image.cluster_path, ()
    image_path = image_there(image.local_file, image.digest, base)
    if copy_check and known_remote_hash(runner, image_path) == image.digest:
        return image_path, ()
    return image_path, (Parcel(image.local_file, image_path, image.digest),)


def _of_site(request: JobRequest) -> bool:
    """Return whether the site profile sets ``directory``, toolkit's folder on the cluster."""
    return request.site is not None and request.origins.get("directory", "").startswith("site ")


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
