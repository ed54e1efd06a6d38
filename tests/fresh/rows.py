"""Compare the entries of ``looked.toml`` with the newest releases in the package index."""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version as Number

from toolkit.knowledge.stacks import stacks
from toolkit.versions import parse

LOOKED = Path(__file__).parent / "looked.toml"
State = Literal["current", "newer", "old"]
"""State of an entry of ``looked.toml``, which sets ``days`` and ``why``.

``newer``: the index has a newer release, but the last comparison was at most ``days`` days ago, or ``why``
gives the reason to keep the known release. ``old`` is a failure: the last comparison is older.
"""


class Package(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    project: str
    looked: dt.date
    days: int
    component: str = ""
    newest: str = ""
    why: str = ""

    def known(self) -> str:
        versions = [row.version for row in stacks().rows(self.component) if row.provider == "pypi"]
        return max(versions, key=_number) if versions else self.newest


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of recipes/knowledge whose rows must be compared with web pages and release notes by hand."""

    file: str
    looked: dt.date
    days: int
    sources: tuple[str, ...]


class Looked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    package: tuple[Package, ...]
    table: tuple[Table, ...]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the output; ``age`` is the number of days since the last comparison."""

    name: str
    known: str
    newest: str
    age: int
    days: int
    state: State
    why: str = ""


def looked() -> Looked:
    return msgspec.toml.decode(LOOKED.read_bytes(), type=Looked)


def released(files: Iterable[str]) -> str:
    found = {number for number in map(_release, files) if number and not number.is_prerelease}
    return str(max(found)) if found else ""


def of_package(package: Package, newest: str, today: dt.date) -> Row:
    known, age = package.known(), (today - package.looked).days
    behind = bool(newest) and _number(newest).release > _series(_number(known), newest)
    late = behind and age > package.days and not package.why
    return Row(
        name=package.project,
        known=known,
        newest=newest or "not there",
        age=age,
        days=package.days,
        state="old" if late else "newer" if behind else "current",
        why=package.why if behind else "",
    )


def of_table(table: Table, today: dt.date) -> Row:
    age = (today - table.looked).days
    state: State = "old" if age > table.days else "current"
    return Row(name=table.file, known="", newest="", age=age, days=table.days, state=state)


def _series(known: Number, newest: str) -> tuple[int, ...]:
    """Return the numbers of ``known``, with the last numbers of ``newest`` if ``newest`` has more numbers.

    13.2 and 13.2.86 give (13, 2, 86), so 13.2 counts as current.
    """
    return (*known.release, *_number(newest).release[len(known.release) :])


def _number(version: str) -> Number:
    return parse(version) or Number("0")


def _release(file: str) -> Number | None:
    try:
        return parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
