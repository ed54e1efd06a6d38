"""The trainers that come inside the images, as the launching side knows them: module and data set."""

from dataclasses import dataclass

from toolkit.errors import BadInput


@dataclass(frozen=True, slots=True)
class Trainer:
    """``module`` is run with ``python -m`` in the image; ``dataset`` is what ``toolkit data get`` fetches."""

    name: str
    module: str
    dataset: str

    def command(self, data: str, output: str, strategy: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command of one rank; later options win, so a person's own come last."""
        options = ("--data", data, "--output", output, "--strategy", strategy)
        return ("python", "-m", self.module, *options, *arguments)


TRAINERS: dict[str, Trainer] = {
    "mnist": Trainer("mnist", "toolkit.trainers.mnist", "mnist"),
}


def find(name: str) -> Trainer:
    """Return a trainer by name.

    Raises:
        BadInput: naming the choices.
    """
    try:
        return TRAINERS[name]
    except KeyError:
        raise BadInput(
            f"there is no trainer '{name}'; choices: {', '.join(TRAINERS)}",
            fix="for a command of your own: toolkit launch --image FILE.sif -- COMMAND",
        ) from None
