"""Test that ranks join one world, and that toolkit refuses separate worlds."""

import importlib
import os
import sys
from types import ModuleType, SimpleNamespace

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.ranks import world
from toolkit.trainers.ranks.spread import RankSpread
from toolkit.trainers.strategies import STRATEGIES
from toolkit.trainers.strategies.horovod import is_lost_rank
from toolkit.trainers.strategies.single import Single
from toolkit.trainers.trouble import Trouble


@pytest.fixture
def horovod(monkeypatch):
    """Return a function that opens a world in which a fake Horovod reports ``size`` ranks."""
    for name in [name for name in os.environ if name.startswith(("SLURM_", "PMI", "OMPI_", "HOROVOD_"))]:
        monkeypatch.delenv(name)

    done = []

    def allreduce(values, **_):
        done.append("met")
        return SimpleNamespace(numpy=lambda: values)

    def reports(size, **environment):
        reports.done = done
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        hvd = ModuleType("horovod.tensorflow.keras")
        numbers = {"rank": 0, "size": size, "local_rank": 0, "local_size": size, "cross_size": 1}
        vars(hvd).update({name: lambda value=value: value for name, value in numbers.items()})
        hvd.init, hvd.mpi_enabled = lambda: None, lambda: False
        hvd.shutdown = lambda: done.append("shutdown")
        tensorflow = SimpleNamespace(keras=hvd, Sum="sum", allreduce=allreduce)
        root = ModuleType("horovod")
        root.__version__, root.tensorflow = "0.28.1", tensorflow
        for name, module in (
            ("horovod", root),
            ("horovod.tensorflow", tensorflow),
            ("horovod.tensorflow.keras", hvd),
        ):
            monkeypatch.setitem(sys.modules, name, module)
        return world.open_world("horovod")

    return reports


@every_row(
    ("size", "environment", "said"),
    [
        (
            1,
            {"SLURM_STEP_NUM_TASKS": "2"},
            "a world of 1 where 2 processes were started: each rank is a world of size 1",
        ),
        (2, {"SLURM_STEP_NUM_TASKS": "4"}, "a world of 2 where 4 .* consists of several worlds of size 2"),
        (2, {"PMI_SIZE": "4", "SLURM_STEP_NUM_TASKS": "2"}, "a world of 2 where 4 "),
        (2, {"OMPI_COMM_WORLD_SIZE": "4"}, "a world of 2 where 4 "),
    ],
)
def test_worlds_that_are_smaller_than_what_was_started_are_refused(horovod, size, environment, said):
    with pytest.raises(Trouble, match=said):
        horovod(size, **environment)


@every_row(
    "environment",
    [
        {},
        {"SLURM_STEP_NUM_TASKS": "4"},
        # With mpirun on two nodes, SLURM_STEP_NUM_TASKS is the number of mpirun's daemons.
        {"OMPI_COMM_WORLD_SIZE": "4", "SLURM_STEP_NUM_TASKS": "2"},
        # A launcher that sets no variables runs inside a Slurm step of one task.
        {"SLURM_STEP_NUM_TASKS": "1"},
    ],
)
def test_a_world_of_all_ranks_is_joined(horovod, environment):
    assert horovod(4, **environment).size == 4


def test_only_the_first_process_says_that_the_world_came_apart(horovod, monkeypatch):
    slept = []
    monkeypatch.setattr(world, "import_tensorflow", lambda: None)
    monkeypatch.setattr(world.time, "sleep", slept.append)
    monkeypatch.setattr(world.os, "_exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))
    with pytest.raises(SystemExit) as end:
        horovod(2, SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="3")
    assert (end.value.code, slept) == (2, [world.WAIT_TO_BE_ENDED])


def test_one_process_is_a_world_of_its_own(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "HOROVOD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    alone = world.open_world("single")
    assert (alone.rank, alone.size, alone.nodes, alone.total([1.5, 2])) == (0, 1, 1, [1.5, 2.0])
    alone.agree(None)
    with pytest.raises(Trouble, match="wrong"):
        alone.agree(Trouble("wrong"))


@every_row(
    ("rank", "faults", "reports"),
    [
        (1, ["", "no disk", "no disk"], True),
        (2, ["", "no disk", "no disk"], False),
        (2, ["no data", "no disk", "no GPU"], True),
        (0, ["", "", "no GPU"], False),
    ],
)
def test_each_fault_is_reported_by_one_rank_and_stops_the_others(monkeypatch, rank, faults, reports):
    slept = []
    monkeypatch.setattr(world.time, "sleep", slept.append)
    monkeypatch.setattr(world.os, "_exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))
    ranks = Single()
    ranks.rank, ranks.size = rank, len(faults)
    ranks.gather = lambda own: [(text, 2) if text else None for text in faults]
    own = Trouble(faults[rank]) if faults[rank] else None
    with pytest.raises(Trouble if reports else SystemExit, match=faults[rank] if reports else "1"):
        ranks.agree(own)
    assert slept == ([] if reports else [world.WAIT_TO_BE_ENDED])


@every_row(
    ("kind", "said", "gone"),
    [
        ("UnknownError", "Connection closed by peer [Op:HorovodAllreduce] name: total", True),
        ("AbortedError", "Horovod has been shut down. This was caused by an exception", True),
        ("InvalidArgumentError", "Mismatched allreduce tensor shapes [Op:HorovodAllreduce]", False),
        ("UnknownError", "cuDNN failed to initialize", False),
    ],
)
def test_a_rank_that_is_gone_is_told_from_a_fault_of_the_trainer(kind, said, gone):
    assert is_lost_rank(type(kind, (Exception,), {})(said)) is gone


def test_a_rank_meets_all_others_before_it_ends_mpi_for_them_and_leaves(horovod, monkeypatch):
    monkeypatch.setattr(world.os, "_exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))
    ranks = horovod(4)
    with pytest.raises(SystemExit) as end:
        ranks.leave(75)
    assert (end.value.code, horovod.done) == (75, ["met", "shutdown"])


def test_one_process_leaves_with_the_code_and_tells_itself(monkeypatch):
    monkeypatch.delenv("SLURM_STEP_NUM_TASKS", raising=False)
    alone = Single()
    assert alone.tell({"a": 1}) == {"a": 1}
    with pytest.raises(SystemExit) as end:
        alone.leave(75)
    assert end.value.code == 75


@every_row("name", list(STRATEGIES))
def test_every_strategy_is_a_world_that_needs_no_tensorflow_to_be_looked_at(name):
    row = STRATEGIES[name]
    found = getattr(importlib.import_module(f"toolkit.trainers.strategies.{row.module}"), row.world)
    assert world.World in found.__mro__
    assert sys.modules.keys().isdisjoint({"tensorflow", "torch", "jax"})


def test_an_option_of_another_strategy_is_refused(monkeypatch):
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    with pytest.raises(Trouble, match="--sync: only for --strategy ps, not for single"):
        world.open_world("single", RankSpread(sync=True))


@every_row("count", ["2", "4"])
def test_mirrored_trains_in_one_process(monkeypatch, count):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", count)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    with pytest.raises(Trouble, match=f"{count} processes were started, but --strategy mirrored"):
        world.open_world("mirrored")


def test_a_world_of_several_devices_is_as_wide_as_all_of_them(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "HOROVOD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    one = world.open_world("mirrored", RankSpread(devices=3))
    assert (one.requested_devices, one.alone) == (3, True)
    one.devices = 3
    assert (one.width, one.averaged) == (3, 3)
