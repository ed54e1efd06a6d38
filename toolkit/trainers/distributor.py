"""Distribute the items that rank 0 lists, such as file names or numbers, among all ranks.

    from pathlib import Path

    from mpi4py import MPI

    @DataDistributor(MPI.COMM_WORLD, shutdown_on_error=True)
    def names():
        return sorted(Path("data").glob("*.tfrecord"))

    mine = names()          # each rank gets a share of the list that the function returned on rank 0

The decorator behaves like ``DataDistributor`` of the package HPC4Neuro, but shares no code with HPC4Neuro.
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
"""A function that returns the items to distribute, as a list or another collection with a length."""


class Communicator(Protocol):
    """The methods of mpi4py's communicator that this module calls, with mpi4py's names."""

    def Get_rank(self) -> int: ...  # noqa: N802
    def Get_size(self) -> int: ...  # noqa: N802
    def bcast(self, obj: str | None, root: int = 0) -> str | None: ...
    def scatter(self, sendobj: Sequence[bytes] | None, root: int = 0) -> bytes: ...
    def barrier(self) -> None: ...


class DataDistributionError(Exception):
    """Rank 0 could not list or distribute the items. All ranks raise this error with the same message."""


class DataDistributor:
    """A decorator for a function that lists items. On each rank, the decorated function returns this rank's
    share of the items.

    Only rank 0 calls the original function. toolkit deals the items to the ranks in turn. With 10 items and 4
    ranks, rank 0 gets items 0, 4 and 8, and rank 3 gets items 3 and 7. Each item goes to exactly one rank,
    and the numbers of items per rank differ by at most one.

    If rank 0 cannot list or distribute the items, all ranks raise :class:`DataDistributionError`. With
    ``shutdown_on_error``, rank 0 instead prints the error, and all ranks exit with status 1.
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
        """Decorate a function that lists items. With ``shuffle``, rank 0 shuffles the items before it
        distributes them.

        Raises:
            DataDistributionError: on all ranks, if the original function fails, returns an object without a
                length, or returns fewer items than ranks. The decorated function raises this error
                when you call it.
        """
        if loader is None:
            return functools.partial(self.__call__, shuffle=shuffle)
        if not callable(loader):
            raise TypeError(f"{loader!r} is not a function that lists items")

        @functools.wraps(loader)
        def mine(*args: P.args, **kwargs: P.kwargs) -> list[T]:
            hands: list[bytes] | None = None
            failure: str | None = None
            cause: Exception | None = None
            if self._communicator.Get_rank() == 0:
                try:
                    hands = self._dealt(loader(*args, **kwargs), shuffle)
                except Exception as error:  # noqa: BLE001 - report any error to the waiting ranks
                    failure, cause = _error_text(error), error
            # Rank 0 sends its error message, or None, to all ranks before it sends each rank's items.
            failure = self._communicator.bcast(failure, root=0)
            if failure is not None:
                self._fail(failure, cause)
            share: list[T] = pickle.loads(self._communicator.scatter(hands, root=0))
            return share

        return mine

    def _dealt(self, items: Iterable[T], shuffle: bool) -> list[bytes]:
        """Return a list with one entry per rank: the rank's pickled share of the items. Raise
        ``DataDistributionError`` if ``items`` has no length, or has fewer items than there are ranks.
        """
        size = self._communicator.Get_size()
        if not isinstance(items, Iterable) or not isinstance(items, Sized):
            raise DataDistributionError(
                f"the function returned {type(items).__name__}, which is not a list or another "
                "collection of items"
            )
        all_items = list(items)
        if len(all_items) < size:
            raise DataDistributionError(f"there are only {len(all_items)} items for {size} ranks")
        if shuffle:
            random.shuffle(all_items)
        return [pickle.dumps(all_items[rank::size]) for rank in range(size)]

    def _fail(self, message: str, cause: Exception | None) -> NoReturn:
        if not self._shutdown_on_error:
            raise DataDistributionError(message) from cause
        # Rank 0 prints the error before any rank exits, because a launcher stops all ranks at the first exit.
        self._communicator.barrier()
        if self._communicator.Get_rank() == 0:
            print(f"data distribution: {message}", file=sys.stderr, flush=True)
        self._communicator.barrier()
        sys.exit(1)


def _error_text(error: Exception) -> str:
    if isinstance(error, DataDistributionError):
        return str(error)
    return f"the function that lists the items failed: {type(error).__name__}: {error}"
