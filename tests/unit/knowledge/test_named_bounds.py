"""Test that a row's texts name each of its version bounds, or that another row starts or ends there."""

import re
from collections.abc import Iterator
from typing import Any

from tests.unit.knowledge.rows import VERSION, Row, order, tables

FILES = ("fabric", "mpi", "pmix", "remedies", "reported", "runtime", "settings")
TEXTS = ("because", "fix", "means", "need", "source", "text", "title", "why")
UNNAMED = {
    "mpi apart": ">=3.2",
    "mpi daemons": "<5 >=4.1",
    "mpi defect": ">=2021.1",
    "mpi libfabric": ">=2019",
    "mpi outside_step": ">=26.05",
    "mpi release": ">=4.2",
    "pmix caution": "<5.0.10a0 <5.0.2",
    "pmix mpirun": "<7 <8 >=5.0",
    "pmix shared": ">=3.2",
    "pmix srun": "<8",
    "pmix stores": ">=7.0a0",
    "reported reported": "<2.24 <3.9 <5 >=1.1 >=2.4 >=2021.1 >=3.1 >=4.0",
    "runtime hidden_gpus": "<2.5",
    "runtime retired": "<1.3 >=2.0",
    "runtime unreadable": ">=1.0",
    "runtime vulnerable": "<1.4.5 <4.4.2",
    "settings setting": "<2019 <5.0a0",
}
"""Exceptions: bounds that their row's texts do not name, and at which no other row starts or ends."""
BOUND = re.compile(rf"(>=|<=|==|<|>)\s*({VERSION.pattern})")


def flat(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from flat(one)
    elif isinstance(value, list):
        for one in value:
            yield from flat(one)
    else:
        yield str(value)


def rows() -> Iterator[tuple[str, Row, list[Row]]]:
    """Yield each row with version bounds: the name of its table, the row, and all rows of the table."""
    for file in FILES:
        for name, table in tables(file).items():
            several = table if isinstance(table, list) else [table]
            if name == "release":
                several = list(table.values())
            for row in several:
                if isinstance(row, dict) and BOUND.search(" ".join(bounds_text(row))):
                    yield f"{file} {name}", row, several


def bounds_text(row: Row) -> list[str]:
    return [text for key, value in row.items() if key not in TEXTS for text in flat(value)]


def named(sign: str, version: str, texts: str) -> bool:
    """Return whether the texts name the bound's release. For ``<4.2``, the series 4.1 counts too."""
    bound = order(version)
    while len(bound) > 1 and bound[-1] == 0:
        bound = bound[:-1]
    last = (*bound[:-1], bound[-1] - 1)
    for release in map(order, VERSION.findall(texts)):
        start = (*release, *[0] * len(bound))[: len(bound)]
        if start == bound or (sign == "<" and start == last):
            return True
    return False


def unnamed() -> Iterator[str]:
    for name, row, others in rows():
        texts = " ".join(text for key in TEXTS for text in flat(row.get(key, "")))
        near = " ".join(text for other in others if other is not row for text in bounds_text(other))
        for sign, version in BOUND.findall(" ".join(bounds_text(row))):
            next_ = rf"{'<' if sign == '>=' else '>='}\s*{re.escape(version)}(?![\d.])"
            if not named(sign, version, texts) and not re.search(next_, near):
                yield f"{name} {sign}{version}"


def test_a_bound_is_named_by_the_row_or_continued_by_another_row():
    assert len(list(rows())) > 150
    known = {f"{name} {bound}" for name, bounds in UNNAMED.items() for bound in bounds.split()}
    assert sorted(set(unnamed()) ^ known) == []


def test_a_number_in_an_id_is_in_the_other_texts_of_the_row():
    texts: dict[str, str] = {}
    for file in ("mpi", "reported", "signatures"):
        for row in (row for table in tables(file).values() if isinstance(table, list) for row in table):
            rest = " ".join(text for key, value in row.items() if key != "id" for text in flat(value))
            texts[row.get("id", "")] = f"{texts.get(row.get('id', ''), '')} {rest}"
    for name, text in texts.items():
        for number in VERSION.findall(name):
            assert re.search(rf"(?<!\d){re.escape(number)}(?!\d)", text), name
