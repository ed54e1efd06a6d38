"""The tables of the knowledge files as plain dictionaries, as tomllib reads them."""

import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from toolkit.data import shipped_folder

FILES = sorted((shipped_folder("recipes") / "knowledge").glob("*.toml"))
VERSION = re.compile(r"\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?")
ARCHITECTURES = {"x86_64", "aarch64", "ppc64le"}

Row = dict[str, Any]


def text(name: str) -> str:
    return next(file for file in FILES if file.stem == name).read_text("utf-8")


def tables(name: str) -> dict[str, Any]:
    return tomllib.loads(text(name))


def order(version: str) -> tuple[int, ...]:
    """Return the numbers of a version for comparisons; ``5.0rc1`` counts as ``5.0``."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[a-z]", version)[0])))


def series(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version, such as (4, 1) for ``4.1.6``."""
    return (*order(version), 0)[:2]


def ascend(versions: list[str]) -> bool:
    return all(order(old) < order(new) for old, new in pairwise(versions))


def locks() -> Iterator[str]:
    for file in sorted(Path(shipped_folder("recipes")).glob("*.lock.json")):
        yield file.read_text("utf-8")
