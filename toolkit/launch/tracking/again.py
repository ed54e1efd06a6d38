"""Launch a job once more from its record: what was asked for, in a folder of its own or where it stopped."""

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
class Again:
    """A launch that repeats another one.

    ``key`` is that of the record to be, ``spec`` the whole specification: its image, data and paths are
    those of the place, which ``host``, ``cluster`` and ``ssh_config`` lead to. ``image_digest`` is what the
    image there has to have (``sha256:…``). ``arguments`` are those that a trainer was given after ``--``,
    or the whole command where there is no trainer.
    """

    key: str
    spec: JobSpec
    mode: Mode
    image_digest: str
    arguments: tuple[str, ...]
    host: str | None
    cluster: str | None
    ssh_config: str | None


def again(record: JobRecord, *, resume: bool = False) -> Again:
    """Return how to launch the job of ``record`` once more.

    It gets a folder of its own beside the old one, named as any new job's; with ``resume`` it stays in the
    old one, where trainers go on from the last checkpoint. What only said when the first one was to start,
    a dependency or a time to begin, is left out.
    """
    old = record.spec
    key = records.new_key(old.name)
    folder = old.directory if resume else posixpath.join(posixpath.dirname(old.directory), key)
    spec = msgspec.structs.replace(
        old,
        directory=folder,
        command=tuple(moved(word, old.directory, folder) for word in old.command),
        binds=tuple(moved(bind, old.directory, folder) for bind in old.binds),
        env={name: moved(value, old.directory, folder) for name, value in old.env.items()},
        workdir=moved(old.workdir, old.directory, folder),
        dependency="",
        begin="",
    )
    return Again(
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
    """Hold the image that the job ran from against its digest, and the environment over it.

    Raises:
        Missing: if a file is not there any more.
        CheckFailed: if it has other bytes than it had then.
    """
    _check_file(runner, record, "--image", record.spec.image, record.image_digest)
    if record.spec.env_image:
        _check_file(runner, record, "--env-image", record.spec.env_image, record.env_digest)


def _check_file(runner: Runner, record: JobRecord, option: str, image: str, digest: str) -> None:
    found = remote_hashes(runner, [image]).get(image)
    wanted = digest.removeprefix("sha256:")
    if found is None:
        raise Missing(
            f"{runner.place}: {image}, which {record.key} ran from, is not there any more",
            fix=f"launch with {option} and the same file; the record has its digest",
        )
    if found != wanted:
        raise CheckFailed(
            f"{runner.place}: {image} is not what {record.key} ran from: "
            f"sha256 {found[:12]}… in place of {wanted[:12]}…",
            fix=f"launch with {option} to take another file on purpose",
        )


def arguments(spec: JobSpec) -> tuple[str, ...]:
    """Return what a trainer was given by its person; all of the command where there is no trainer."""
    return given(spec)[1]


def given(spec: JobSpec) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the options that a launch gave a trainer, by name, and the arguments of its person behind them.

    Where there is no trainer these are all of the command.
    """
    try:
        program = ("python", *trainers.find(spec.trainer).at(spec.command[1]).program)
    except (BadInput, IndexError):
        return {}, spec.command
    if spec.command[: len(program)] != program:
        return {}, spec.command
    options, words = {}, spec.command[len(program) :]
    for option in ("--data", "--output", "--strategy"):
        # These come first and once; a person's own of the same name stand behind them.
        if words[:1] == (option,) and len(words) > 1:
            options[option], words = words[1], words[2:]
    return options, words


def moved(text: str, old: str, new: str) -> str:
    """Put one folder in place of another wherever ``text`` names it or something below it."""
    return re.sub(rf"{re.escape(old)}(?![\w.-])", lambda _: new, text)
