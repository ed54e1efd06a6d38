"""Notice that a training has come to nothing: from a loss that is no number it does not come back."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy

    from toolkit.trainers.ranks.world import World


def refuse(world: "World", loss: float, epoch: int) -> None:
    """Raise on all ranks if the sum of their losses, in that epoch so far, is no finite number.

    Raises:
        Trouble: if it is not.
    """
    if not math.isfinite(loss):
        world.agree(diverged(epoch, "the loss is no number"))


def diverged(epoch: int, why: str) -> Trouble:
    """Return what to say of a training that diverged in that epoch, the first being 0."""
    return Trouble(f"the training diverged in epoch {epoch + 1}: {why}; lower --learning-rate", code=1)


def is_lost(arrays: "Iterable[numpy.ndarray]") -> bool:
    """Tell whether any number of a state is none: the last step before it is seen in no loss yet."""
    import numpy as np

    return any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for array in arrays)
