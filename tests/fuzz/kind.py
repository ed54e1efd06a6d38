"""Define a kind of case: how to make its input, and how to read it."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of case. ``make`` writes an input and returns its path, or returns the bytes of a file called
    ``file``.

    ``read`` gets the path and the number of the case, and returns the result in one word. An exception is a
    fault, except toolkit's own errors. ``weight`` is the relative frequency of the kind.
    """

    name: str
    weight: float
    make: Callable[[random.Random, Path], bytes | Path]
    read: Callable[[Path, int], str]
    file: str = "image"
