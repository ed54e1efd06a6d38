"""The trainers as the launching side knows them: those inside the images, and files of one's own."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath

from toolkit.errors import BadInput
from toolkit.knowledge import trainers as known
from toolkit.launch.request.checks import as_name
from toolkit.model.jobfile import JobFile, Strategy
from toolkit.model.prediction import Mode
from toolkit.near import near


@dataclass(frozen=True, slots=True)
class TrainerProgram:
    """``program`` is what Python runs: ``-m`` and a module of the image, or a file.

    ``dataset`` is what ``toolkit data get`` fetches, empty for a trainer that needs none, or one's own;
    ``bring`` is true where a person has to bring the data.
    ``own`` is true of a file of the user, which has to travel to where the job runs.
    """

    name: str
    program: tuple[str, ...]
    dataset: str = ""
    bring: bool = False
    own: bool = False

    def command(self, data: str, output: str, strategy: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command of one rank; later options win, so a person's own come last."""
        given = ("--data", data) if data else ()
        options = (*given, "--output", output, "--strategy", strategy)
        return ("python", *self.program, *options, *arguments)

    def at(self, path: str) -> "TrainerProgram":
        """Return it as it is where its file lies at ``path``."""
        return replace(self, program=(path,)) if self.own else self


def other_modes(job: JobFile) -> tuple[Mode, ...]:
    """Return the modes beyond the engine's own choice that serve a job: Gloo, where no MPI is needed."""
    return ("gloo",) if job.trainer and job.strategy not in known.trainers().strategies.mpi else ()


def usual_strategy(ranks: int) -> Strategy:
    """Return how a trainer is distributed where nobody says it."""
    return "horovod" if ranks > 1 else "single"


@cache
def shipped() -> dict[str, TrainerProgram]:
    """Return the trainers inside the images, by name."""
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
    """Return a trainer by name, or the one in a file whose name ends in ``.py``.

    Raises:
        BadInput: naming the choices.
    """
    if name.endswith(".py"):
        return TrainerProgram(as_name(PurePath(name).stem), (name,), own=True)
    try:
        return shipped()[name]
    except KeyError:
        raise BadInput(
            f"there is no trainer '{name}'{near(name, shipped())}; choices: {', '.join(shipped())}, "
            "or a file FILE.py",
            fix="for a command of your own: toolkit launch --image FILE.sif -- COMMAND",
        ) from None
