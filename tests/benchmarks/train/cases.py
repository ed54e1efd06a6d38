"""List the programs to time, and the pairs of programs to compare."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

INSIDE = "/bench"
DATA, FEW = "/data", "/few"
BATON = "/baton"
TRAINER = ("python", f"{INSIDE}/trainer.py")
_LONG = 40
"""The case ``dense, long`` trains on few images, and multiplies the number of epochs by this factor.

It needs many turns: its comparison must show a difference of one percent, but single turns differ by ten
percent.
"""
_ENDLESS = 1_000_000
TURNS, TURN = 12, 12.0
"""Number of turns of each ``held`` program, and seconds per turn.

A step takes two or three seconds, so a turn has several steps.
"""
_SHORT_STEPS, _SHORT_ITERATIONS = 2, 36
"""Training steps per turn, and number of turns, when the ResNet50 trainer and a plain Keras loop take turns.

A turn lasts a few seconds, because the machine's load changes within five seconds.
"""
_CNN = 3
"""The cases ``cnn`` and ``cnn, tutorial`` multiply the number of epochs by this factor, and train on few
images.
"""
_TWO = ("mpirun", "--bind-to", "none", "-n", "2")
_TURNS = 3
"""Number of runs of each case per round, if each turn runs a whole program.

A machine may be slow for a minute, and a single run would then show a false difference.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One program to time: ``copies`` run at once, each on ``cores`` cores, in the SIF or in a container.

    ``recipe`` names the case's image; if empty, the case runs in the image of the measurement.

    Cases with the same ``race`` take turns. By default, a turn is a whole program. Two cases with ``epochs``
    run at the same time: each trains one epoch, and then waits while the other trains one epoch. Two cases
    that are ``held`` also run at the same time: each computes for some seconds, and is then stopped.
    """

    name: str
    words: tuple[str, ...]
    copies: int = 1
    cores: int | None = None
    sif: bool = False
    race: str = ""
    epochs: bool = False
    held: bool = False
    recipe: str = ""

    @property
    def together(self) -> bool:
        return self.epochs or self.held


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two cases: ``ours`` should be ``wanted`` times as fast as ``theirs``; ``None`` means no target."""

    title: str
    ours: str
    theirs: str
    wanted: float | None = None


def trainer(name: str, module: str, *options: str, race: str = "", epochs: bool = False) -> Case:
    return Case(name, (*TRAINER, module, *options), race=race, epochs=epochs)


def in_turns(every: Sequence[Case]) -> Iterator[tuple[Case, ...]]:
    """Yield the programs of a round: single cases, or pairs of cases that take turns while both run."""
    for race, found in groupby(every, key=lambda case: case.race):
        together = tuple(found)
        if race and together[0].together:
            yield together
        else:
            yield from [(case,) for case in together] * (_TURNS if race else 1)


def cases(epochs: int) -> list[Case]:
    sizes = ("--epochs", str(epochs))
    dense = trainer("dense", "mnist", "--data", DATA, *sizes)
    long = trainer(
        "dense, long", "mnist", "--data", FEW, "--epochs", str(_LONG * epochs), race="SIF", epochs=True
    )
    wide = ("--batch-size", "128", "--learning-rate", "0.002")
    longer = _CNN * epochs
    small = ("mnist_cnn", "--data", FEW, "--batch-size", "32", "--epochs")
    cnn = trainer("cnn", *small, str(longer), race="cnn", epochs=True)
    wide_cnn = trainer("cnn, batch 128", "mnist_cnn", "--data", FEW, "--batch-size", "128", *sizes)
    resnet50 = ("imagenet_synthetic", "--warm-up", "2", "--batch-size", "8")
    short = ("--steps", str(_SHORT_STEPS), "--iterations", str(_SHORT_ITERATIONS))
    resnet = trainer("resnet50", *resnet50, *short, race="resnet50", epochs=True)
    endless = ("--output", "/tmp/out", "--steps", "1", "--iterations", str(_ENDLESS))
    one = ("python", "-u", "-m", f"toolkit.trainers.{resnet50[0]}", *resnet50[1:], *endless)
    alone = Case("resnet50, two separate processes", one, copies=2, cores=1, race="two ranks", held=True)
    return [
        Case("dense, tutorial", script("tutorial", "dense", DATA, epochs, 32)),
        dense,
        replace(dense, name="dense, XLA", words=(*dense.words, "--xla", "on")),
        replace(dense, name="dense, batch 128", words=(*dense.words, *wide)),
        long,
        replace(long, name="dense, long, SIF", sif=True),
        Case("cnn, tutorial", script("tutorial", "cnn", FEW, longer, 32), race="cnn", epochs=True),
        cnn,
        trainer("cnn, XLA", *small, str(epochs), "--xla", "on"),
        Case("cnn, tutorial, batch 128", script("tutorial", "cnn", FEW, epochs, 128)),
        wide_cnn,
        Case(
            "resnet50, Keras",
            script("plain_resnet", 8, _SHORT_STEPS, _SHORT_ITERATIONS),
            race="resnet50",
            epochs=True,
        ),
        resnet,
        alone,
        replace(alone, name="resnet50, two ranks", words=(*_TWO, *one, "--strategy", "horovod"), copies=1),
        Case("allreduce, Horovod's default", (*_TWO, *script("allreduce", "default")), race="allreduce"),
        Case("allreduce", (*_TWO, *script("allreduce", "ours")), race="allreduce"),
    ]


COMPARISONS = (
    Comparison("Dense network, batch 32, relative to the tutorial", "dense", "dense, tutorial", 2.0),
    Comparison(
        "Dense network, batch 128 and twice the learning rate, relative to the tutorial with batch 32",
        "dense, batch 128",
        "dense, tutorial",
        3.5,
    ),
    Comparison("Convolutional network, batch 32, relative to the tutorial", "cnn", "cnn, tutorial", 1.2),
    Comparison(
        "Convolutional network, batch 128, relative to the tutorial with batch 128",
        "cnn, batch 128",
        "cnn, tutorial, batch 128",
    ),
    Comparison("ResNet50, batch 8, relative to Keras' `model.fit`", "resnet50", "resnet50, Keras", 1.0),
    Comparison(
        "Dense network in the SIF, relative to the Docker container", "dense, long, SIF", "dense, long", 0.99
    ),
    Comparison(
        "ResNet50, two ranks, relative to two separate processes",
        "resnet50, two ranks",
        "resnet50, two separate processes",
        0.93,
    ),
    Comparison("Dense network with XLA, relative to no XLA", "dense, XLA", "dense"),
    Comparison("Convolutional network with XLA, relative to no XLA", "cnn, XLA", "cnn"),
)
ALLREDUCE = ("allreduce", "allreduce, Horovod's default")
"""Names of the allreduce cases, measured in milliseconds for 4 KB. The first should take at most 0.5 ms."""


def script(name: str, *words: str | int) -> tuple[str, ...]:
    return ("python", f"{INSIDE}/{name}.py", *map(str, words))
