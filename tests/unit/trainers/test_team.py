"""Test that ranks average gradients in threads, with a fake MPI communicator."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from toolkit.trainers.ranks import aggregate, team
from toolkit.trainers.ranks.team import GradientBuffer, Team
from toolkit.trainers.trouble import Trouble


class Together:
    def __init__(self, size):
        self.size, self.barrier = size, threading.Barrier(size, timeout=10)
        self.sent, self.freed = {}, 0

    def view(self, rank):
        return View(self, rank)


class View:
    def __init__(self, shared, rank):
        self._shared, self._rank = shared, rank

    def Get_size(self):  # noqa: N802 - of mpi4py
        return self._shared.size

    def Free(self):  # noqa: N802 - of mpi4py
        self._shared.freed += 1

    def mean_of(self, buffer):
        self._shared.sent[self._rank] = buffer.copy()
        self._shared.barrier.wait()
        buffer[:] = sum(self._shared.sent.values()) / self._shared.size
        self._shared.barrier.wait()


@pytest.fixture(autouse=True)
def _averaged(monkeypatch):
    def average(self, comm):
        comm.mean_of(self.buffer)
        self._done.set()

    monkeypatch.setattr(GradientBuffer, "average", average)


def run(ksteps, max_steps, values, freq=0):
    """Return the gradient that rank 0 uses in each step; rank 1 sends ten times rank 0's value."""
    shared = Together(2)

    def rank(number):
        own = Team(0, [shared.view(number)])
        own.configure(ksteps, max_steps, freq if number == 0 else 0)
        bucket = own.add_bucket()
        used = []
        for value in values:
            bucket.start(np.array([value * (10 if number else 1)], dtype="float32"))
            used.append(float(bucket.finish()[0]))
        own.end()
        return used

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(rank, range(2))
    assert one == other
    assert shared.freed == 2
    return one


def test_synchronous_steps_use_the_mean_of_their_own():
    assert run(4, 4, [2, 4, 6, 8]) == [11, 22, 33, 44]


def test_delayed_steps_use_that_of_the_step_before():
    assert run(0, 4, [2, 4, 6, 8]) == [0, 11, 22, 33]
    assert run(2, 4, [2, 4, 6, 8]) == [11, 22, 0, 33]


def test_where_steps_cease_to_be_delayed_nothing_is_lost():
    assert run(-2, 4, [2, 4, 6, 8]) == [0, 11, 22 + 33, 44]


def test_timing_is_told_every_so_many_steps_by_one_rank(capsys):
    run(4, 4, [1, 1, 1, 1], freq=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["team 0: step 2", "team 0: step 4"]
    assert all("of waiting for gradients" in line and line.endswith("MB sent a step") for line in lines)


def test_an_error_on_the_way_is_raised_where_it_is_waited_for():
    pending = GradientBuffer(np.zeros(1))
    pending._error = OSError("the network is gone")
    pending._done.set()
    with pytest.raises(OSError, match="the network is gone"):
        pending.wait()


def test_calls_in_another_order_than_that_of_the_life_cycle_are_told():
    with pytest.raises(Trouble, match="call init_mpi first"):
        aggregate.get_rank()
    with pytest.raises(Trouble, match="call init_mpi first"):
        aggregate.init(1, 1, 10)
    with pytest.raises(Trouble, match="transition must be 0"):
        aggregate.config_team(0, 1, 5, 5)
    with pytest.raises(Trouble, match="transition must be 0"):
        aggregate.config_team(0, 0, 6, 5)
    assert team.is_delayed(0, 0, 1)
