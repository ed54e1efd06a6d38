"""Test how JAX processes connect and exchange messages, with a fake JAX."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.tables import every_row
from toolkit.trainers.ranks.world import open_world
from toolkit.trainers.strategies import jax as strategy
from toolkit.trainers.trouble import Trouble

TWO = {"JAX_COORDINATOR_ADDRESS": "node1:29500", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}


@pytest.fixture
def join(monkeypatch):
    """Return a function that joins the JAX world with the given variables."""
    joined = []

    def initialize(*place, **more):
        joined.append((place, more["local_device_ids"]))

    fake = SimpleNamespace(
        distributed=SimpleNamespace(initialize=initialize),
        config=SimpleNamespace(update=lambda *_: None),
    )
    monkeypatch.setitem(sys.modules, "jax", fake)

    def run(variables, gpus=0):
        monkeypatch.setattr(strategy, "openable", lambda _: list(range(gpus)))
        for name in (
            "SLURM_STEP_NUM_TASKS",
            "SLURM_PROCID",
            "CUDA_VISIBLE_DEVICES",
            "SLURM_GPUS_ON_NODE",
            *TWO,
        ):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return open_world("jax")

    run.joined = joined
    return run


class Pair:
    def __init__(self, others):
        self._others = others

    def rows(self, row):
        other = self._others.pop(0)
        return np.stack([np.resize(other, len(row)), row])

    def from_first(self, rows):
        return [np.resize(self._others.pop(0), len(row)) for row in rows]


def test_a_rank_joins_at_the_coordinator_and_knows_its_place(join):
    world = join({**TWO, "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"})
    assert join.joined == [(("node1:29500", 2, 1), None)]
    assert (world.rank, world.size, world.local_rank, world.nodes, world.framework) == (1, 2, 1, 1, "jax")


@every_row(
    ("shown", "local", "own"),
    [({}, "1", [1]), ({"CUDA_VISIBLE_DEVICES": "1", "SLURM_GPUS_ON_NODE": "2"}, "1", [0])],
)
def test_a_rank_names_its_gpu_among_those_that_it_sees(join, shown, local, own):
    join({**TWO, **shown, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": "2"}, gpus=2)
    assert join.joined == [(("node1:29500", 2, 1), own)]


def test_one_process_joins_nothing(join):
    world = join({})
    assert (world.size, world.gather("a"), world.tell(3), world.total([2, 3])) == (1, ["a"], 3, [2.0, 3.0])
    assert join.joined == []


@every_row(
    ("variables", "said"),
    [
        (
            {"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "0"},
            "--strategy jax: JAX_COORDINATOR_ADDRESS not set; use the launch mode jax",
        ),
        (
            {"SLURM_STEP_NUM_TASKS": "4"},
            (
                "4 processes were started, but JAX_NUM_PROCESSES is 1; "
                "start the processes in the launch mode jax"
            ),
        ),
    ],
)
def test_ranks_that_cannot_join_are_one_line_and_status_2(join, variables, said):
    with pytest.raises(Trouble) as told:
        join(variables)
    assert (told.value.message, told.value.code) == (said, 2)


def test_an_image_without_jax_is_one_line_and_status_3(join, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(Trouble, match="JAX cannot be loaded: ") as told:
        join({})
    assert told.value.code == 3


@every_row("value", [None, ("a fault", 2), "x" * 1000])
def test_values_of_any_length_reach_the_other_ranks(join, value):
    world = join(TWO)
    text = strategy.pickle.dumps(value)
    first = [np.array([len(text)], np.int32), np.frombuffer(text, np.uint8)]
    world.layout = Pair(list(first))
    assert world.gather(("mine", 1)) == [value, ("mine", 1)]
    world.layout = Pair(list(first))
    assert world.tell("not of rank 0") == value


@every_row(("size", "length"), [(1, 256), (256, 256), (257, 512), (5000, 8192)])
def test_messages_have_few_lengths(size, length):
    row = strategy._row(b"a" * size, size)
    assert (len(row), row[:size].tobytes(), row[size:].any()) == (length, b"a" * size, False)
