"""List the programs in PyTorch and JAX to time, and the pairs of programs to compare."""

from collections.abc import Iterator

from tests.benchmarks.train.cases import DATA, TRAINER, Case, Comparison, script

_BATCH = 4
"""Batch size of each rank of ResNet50; it is small, so that a turn has several steps."""

_NAMED = "echo 127.0.0.1 $(hostname) >> /etc/hosts; "
"""A command that gives the container's name an address: Gloo and torchrun look up the name, and the container
has no network.
"""

_JAX_RANKS = " & ".join(
    f"JAX_COORDINATOR_ADDRESS=127.0.0.1:29611 JAX_NUM_PROCESSES=2 JAX_PROCESS_ID={rank} "
    f'LOCAL_RANK={rank} LOCAL_WORLD_SIZE=2 "$@"'
    for rank in range(2)
)
_FRAMEWORKS = {
    "PyTorch": (
        "torch-cpu",
        "ddp",
        ("sh", "-c", f'{_NAMED}exec torchrun --standalone --nproc-per-node 2 --no-python "$@"', "sh"),
    ),
    "JAX": ("jax-cpu", "jax", ("sh", "-c", f"{_NAMED}{_JAX_RANKS} & wait", "sh")),
}
"""For each framework: the recipe of its image, the strategy of the trainer, and the words that start two
ranks.
"""


def peer_cases(epochs: int) -> list[Case]:
    return [case for name in _FRAMEWORKS for case in _of_framework(name, epochs)]


def _of_framework(name: str, epochs: int) -> Iterator[Case]:
    recipe, strategy, two = _FRAMEWORKS[name]

    def case(suffix: str, words: tuple[str, ...], copies: int = 1, *, held: bool) -> Case:
        title, race = f"{suffix}, {name}", f"{held} {name}"
        cores = 1 if held else None
        return Case(title, words, copies, cores, race=race, epochs=not held, held=held, recipe=recipe)

    train = (*TRAINER, "mnist", "--data", DATA, "--epochs", str(epochs), "--strategy", strategy)
    step = script("resnet50", strategy, _BATCH)
    yield case("dense, tutorial", script(f"plain_{name.lower()}", DATA, epochs, 32), held=False)
    yield case("dense", train, held=False)
    yield case("resnet50, two separate processes", step, 2, held=True)
    yield case("resnet50, two ranks", (*two, *step), held=True)


PEER_COMPARISONS = tuple(
    comparison
    for name in _FRAMEWORKS
    for comparison in (
        Comparison(
            f"Dense network, batch 32, relative to the tutorial, {name}",
            f"dense, {name}",
            f"dense, tutorial, {name}",
            1.0,
        ),
        Comparison(
            f"ResNet50, two ranks, relative to two separate processes, {name}",
            f"resnet50, two ranks, {name}",
            f"resnet50, two separate processes, {name}",
        ),
    )
)
