"""Name the sample that cannot be read, if TensorFlow does not name it."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import SupportsInt

from toolkit.trainers.data.sources import Data
from toolkit.trainers.trouble import Trouble

_KINDS = {"InvalidArgumentError", "NotFoundError", "PermissionDeniedError", "FailedPreconditionError"}
"""TensorFlow's errors that a file can cause; a lost rank causes other errors."""


@contextlib.contextmanager
def reading(data: Data, numbers: Iterable[SupportsInt]) -> Iterator[None]:
    """If the body fails, find the sample that caused the failure.

    Only sources with a method ``fault`` are checked; it returns a sentence about a sample, or nothing.

    Raises:
        Trouble: naming the sample.
    """
    try:
        yield
    except Exception as error:
        if type(error).__name__ in _KINDS and (said := _fault(data, numbers)):
            raise Trouble(said) from error
        raise


def _fault(data: Data, numbers: Iterable[SupportsInt]) -> str:
    ask = getattr(data, "fault", None)
    if ask is None:
        return ""
    return next((said for number in numbers if (said := ask(int(number)))), "")
