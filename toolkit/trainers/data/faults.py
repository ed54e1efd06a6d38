"""Find the sample that a trainer cannot read. TensorFlow's error message does not always name this sample."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import SupportsInt

from toolkit.trainers.data.sources import Data
from toolkit.trainers.trouble import Trouble

_KINDS = {"InvalidArgumentError", "NotFoundError", "PermissionDeniedError", "FailedPreconditionError"}
"""The class names of the TensorFlow errors that a damaged file can cause. If another rank fails, TensorFlow
raises errors of other classes.
"""


@contextlib.contextmanager
def reading(data: Data, numbers: Iterable[SupportsInt]) -> Iterator[None]:
    """Run the body of the ``with`` statement. If TensorFlow cannot read a sample in the body, find the
    damaged sample. ``numbers`` are the numbers of the samples that the body reads.

    The search calls the method ``fault`` of ``data``, which returns an error message for a damaged sample. If
    ``data`` has no such method, or the search finds no damaged sample, raise the original error again.

    Raises:
        Trouble: if the search finds a damaged sample; the message names the sample.
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
