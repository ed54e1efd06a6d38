"""List the trainings to launch, and the accuracy that each group of trainings must reach."""

from dataclasses import dataclass

SEEDS = (1, 2, 3)
STRATEGIES = {
    "single": (1, 1),
    "horovod": (2, 1),
    "mirrored": (1, 1),
    "multiworker": (2, 1),
    "mpi-aggregate": (2, 1),
    "hybrid": (2, 1),
    "ps": (2, 2),
}
"""Number of nodes, and of ranks per node, for each strategy.

``ps`` has two ranks per node, because a coordinator and a parameter server run beside the two workers.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One training. ``words`` are the trainer's options. ``wanted`` is the median accuracy that its group
    must reach; ``None`` means no requirement.
    """

    group: str
    trainer: str
    wanted: float | None
    nodes: int = 1
    ranks: int = 1
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def launch(self) -> tuple[str, ...]:
        shape = ("--nodes", str(self.nodes), "--ranks-per-node", str(self.ranks))
        return (self.trainer, *shape, *self.options, "--", *self.words)


@dataclass(frozen=True, slots=True)
class Reached:
    """The result of a training.

    ``image`` is the digest of the container image. ``images`` is the number of training samples of all ranks
    and epochs.
    """

    case: Case
    accuracy: float
    seconds: float
    world_size: int
    epochs: int
    batch_size: int
    images: int
    mode: str
    image: str


def cases() -> list[Case]:
    found = []
    for seed in SEEDS:
        words = ("--epochs", "4", "--seed", str(seed))
        found.append(Case("mnist, one rank", "mnist", 0.977, words=words))
        found.append(Case("mnist, two nodes", "mnist", 0.975, nodes=2, words=words))
    for name, (nodes, ranks) in STRATEGIES.items():
        options = ("--strategy", name)
        words = ("--epochs", "4", "--seed", "1", *(("--devices", "2") if name == "mirrored" else ()))
        found.append(Case(f"mnist, {name}", "mnist", None, nodes, ranks, options, words))
    classic = ("--model", "classic", "--epochs", "12", "--seed", "1")
    found.append(Case("mnist-cnn, classic, 12 epochs", "mnist-cnn", 0.991, words=classic))
    found.append(
        Case("cifar10, resnet8, 12 epochs", "cifar10", 0.80, words=("--epochs", "12", "--seed", "1"))
    )
    return found
