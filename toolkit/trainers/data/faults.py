"""Name the sample that could not be read, where TensorFlow says only that one could not."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import SupportsInt

from toolkit.trainers.data.sources import Data
from toolkit.trainers.trouble import Trouble

_KINDS = {"InvalidArgumentError", "NotFoundError", "PermissionDeniedError", "FailedPreconditionError"}
"""Errors of TensorFlow that a file may be the cause of; a rank that is gone is none of them."""


@contextlib.contextmanager
def reading(data: Data, numbers: Iterable[SupportsInt]) -> Iterator[None]:
    """Look for the one of these samples that is at fault, if what is done here fails.

    Only sources that can tell are asked, by their method ``fault``: a sentence about a sample, or nothing.

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
