"""Describe how to launch a recorded job again: in a new folder, or in the folder of the recorded job."""

import posixpath
import re
from dataclasses import dataclass

import msgspec

from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.launch.request import trainers
from toolkit.launch.tracking import records
from toolkit.model.job import JobRecord, JobSpec
from toolkit.model.prediction import Mode
from toolkit.run.command import Runner
from toolkit.run.stage import remote_hashes


@dataclass(frozen=True, slots=True)
class Relaunch:
    """A launch that repeats a recorded job.

    ``key`` is the key of the new job's record. The paths in ``spec`` are paths on the host that ``host``,
    ``cluster`` and ``ssh_config`` identify. ``image_digest`` is the digest of the image (``sha256:…``).
    ``arguments`` are the arguments that the user gave to a trainer or, without a trainer, the whole command.
    """

    key: str
    spec: JobSpec
    mode: Mode
    image_digest: str
    arguments: tuple[str, ...]
    host: str | None
    cluster: str | None
    ssh_config: str | None


def relaunch(record: JobRecord, *, resume: bool = False) -> Relaunch:
    """Return the description of a new launch of the job in ``record``.

    By default (``resume`` is false), the new job gets a new folder beside the folder of the recorded job. If
    ``resume`` is true, the new job runs in the folder of the recorded job, in which trainers find the last
    checkpoint. The new job has no dependency and no begin time.
    """
    old = record.spec
    key = records.new_key(old.name)
    folder = old.directory if resume else posixpath.join(posixpath.dirname(old.directory), key)
    spec = msgspec.structs.replace(
        old,
        directory=folder,
        command=tuple(replace_folder(word, old.directory, folder) for word in old.command),
        binds=tuple(replace_folder(bind, old.directory, folder) for bind in old.binds),
        env={name: replace_folder(value, old.directory, folder) for name, value in old.env.items()},
        workdir=replace_folder(old.workdir, old.directory, folder),
        dependency="",
        begin="",
    )
    return Relaunch(
        key=key,
        spec=spec,
        mode=record.mode,
        image_digest=record.image_digest,
        arguments=arguments(spec),
        host=record.host,
        cluster=record.cluster,
        ssh_config=record.ssh_config,
    )


def check_image(runner: Runner, record: JobRecord) -> None:
    """Check that the image on the host still has the digest in the job's record.

    If the job uses a file of additional Python packages (``--env-image``), check this file, too.

    Raises:
        Missing: if one of these files no longer exists.
        CheckFailed: if the digest of a file differs from the digest in the record.
    """
    _check_file(runner, record, "--image", record.spec.image, record.image_digest)
    if record.spec.env_image:
        _check_file(runner, record, "--env-image", record.spec.env_image, record.env_digest)


def _check_file(runner: Runner, record: JobRecord, option: str, image: str, digest: str) -> None:
    actual = remote_hashes(runner, [image]).get(image)
    wanted = digest.removeprefix("sha256:")
    if actual is None:
        raise Missing(
            f"{runner.place}: {image}, the image of {record.key}, no longer exists",
            fix=f"copy the file back to this path, or launch a new job with `{option} FILE`",
        )
    if actual != wanted:
        raise CheckFailed(
            f"{runner.place}: {image} has changed since the launch of {record.key}: "
            f"sha256 {actual[:12]}… instead of {wanted[:12]}…",
            fix=f"to use the changed file, launch a new job with `{option} FILE`",
        )


def arguments(spec: JobSpec) -> tuple[str, ...]:
    """Return the arguments that the user gave to a trainer or, without a trainer, the whole command."""
    return trainer_options(spec)[1]


def trainer_options(spec: JobSpec) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return a dictionary of the options that toolkit added to a trainer's command, and the user's arguments.

    Without a trainer, the dictionary is empty, and the arguments are the whole command.
    """
    try:
        program = ("python", *trainers.find(spec.trainer).at(spec.command[1]).program)
    except (BadInput, IndexError):
        return {}, spec.command
    if spec.command[: len(program)] != program:
        return {}, spec.command
    options, words = {}, spec.command[len(program) :]
    for option in ("--data", "--output", "--strategy"):
        # toolkit's options come first, in this order, each at most once. Any further option is the user's.
        if words[:1] == (option,) and len(words) > 1:
            options[option], words = words[1], words[2:]
    return options, words


def replace_folder(text: str, old: str, new: str) -> str:
    """Replace the folder ``old`` by ``new`` in ``text``, also in the paths of files below ``old``."""
    return re.sub(rf"{re.escape(old)}(?![\w.-])", lambda _: new, text)
