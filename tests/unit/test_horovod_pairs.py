"""Test that each tested pair of Horovod and framework releases has a stack, and that the page shows its
result.
"""

import msgspec

from tests.horovod.pairs import Learned, Pair, Tried, load, pairs
from tests.horovod.table import page
from tests.unit.tables import every_row
from toolkit.engine.solver.solve import solve
from toolkit.knowledge.stacks import stacks
from toolkit.model.solution import Solution

PAIR = Pair(name="tensorflow-9.9", want={"tensorflow": "9.9.*"})
EQUAL = tuple(Learned(way=way, ranks=2, between=0.0, from_one=1e-6) for way in ("mpirun", "gloo"))
TRIED = Tried(
    name="tensorflow-9.9",
    date="2026-11-26",
    versions={"tensorflow": "9.9.1", "python": "3.13", "base": "debian:trixie", "openmpi": "5.0.7"},
    patches=("horovod-0.28.1-gcc-14.patch",),
    built=True,
    learned=EQUAL,
)


def row(*tried):
    return page([PAIR], {one.name: one for one in tried}).partition("|---|")[2].splitlines()[1]


@every_row("name", [pair.name for pair in pairs()])
def test_every_pair_has_a_stack_with_horovod(name):
    pair = next(pair for pair in pairs() if pair.name == name)
    named = pair.recipe()
    found = solve(named.recipe, named.name, stacks())
    assert isinstance(found, Solution), found
    assert {"horovod", "openmpi", *pair.want} <= set(found.versions)


def test_a_pair_that_nobody_ran_says_so():
    assert row() == "| tensorflow 9.9.* | | | | | not run | not run | not run | |"


def test_a_pair_that_learned_the_same_says_how_far_apart():
    assert row(TRIED) == (
        "| tensorflow 9.9.1 | 3.13 | debian:trixie | 5.0.7 | gcc-14 | yes | equal (1e-06) | equal (1e-06) "
        "| 2026-11-26 |"
    )
    assert TRIED.equal


@every_row(
    "learned",
    [
        Learned(way="gloo", ranks=2, between=0.0, from_one=0.01),
        Learned(way="gloo", ranks=2, between=0.01, from_one=0.0),
        Learned(way="gloo", ranks=1, between=0.0, from_one=0.0),
    ],
)
def test_other_weights_or_another_world_are_not_equal(learned):
    tried = msgspec.structs.replace(TRIED, learned=(EQUAL[0], learned))
    assert not tried.equal
    assert "**different**" in row(tried)


def test_one_way_alone_is_not_enough():
    assert not msgspec.structs.replace(TRIED, learned=EQUAL[:1]).equal


def test_a_pair_that_failed_says_where_and_why():
    tried = msgspec.structs.replace(TRIED, built=False, learned=(), failure="horovod: failed\nerror: no THC")
    assert "| **failed** | not run | not run |" in row(tried)
    assert "What tensorflow-9.9 said:\n\n    horovod: failed\n    error: no THC\n" in page(
        [PAIR], {tried.name: tried}
    )
    later = msgspec.structs.replace(TRIED, learned=(), failure="mpirun took too long")
    assert "| yes | **failed** | **failed** |" in row(later)


def test_the_record_is_of_pairs_that_there_are():
    assert set(load()) <= {pair.name for pair in pairs()}
