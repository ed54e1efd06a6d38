"""Define a kind of case: how to make its input, and how to read it."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Kind:
    """How the fuzz test makes and reads the inputs of one kind.

    ``make`` writes an input and returns its path, or returns the bytes of a file with the name ``file``.
    ``read`` gets the path and the number of the case, and returns the result in one word. An exception is a
    fault, except toolkit's own errors. ``weight`` is the relative frequency of the kind.
    """

    name: str
    weight: float
    make: Callable[[random.Random, Path], bytes | Path]
    read: Callable[[Path, int], str]
    file: str = "image"
