"""Find the commands of the trainers in toolkit's images, and of the user's own trainers, by name."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import PurePath

import msgspec

from toolkit.errors import BadInput
from toolkit.knowledge import trainers as known
from toolkit.launch.request.checks import as_name
from toolkit.model.facts import ImageFacts
from toolkit.model.jobfile import JobFile, Strategy
from toolkit.model.prediction import Mode, ProgramName
from toolkit.near import suggest_near


@dataclass(frozen=True, slots=True)
class TrainerProgram:
    """A trainer and its command.

    ``program`` contains the arguments of Python: ``-m`` and a module in the image, or a file. ``dataset`` is
    the name of a data set for ``toolkit data get``, or empty. ``data_required`` is true if the user must
    provide the data. ``own`` is true for a user's file, which toolkit copies to the cluster.
    """

    name: str
    program: tuple[str, ...]
    dataset: str = ""
    data_required: bool = False
    own: bool = False

    def command(self, data: str, output: str, strategy: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command of one rank; the user's arguments come last and override toolkit's options."""
        data_words = ("--data", data) if data else ()
        options = (*data_words, "--output", output, "--strategy", strategy)
        return ("python", *self.program, *options, *arguments)

    def at(self, path: str) -> "TrainerProgram":
        """Return the trainer with its file at ``path``; a trainer in the image is unchanged."""
        return replace(self, program=(path,)) if self.own else self


def other_modes(job: JobFile) -> tuple[Mode, ...]:
    """Return ``("gloo",)`` if the job can use ``gloo``, else ``()``.

    The engine never chooses the launch mode ``gloo`` itself. A trainer can use ``gloo`` if its strategy needs
    neither MPI nor the rendezvous of a framework.
    """
    table = known.trainers()
    strategies = {name for row in table.framework for name in row.strategies}
    return ("gloo",) if job.trainer and job.strategy not in {*table.strategies.mpi, *strategies} else ()


def program_of(command: Sequence[str]) -> ProgramName:
    """Return how the ranks of a trainer find each other; by default ``horovod``.

    The last ``--strategy`` option in the command determines the result.
    """
    chosen = [value for word, value in pairwise(command) if word == "--strategy"]
    rows = (row for row in known.trainers().framework if chosen and chosen[-1] in row.strategies)
    return next((row.program for row in rows), "horovod")


def with_strategy(job: JobFile, image: ImageFacts) -> JobFile:
    """Return the job with a strategy for the image's framework.

    The job is unchanged if it has no trainer, or if the user chose a strategy. The job is also unchanged if
    the image may contain both TensorFlow and Horovod.
    """
    if job.trainer is None or job.strategy or not {"tensorflow", "horovod"} & image.absent.keys():
        return job
    rows = (row for row in known.trainers().framework if getattr(image, row.fact) is not None)
    strategy = next((row.strategies[0] for row in rows), None)
    return msgspec.structs.replace(job, strategy=strategy)


def usual_strategy(ranks: int) -> Strategy:
    """Return the default strategy of a trainer for a number of ranks."""
    return "horovod" if ranks > 1 else "single"


@cache
def shipped_trainers() -> dict[str, TrainerProgram]:
    """Return the trainers in toolkit's images, by name."""
    return {
        row.name: TrainerProgram(
            row.name,
            ("-m", f"toolkit.trainers.{row.name.replace('-', '_')}"),
            row.dataset,
            row.bring,
        )
        for row in known.trainers().trainer
    }


def find(name: str) -> TrainerProgram:
    """Return the trainer with this name, or the user's trainer in a file whose name ends with ``.py``.

    Raises:
        BadInput: if no trainer has this name; the error lists the known trainers.
    """
    if name.endswith(".py"):
        return TrainerProgram(as_name(PurePath(name).stem), (name,), own=True)
    try:
        return shipped_trainers()[name]
    except KeyError:
        raise BadInput(
            f"trainer '{name}': not found{suggest_near(name, shipped_trainers())}; "
            f"choices: {', '.join(shipped_trainers())}, "
            "or a file FILE.py",
            fix="give your own command after `--`: `toolkit launch --image FILE.sif -- COMMAND`",
        ) from None
