"""Check the options of a trainer that is part of toolkit, before the job waits in the queue."""

import re
import sys
from collections.abc import Iterator

from toolkit import __version__
from toolkit.knowledge.trainers import trainers
from toolkit.launch.request import sweep_values
from toolkit.model.facts import ImageFacts
from toolkit.model.finding import LaunchFault
from toolkit.model.job import JobSpec
from toolkit.near import suggest_near
from toolkit.run.command import Command, Runner

_SECONDS = 30.0
_MOST_TASKS = 16
"""The largest number of sweep tasks whose options toolkit checks, because each check starts a process."""
_OPTION = re.compile(r"--[a-z][a-z0-9-]*")
_ERROR = re.compile(r"^(?:[\w.-]+: |python -m [\w.]+: )error: (.*)", re.MULTILINE)
_UNKNOWN = "unrecognized arguments: "


def trainer_faults(spec: JobSpec, image: ImageFacts, runner: Runner) -> Iterator[LaunchFault]:
    """Yield the faults in the options of a trainer that is part of toolkit.

    toolkit skips the check if the image contains no toolkit or another release of toolkit, because the
    options of another release may differ.

    Args:
        spec: the job, with the command of a rank.
        image: the facts of the image that contains the trainer.
        runner: runs the trainer's option parser on this machine.
    """
    if "-m" not in spec.command or not image.stack or image.stack.get("toolkit") != __version__:
        return
    module, *options = spec.command[spec.command.index("-m") + 1 :]
    tried = [
        sweep_values.fill_command(options, row) for row in sweep_values.rows(spec.sweep)[:_MOST_TASKS]
    ] or [tuple(options)]
    for words in dict.fromkeys(tried):
        faults = [*_faults(spec, module, words, runner)]
        yield from faults
        if faults:
            return


def _faults(spec: JobSpec, module: str, words: tuple[str, ...], runner: Runner) -> Iterator[LaunchFault]:
    command = (sys.executable, "-P", "-m", "toolkit.trainers.options", module.rpartition(".")[2], *words)
    done = runner.run(Command.of(*command, timeout=_SECONDS))
    output = done.errors
    if done.ok:
        yield from _ranks(spec, done.text.strip())
    elif done.status == 2 and (error := _ERROR.search(output)):
        yield LaunchFault(_message(spec.trainer, error[1], output), f"see the options: {_help(module)}")


def _message(trainer: str, error: str, output: str) -> str:
    if not error.startswith(_UNKNOWN):
        return f"{trainer}: {error}"
    words = [word for word in error.removeprefix(_UNKNOWN).split() if word.startswith("-")]
    unknown = words[0].partition("=")[0] if words else error.removeprefix(_UNKNOWN)
    known = sorted(set(_OPTION.findall(output.partition(" error: ")[0])))
    return f"{trainer} has no option {unknown}{suggest_near(unknown, known)}"


def _ranks(spec: JobSpec, strategy: str) -> Iterator[LaunchFault]:
    if spec.ranks > 1 and strategy in trainers().strategies.one_process:
        yield LaunchFault(
            f"--strategy {strategy} trains in one process, but the job has {spec.ranks} ranks",
            "request one rank, or use --strategy horovod",
        )


def _help(module: str) -> str:
    return f"{sys.executable} -m {module} --help"
