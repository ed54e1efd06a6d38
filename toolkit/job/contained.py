"""Run ``env`` in a container on a compute node, to read the variables that the image's start scripts set."""

import posixpath
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.errors import Missing, ToolkitError
from toolkit.files import hash_file
from toolkit.job.places import HostOptions
from toolkit.job.request.gate import clear, demand_of
from toolkit.job.request.inputs import StartableImage
from toolkit.job.request.layering import merge_request as settings
from toolkit.job.request.locations import directory, image_there
from toolkit.launch.jobscript.plan import runtime_of
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.progress import Tell
from toolkit.model.rank import RankView
from toolkit.run.command import Command, Runner
from toolkit.runtime import apptainer

IMMEDIATE = 30
"""The longest time, in seconds, that ``srun`` waits for a free node."""
_SECONDS = 120.0
_LOOK_SECONDS = 30.0
_VARIABLE = "environment."


@dataclass(frozen=True, slots=True)
class UndecidedImage:
    """An image whose start scripts set variables, and the host on which toolkit starts a container of the
    image to read these variables.

    ``file`` is the image file on this machine, and ``partition`` is the Slurm partition for the container.
    """

    image: ImageFacts
    file: Path
    host: HostFacts
    host_options: HostOptions
    partition: str | None


def undecided_variables(image: ImageFacts) -> tuple[str, ...]:
    """Return the names of the variables whose values toolkit cannot read from the image file."""
    return tuple(sorted(name.removeprefix(_VARIABLE) for name in image.unknown if name.startswith(_VARIABLE)))


def with_answer(view: RankView, question: UndecidedImage, tell: Tell) -> RankView:
    """Start a container on a compute node, and return ``view`` with the variables in the container.

    ``view`` describes what a rank sees. Before toolkit starts the container, it prints the ``srun`` command.
    If toolkit cannot start the container, or the container fails, the function returns ``view`` unchanged.
    """
    names = undecided_variables(question.image)
    if (
        not names
        or not _starts(question.host)
        or question.image.format != "sif"
        or not _may_start(question, tell)
    ):
        return view
    runner = question.host_options.open()
    try:
        path = _path_there(runner, question)
        if not path:
            place, why = runner.place, f"only a running container shows the values of {', '.join(names)}"
            tell.step(f"{question.file.name}: {why}, but the image is not on {place}")
            return view
        answer = _variables(runner, question, path, names, tell)
    finally:
        runner.close()
    return msgspec.structs.replace(view, told=answer) if answer else view


def _starts(host: HostFacts) -> bool:
    """Return whether the host has Slurm, and Apptainer or Singularity, to start the container."""
    return host.slurm is not None and host.runtime is not None and host.runtime.name in apptainer.NAMES


def _may_start(question: UndecidedImage, tell: Tell) -> bool:
    """Return whether the image's signatures permit toolkit to start the image.

    toolkit checks the signatures as for a job that has neither ``--verify-key`` nor ``--no-verify``.
    """
    digest = (question.image.digest or "").removeprefix("sha256:") or hash_file(question.file)
    name = question.file.name
    startable = StartableImage(name, question.image, digest, question.file, str(question.file))
    try:
        clear(startable, demand_of(settings({}, ("true",)), None, False), tell)
    except ToolkitError as error:
        tell.step(f"{name}: toolkit did not start the container: {error.message}")
        return False
    return True


def _path_there(runner: Runner, question: UndecidedImage) -> str:
    """Return the path of the image on the host, or an empty string if the host does not have the image."""
    if not question.host_options.remote:
        return str(question.file.resolve())
    digest = (question.image.digest or "").removeprefix("sha256:") or hash_file(question.file)
    try:
        path = image_there(question.file, digest, directory(runner, None, remote=True))
    except Missing:
        return ""
    readable = runner.run(Command.of("test", "-r", path, timeout=_LOOK_SECONDS)).ok
    return path if readable else ""


def words(host: HostFacts, path: str, partition: str | None) -> tuple[str, ...]:
    """Return the words of the ``srun`` command that prints the variables in a container on one node."""
    queue = (f"--partition={partition}",) if partition else ()
    step = ("srun", "--nodes=1", "--ntasks=1", "--time=1", f"--immediate={IMMEDIATE}", "--mpi=none", *queue)
    return (*step, runtime_of(host), "exec", path, "env")


def _variables(
    runner: Runner, question: UndecidedImage, path: str, names: Iterable[str], tell: Tell
) -> dict[str, str]:
    call = words(question.host, path, question.partition)
    shown = posixpath.basename(path)
    tell.step(
        f"{shown}: only a running container shows the values of {', '.join(names)}; starting the container "
        f"(--no-run skips this step): {shlex.join(call)}"
    )
    try:
        done = runner.run(Command(call, timeout=_SECONDS))
    except Missing:
        return {}
    if not done.ok:
        last = next(iter(done.errors.strip().splitlines()[-1:]), "no message")
        tell.step(f"{shown}: reading the variables in the container failed: {last}")
        return {}
    return read(done.text)


def read(text: str) -> dict[str, str]:
    """Return the variables in the output of ``env``, by name. For a value with several lines, return only
    the first line.
    """
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, sign, value in pairs if sign and name.isidentifier()}
