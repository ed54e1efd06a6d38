"""Test the data distributor with threads as ranks and a fake mpi4py; image tests use the real mpi4py."""

import random
import threading

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.distributor import DataDistributionError, DataDistributor


class World:
    def __init__(self, size):
        self.size, self.slot = size, None
        self.gate = threading.Barrier(size, timeout=5)


class Rank:
    def __init__(self, world, rank):
        self._world, self._rank = world, rank

    def Get_rank(self):  # noqa: N802
        return self._rank

    def Get_size(self):  # noqa: N802
        return self._world.size

    def bcast(self, obj, root=0):
        if self._rank == root:
            self._world.slot = obj
        self._world.gate.wait()
        found = self._world.slot
        self._world.gate.wait()
        return found

    def scatter(self, sendobj, root=0):
        return self.bcast(sendobj, root)[self._rank]

    def barrier(self):
        self._world.gate.wait()


def on_ranks(size, loader, *args, shuffle=False, shutdown=False):
    world, found = World(size), [None] * size

    def act(rank):
        distributor = DataDistributor(Rank(world, rank), shutdown_on_error=shutdown)
        try:
            found[rank] = distributor(loader, shuffle=shuffle)(*args)
        except BaseException as error:  # noqa: BLE001 - SystemExit too
            found[rank] = error

    threads = [threading.Thread(target=act, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@every_row("size", [1, 2, 3, 4])
@every_row("count", [4, 5, 10, 11, 100])
def test_every_item_is_given_to_one_rank_and_none_has_two_more_than_another(size, count):
    items = [f"file-{number}" for number in range(count)]
    found = on_ranks(size, lambda: items)
    assert found == [items[rank::size] for rank in range(size)]
    assert max(map(len, found)) - min(map(len, found)) <= 1


@every_row("size", [1, 2, 3, 4])
def test_shuffled_items_are_given_once_too(size):
    random.seed(1)
    found = on_ranks(size, lambda: range(50), shuffle=True)
    assert sorted(item for share in found for item in share) == list(range(50))
    assert found != [list(range(50))[rank::size] for rank in range(size)]


def test_only_the_first_rank_calls_the_function():
    called = []
    on_ranks(4, lambda start: called.append(threading.get_ident()) or range(start, start + 8), 3)
    assert len(called) == 1


def test_arguments_and_name_are_kept():
    @DataDistributor(Rank(World(1), 0))
    def names(count, *, ending):
        """Return names."""
        return [f"{number}{ending}" for number in range(count)]

    assert names(2, ending=".jpg") == ["0.jpg", "1.jpg"]
    assert (names.__name__, names.__doc__) == ("names", "Return names.")


def test_options_may_come_before_the_function():
    @DataDistributor(Rank(World(1), 0))(shuffle=True)
    def numbers():
        return range(30)

    random.seed(1)
    assert sorted(numbers()) == list(range(30)) != numbers()


def failing():
    raise FileNotFoundError(2, "No such file or directory", "data")


@every_row(
    ("loader", "said"),
    [
        (failing, r"FileNotFoundError: \[Errno 2\] No such file or directory: 'data'"),
        (lambda: 7, "returned int, which is not a list or another collection of items"),
        (lambda: None, "returned NoneType, which is not a list or another collection of items"),
        (
            lambda: (one for one in range(9)),
            "returned generator, which is not a list or another collection of items",
        ),
        (lambda: range(2), "there are only 2 items for 3 ranks"),
        (list, "there are only 0 items for 3 ranks"),
        (lambda: [threading.Lock()] * 3, "cannot pickle"),
    ],
)
def test_an_error_of_the_first_rank_is_raised_on_all(loader, said):
    found = on_ranks(3, loader)
    assert [type(one) for one in found] == [DataDistributionError] * 3
    assert len({str(one) for one in found}) == 1
    with pytest.raises(DataDistributionError, match=said):
        raise found[2]


def test_the_first_rank_has_the_cause():
    found = on_ranks(2, failing)
    assert isinstance(found[0].__cause__, FileNotFoundError)
    assert found[1].__cause__ is None


def test_an_error_ends_all_ranks_and_is_said_once(capsys):
    found = on_ranks(3, failing, shutdown=True)
    assert [(type(one), one.code) for one in found] == [(SystemExit, 1)] * 3
    told = capsys.readouterr().err
    assert told.count("data distribution: the function that lists the items failed: FileNotFoundError") == 1
    assert told.count("\n") == 1


def test_what_is_no_function_is_refused_at_once():
    with pytest.raises(TypeError, match="is not a function that lists items"):
        DataDistributor(Rank(World(1), 0))(["a", "b"])
