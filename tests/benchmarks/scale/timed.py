"""Time function calls, and print the times as a table."""

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    seconds: tuple[float, ...]
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def row(self) -> str:
        return f"| {self.what} | {shown(self.median)} | {self.note} |"


T = TypeVar("T")

HEAD = ("| what | median | |", "|---|---|---|")


def timed(what: str, call: Callable[[], T], note: Callable[[T], str], rounds: int = 5) -> Taken:
    """Time ``rounds`` calls of a function; ``note`` describes the last result."""
    seconds: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        answer = call()
        seconds.append(time.perf_counter() - began)
    return Taken(what=what, seconds=tuple(seconds), note=note(answer))


def shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
