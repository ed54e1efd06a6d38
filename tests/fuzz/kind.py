"""A kind of case: how its input is made, and how it is read."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Kind:
    """``make`` writes an input below a folder and returns its path, or returns the bytes of a file ``file``.

    ``read`` gets the path and the number of the case, and returns the result in one word. Every exception is
    a fault, except errors of toolkit. ``weight`` is how often the kind is made.
    """

    name: str
    weight: float
    make: Callable[[random.Random, Path], bytes | Path]
    read: Callable[[Path, int], str]
    file: str = "image"
