"""Test the sources of rows that name the first release without a fault: code changes, or launches of several
releases.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.knowledge.runtime import runtime

CURED = {
    "mpi.toml": ("defect", "apart", "namespaces", "shared_memory", "libfabric"),
    "pmix.toml": ("caution", "insists"),
    "runtime.toml": ("defect",),
}
"""Tables whose rows describe faulty releases. For example, the bound ``<4.2`` means that 4.2 works."""
CODE = re.compile(r"[\w.-]+/[\w.-]+(:\S|#\d+| (commit|issues?|pull) )|docs/news/|NEWS |CVE-|release notes")
"""Text of a source that names the change in the code, or the report of the fault."""
MEASURED = {
    "mpi.toml apart >=4.1,<4.2": "4.2.3 and 4.3.2 were measured too, and fail otherwise: the next row",
    "mpi.toml defect <2019": "2019.4 on two and 2021.9 on one node work in the same cells",
    "mpi.toml namespaces <2019": "2019.4 and 2021.9 work in the same cell",
    "mpi.toml libfabric >=2019,<2021.18": "2021.4 to 2021.17 crash, 2021.18 and 2021.19 do not: two of each",
    "mpi.toml libfabric >=2019,<2021.6": "2021.3, 2021.5 and 2021.6 to 2021.17 were measured, and all fail",
    "mpi.toml libfabric >=2021.6,<2021.18": "2021.18 and 2021.19 were measured too, and fail otherwise",
}
"""Rows whose upper bound comes from launches, with the launched releases."""


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    for file, tables in CURED.items():
        text = (shipped_folder("recipes") / "knowledge" / file).read_text("utf-8")
        found = tomllib.loads(text)
        for table in tables:
            several = found.get(table, [])
            yield from (
                (f"{file} {table}", row) for row in (several if isinstance(several, list) else [several])
            )


def bounded() -> Iterator[tuple[str, str]]:
    for name, row in rows():
        for key in ("versions", "client", "ucx", "runtime"):
            if "<" in str(row.get(key, "")):
                yield f"{name} {row[key]}", row.get("source", "")


@every_row("row", [f"{name} | {source}" for name, source in bounded()])
def test_a_fault_ends_at_a_release_for_a_cause_or_by_launches_on_both_sides(row: str):
    name, _, source = row.partition(" | ")
    assert CODE.search(source) or name in MEASURED, row


def test_the_list_names_rows_that_are_there_and_need_it():
    needed = {name for name, source in bounded() if not CODE.search(source)}
    assert set(MEASURED) == needed
    assert len(list(bounded())) >= 12


RANGE = re.compile(r">=\s*(\d[\d.]*)(?:(?:a|b|rc)\d+)?\s*,\s*<=?\s*(\d[\d.]*)")
GPUS = tomllib.loads((shipped_folder("recipes") / "knowledge" / "cuda.toml").read_text("utf-8"))["gpu"]


def ranges() -> Iterator[tuple[str, str, str]]:
    for file in sorted((shipped_folder("recipes") / "knowledge").glob("*.toml")):
        for lower, upper in RANGE.findall(file.read_text("utf-8")):
            yield file.name, lower, upper


def test_every_range_of_releases_contains_a_release():
    def order(release: str) -> tuple[int, ...]:
        return tuple(map(int, release.strip(".").split(".")))

    found = list(ranges())
    assert len(found) > 100
    assert [one for one in found if order(one[1]) > order(one[2])] == []


def test_the_source_of_a_gpu_names_its_first_and_last_cuda():
    named = [(row["name"], row[key]) for row in GPUS for key in ("first", "last") if key in row]
    sources = {row["name"]: row["source"] for row in GPUS}
    assert [(name, release) for name, release in named if release not in sources[name]] == []


def test_the_oldest_kernel_for_a_compression_is_the_kernel_of_the_source():
    rows = runtime().compression
    assert [row.name for row in rows if not row.source.startswith(f"Linux {row.kernel}: ")] == []
