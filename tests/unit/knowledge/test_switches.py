"""Test that a row states a yes/no key only if its value is unusual."""

from collections.abc import Callable, Iterator

from tests.unit.knowledge.rows import FILES, Row, tables
from tests.unit.tables import every_row

WITHOUT = {"batch", "card", "forked", "found", "mpiexec", "named", "ssh"}
"""Yes/no keys that rows state only as false. Rows state other keys only as true, except the keys in ``BOTH``.
"""
BOTH = {"alone", "data_centre", "own_shm", "step"}
"""Yes/no keys that some rows state as true and other rows state as false."""


def switches(table: Row, key: str = "") -> Iterator[tuple[str, Row, str]]:
    """Yield the table's path, the table and the key for each yes/no key."""
    for name, value in table.items():
        if isinstance(value, bool):
            yield key, table, name
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from switches(inner, f"{key}.{name}")


def a_row_is_without_something_only_if_its_key_says_so() -> None:
    names = {file.stem for file in FILES} - {"examples", "usual"}
    stated = [found for name in sorted(names) for found in switches(tables(name), name)]
    assert len(stated) > 150
    wrong = [
        (path, key) for path, row, key in stated if key not in BOTH and row[key] is not (key not in WITHOUT)
    ]
    assert wrong == []


def a_row_for_ranks_in_a_step_reads_the_step() -> None:
    rows = [row for row in tables("mpi")["mismatch"] if "step" in row]
    assert [
        row["because"] for row in rows if row["step"] is not ("from the Slurm step" in row["because"])
    ] == []
    assert {row["step"] for row in rows} == {True, False}


def mpich_has_own_shared_memory_unless_the_row_bounds_ucx() -> None:
    rows = [
        row for table in ("namespaces", "shared_memory") for row in tables("mpi")[table] if "own_shm" in row
    ]
    assert [row for row in rows if row["own_shm"] is ("ucx" in row)] == []


def ranks_alone_without_libfabric_crash_and_other_ranks_have_more_rows() -> None:
    rows = tables("mpi")["libfabric"]
    assert [row["alone"] for row in rows if "alone" in row] == [True, False, False, False]


def the_usual_cluster_is_open_and_new() -> None:
    usual = tables("usual")
    assert [key for _, row, key in switches(usual["host"]) if row[key]] == ["user_namespaces", "munge"]
    closed = [row for row in usual["distribution"] for one in row["releases"] if "user_namespaces" in one]
    assert [row["names"][0] for row in closed] == ["rhel"]
    assert [key for row in closed for _, one, key in switches(row) if one[key]] == []
    for row in usual["question"]:
        assert True not in row["values"] or not usual["host"]["runtime"]["setuid"]


CHECKS = [
    a_row_is_without_something_only_if_its_key_says_so,
    a_row_for_ranks_in_a_step_reads_the_step,
    mpich_has_own_shared_memory_unless_the_row_bounds_ucx,
    ranks_alone_without_libfabric_crash_and_other_ranks_have_more_rows,
    the_usual_cluster_is_open_and_new,
]


@every_row("check", CHECKS)
def test_a_switch_states_the_unusual_value(check: Callable[[], None]):
    check()
