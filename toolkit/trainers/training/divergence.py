"""Detect a training that has diverged and stop it, because a training does not recover from a loss of NaN."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy

    from toolkit.trainers.ranks.world import World


def refuse(world: "World", loss: float, epoch: int) -> None:
    """Stop all ranks if ``loss`` is infinite or NaN. ``loss`` is the sum of losses of all ranks in an epoch,
    and ``epoch`` is the number of this epoch, counted from 0.

    Raises:
        Trouble: on rank 0, if ``loss`` is infinite or NaN.
    """
    if not math.isfinite(loss):
        world.agree(divergence_error(epoch, "the loss is infinite or NaN"))


def divergence_error(epoch: int, reason: str) -> Trouble:
    """Return the exception for a training that diverged in ``epoch``, counted from 0. ``reason`` is a clause
    for the message, such as ``a weight is not a number``.
    """
    return Trouble(f"the training diverged in epoch {epoch + 1}: {reason}; lower --learning-rate", code=1)


def is_lost(arrays: "Iterable[numpy.ndarray]") -> bool:
    """Return whether any array contains a NaN. The last update of an epoch may cause a NaN in a weight before
    any loss is NaN.
    """
    import numpy as np

    return any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for array in arrays)
