"""Share the items that one rank lists out to all ranks: file names, numbers, anything that can be sent.

    from pathlib import Path

    from mpi4py import MPI

    @DataDistributor(MPI.COMM_WORLD, shutdown_on_error=True)
    def names():
        return sorted(Path("data").glob("*.tfrecord"))

    mine = names()          # on each rank: its own share of what the function returned on rank 0

The semantics are those of the ``DataDistributor`` of HPC4Neuro; the code is our own.
"""

import functools
import pickle
import random
import sys
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, NoReturn, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")

Loader = Callable[P, Iterable[T]]
"""Lists the items; what it returns has a length."""


class Communicator(Protocol):
    """What is needed of a communicator: these of mpi4py's methods, with their names."""

    def Get_rank(self) -> int: ...  # noqa: N802
    def Get_size(self) -> int: ...  # noqa: N802
    def bcast(self, obj: str | None, root: int = 0) -> str | None: ...
    def scatter(self, sendobj: Sequence[bytes] | None, root: int = 0) -> bytes: ...
    def barrier(self) -> None: ...


class DataDistributionError(Exception):
    """The items could not be listed or shared out; all ranks raise it, with the message of rank 0."""


class DataDistributor:
    """Makes of a function that lists items one that returns this rank's share of them.

    Rank 0 alone calls the function. Its items are dealt like cards: with 10 of them and 4 ranks, rank 0 gets
    items 0, 4 and 8, and rank 3 gets 3 and 7. So no item is lost or given twice, and no rank has more than
    one more than another.

    With ``shutdown_on_error`` an error ends all ranks with status 1, after rank 0 has said what it is; else
    it is raised on all of them.
    """

    def __init__(self, communicator: Communicator, shutdown_on_error: bool = False) -> None:
        self._communicator, self._shutdown_on_error = communicator, shutdown_on_error

    @overload
    def __call__(self, loader: Loader[P, T], shuffle: bool = False) -> Callable[P, list[T]]: ...
    @overload
    def __call__(
        self, loader: None = None, shuffle: bool = False
    ) -> Callable[[Loader[P, T]], Callable[P, list[T]]]: ...
    def __call__(self, loader: Loader[P, T] | None = None, shuffle: bool = False) -> Any:
        """Decorate a function; ``shuffle`` mixes the items before they are dealt.

        Raises:
            DataDistributionError: on all ranks, when the new function is called, if the old one fails, or
                returns no items that can be counted, or fewer than there are ranks.
        """
        if loader is None:
            return functools.partial(self.__call__, shuffle=shuffle)
        if not callable(loader):
            raise TypeError(f"{loader!r} is no function that lists items")

        @functools.wraps(loader)
        def mine(*args: P.args, **kwargs: P.kwargs) -> list[T]:
            hands: list[bytes] | None = None
            failure: str | None = None
            cause: Exception | None = None
            if self._communicator.Get_rank() == 0:
                try:
                    hands = self._dealt(loader(*args, **kwargs), shuffle)
                except Exception as error:  # noqa: BLE001 - the other ranks wait, and must hear of any error
                    failure, cause = _said(error), error
            # All learn first whether there are items, and then each gets its own only.
            failure = self._communicator.bcast(failure, root=0)
            if failure is not None:
                self._fail(failure, cause)
            share: list[T] = pickle.loads(self._communicator.scatter(hands, root=0))
            return share

        return mine

    def _dealt(self, items: Iterable[T], shuffle: bool) -> list[bytes]:
        """Return what each rank gets, as bytes: what cannot be sent is an error of rank 0 like any other."""
        size = self._communicator.Get_size()
        if not isinstance(items, Iterable) or not isinstance(items, Sized):
            raise DataDistributionError(f"the function returned no list of items but {type(items).__name__}")
        all_items = list(items)
        if len(all_items) < size:
            raise DataDistributionError(f"there are {len(all_items)} items for {size} ranks")
        if shuffle:
            random.shuffle(all_items)
        return [pickle.dumps(all_items[rank::size]) for rank in range(size)]

    def _fail(self, message: str, cause: Exception | None) -> NoReturn:
        if not self._shutdown_on_error:
            raise DataDistributionError(message) from cause
        # Said before any rank leaves: launchers end the others, and their output, with the first that does.
        self._communicator.barrier()
        if self._communicator.Get_rank() == 0:
            print(f"data distribution: {message}", file=sys.stderr, flush=True)
        self._communicator.barrier()
        sys.exit(1)


def _said(error: Exception) -> str:
    if isinstance(error, DataDistributionError):
        return str(error)
    return f"the function that lists the items failed: {type(error).__name__}: {error}"
