"""Check that an ``--env-image`` file fits the job's image, and check the file's signature.

Also find the mounts and variables that the job needs for this file.
"""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from toolkit.errors import BadInput, CheckFailed
from toolkit.files import hash_file
from toolkit.folders import at_home
from toolkit.image.envs.lockfile import EnvLock, read_env
from toolkit.image.software.contents import Contents
from toolkit.job.request.inputs import StartableImage
from toolkit.job.request.keys import KeyDemand
from toolkit.launch.request.specify import JobPaths
from toolkit.model.facts import ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Request
from toolkit.model.progress import Tell
from toolkit.model.stack import ENV_MOUNT
from toolkit.run.stage import Parcel
from toolkit.runtime import apptainer, runtime_of_name

OPTION = "--env-image"


@dataclass(frozen=True, slots=True)
class MountedEnv:
    """A checked environment image, which the job mounts over its container image.

    ``cluster_path`` is the path of the environment image on the machine of the job. ``paths`` contains the
    variables, such as ``PATH``, whose values include the mount point of the environment image. ``binds`` are
    mounts of project folders whose code is not in the environment image. ``parcels`` lists the files that
    toolkit copies to the cluster. ``local_file`` is the environment image on this machine.
    """

    cluster_path: str
    digest: str
    paths: Mapping[str, str]
    binds: tuple[str, ...] = ()
    parcels: tuple[Parcel, ...] = ()
    local_file: Path | None = None


NO_ENV = MountedEnv("", "", {})


def env_file(option: str | None) -> Path | None:
    """Return the absolute path of the ``--env-image`` file, or ``None`` without this option.

    Raises:
        BadInput: if the file is not an environment image.
        Damaged: if the environment image is damaged.
    """
    if option is None:
        return None
    path = at_home(option)
    read_env(path, OPTION)
    return path.resolve()


def read_offer(offers: Contents, env: Path | None) -> Contents:
    """Return the commands and modules of an image, plus the modules in project folders whose code is
    not in the environment image.
    """
    folders = [Path(folder) for folder in read_env(env).outside] if env else []
    names = {
        entry.name.partition(".")[0] for folder in folders if folder.is_dir() for entry in folder.iterdir()
    }
    return replace(offers, modules=offers.modules | names)


def check_runtime(option: str | None, command: str) -> None:
    """Raise an error if the container runtime cannot mount an environment image.

    Raises:
        BadInput: if the runtime cannot mount an environment image; the error names runtimes that can.
    """
    kind = runtime_of_name(command)
    if option and not kind.MOUNTS_IMAGES:
        raise BadInput(
            f"{OPTION} {option}: {kind.NAMES[0]} cannot mount an environment over an image",
            fix="launch a SIF with Apptainer or Singularity: `--runtime apptainer`",
        )


def clear_env(
    env: Path | None,
    image: StartableImage,
    demand: KeyDemand,
    tell: Tell,
    *,
    base: str = "",
    force: bool = False,
) -> MountedEnv:
    """Check that an environment image matches the job's image, and check the signature of the environment
    image.

    Args:
        env: the environment file, or ``None``.
        image: the image; its facts describe the image with the environment mounted over it.
        demand: the keys that must have signed the environment image.
        tell: the listener for progress messages.
        base: the folder on the cluster for copies; empty if the job runs on this machine.
        force: whether the job may use an environment that does not match the job's image.

    Raises:
        BadInput: if the job's image is not on this machine, so that toolkit cannot compare the two images.
        CheckFailed: if the environment does not match the job's image and ``force`` is false, or if the
            signature is wrong, or a required signature is missing.
    """
    if env is None:
        return NO_ENV
    if image.local_file is None:
        raise BadInput(
            f"{OPTION} {env}: toolkit cannot compare this environment with the job's image, because "
            f"{image.cluster_path} is not on this machine",
            fix="launch on the login node, or copy the image to this machine and give `--image COPY`",
        )
    from toolkit.image.envs.check import AGAIN, differs  # slow import, needed only for an environment image

    lock, digest = read_env(env, OPTION), hash_file(env)
    facts = image.facts
    why = differs(
        lock.base, f"sha256:{image.digest}", facts.python or "", facts.glibc or "", facts.architecture or ""
    )
    if why and not force:
        raise CheckFailed(f"{OPTION} {env}: {why}", fix=AGAIN.format(env, image.local_file))
    if why:
        tell.step(f"{env.name}: {why}; toolkit uses the environment anyway, because of --force")
    _check_signature(env, digest, demand, tell)
    mount_source, copied = str(env), tuple[Parcel, ...]()
    if base:
        mount_source = posixpath.join(base, "envs", f"{env.stem}-{digest[:12]}{env.suffix}")
        copied = (Parcel(env, mount_source, digest),)
    return replace(_mount_env(lock, facts, mount_source, digest, copied, tell), local_file=env)


def _mount_env(
    lock: EnvLock, facts: ImageFacts, mount_source: str, digest: str, parcels: tuple[Parcel, ...], tell: Tell
) -> MountedEnv:
    paths = paths_of(facts)
    binds: tuple[str, ...] = ()
    if lock.outside and parcels:
        tell.step(
            f"The environment uses code in {', '.join(lock.outside)}, which toolkit does not copy with the "
            "environment; give the folder with --project, or launch on the cluster"
        )
    elif lock.outside:
        binds = tuple(apptainer.bind(folder) for folder in lock.outside if Path(folder).is_dir())
        paths["PYTHONPATH"] = ":".join((*lock.outside, paths["PYTHONPATH"]))
    return MountedEnv(mount_source, f"sha256:{digest}", paths, binds, parcels)


def with_env_file(places: JobPaths, env: MountedEnv) -> JobPaths:
    """Return a job's paths with the path, the variables and the mounts of the environment image added."""
    return replace(places, env=env.cluster_path, paths=env.paths, mounts=(*places.mounts, *env.binds))


def request_with_env(request: Request, spec: JobSpec, env: MountedEnv) -> Request:
    """Return the engine's launch request with the variables and project folders of the environment image
    added.
    """
    paths = {name: spec.env[name] for name in env.paths}
    return msgspec.structs.replace(request, env={**request.env, **paths}, projects=env.binds)


def paths_of(facts: ImageFacts) -> dict[str, str]:
    """Return the values of ``PATH`` and ``PYTHONPATH`` that contain the environment's mount point.

    ``facts`` describe the image with the environment mounted over it.
    """
    lists = {name: facts.environment.get(name, "") for name in ("PATH", "PYTHONPATH")}
    return {name: value for name, value in lists.items() if ENV_MOUNT in value}


def _check_signature(env: Path, digest: str, demand: KeyDemand, tell: Tell) -> None:
    from toolkit.image.trust.detached import require_signed, signature_of

    if demand.unchecked:
        return
    keyrings: list[Path | None] = [at_home(required_key.key) for required_key in demand.required_keys]
    for keyring in keyrings or [None]:
        signature = signature_of(env, keyring)
        require_signed(env, signature, digest)
        if signature.state == "good":
            tell.step(f"{env.name} is signed by {signature.user}")
