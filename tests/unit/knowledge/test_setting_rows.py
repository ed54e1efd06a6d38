"""Test that names and values in rows about settings, clients and devices agree with the rows' texts."""

import re
from collections.abc import Callable, Iterator

from tests.unit.knowledge.rows import VERSION, Row, order, tables
from tests.unit.tables import every_row

PREFIXES = {
    "I_MPI_": "intelmpi",
    "MPICH_": "mpich",
    "MPIR_CVAR_": "mpich",
    "MV2_": "mvapich2",
    "OMPI_MCA_": "openmpi",
}
"""Prefixes of variables, and the MPI that reads the variables."""
NO = {"0", "no", "false", "off", "disabled", "disable"}
YES = {"1", "yes", "true", "on", "enabled", "enable"}
OLD_DEVICES = {"mrail", "nemesis", "psm", "sock"}
"""Modules of the device ch3 of MPICH and MVAPICH2. The device ch4 has the modules ofi and ucx."""
SETTINGS = tables("settings")["setting"]


def the_first_mpi_of_a_variable_reads_its_prefix() -> None:
    for row in SETTINGS:
        mpi = next((mpi for prefix, mpi in PREFIXES.items() if row["name"].startswith(prefix)), None)
        assert not mpi or mpi in row.get("implementation", [mpi]), row["name"]
        assert not re.match(r"(?!MV2_)M[A-Z]+\d_", row["name"]), row["name"]
        for generation in re.findall(r"_CH(\d)", row["name"]):
            assert generation == "4", row["name"]
            assert row.get("device", ["ch4"]) == ["ch4"]
        assert not re.search(r"PMI\d", row["name"]) or row["name"].endswith("PMI2")


def values_of_a_setting_mean_the_same() -> None:
    for row in SETTINGS:
        values = set(row.get("value", ()))
        if values & (NO | YES):
            assert values <= NO or values <= YES, row["name"]
            assert values & {"0", "1"}, row["name"]
        if numbers := [int(value[1:]) for value in values if re.fullmatch(r"v\d+", value)]:
            assert {number if number < 10 else number // 10 for number in numbers} == {2, 3, 4}


def a_pmix_client_of_a_setting_is_of_the_measured_releases() -> None:
    bounds = {row["client"] for row in SETTINGS if "client" in row}
    assert {order(bound)[0] for bounds_ in bounds for bound in VERSION.findall(bounds_)} == {2, 4, 5}


def numbers_of_ranks_are_in_the_texts() -> None:
    rows = [row for row in tables("reported")["reported"] if "ranks_per_node" in row]
    for row in rows:
        # Two is the smallest number of ranks that can disturb each other.
        words = rf"(?<!\d){row['ranks_per_node']}(?: and \d+| or more)? ranks"
        assert row["ranks_per_node"] == 2 or re.search(words, flat(row, "title", "source")), row["id"]


def a_number_in_an_id_is_a_release_of_the_texts() -> None:
    for row in tables("reported")["reported"]:
        releases = VERSION.findall(flat(row, "because", "title", "source"))
        for number in VERSION.findall(row["id"]):
            assert any(f"{release}.".startswith(f"{number}.") for release in releases), row["id"]


def a_device_has_the_generation_of_its_module() -> None:
    rows = [*tables("reported")["reported"], *tables("mpi")["shared_memory"], *tables("mpi")["defect"]]
    for device in (row.get("device", "ch4") for row in rows):
        generation, _, module = device.partition(":")
        assert generation == ("ch3" if module in OLD_DEVICES else "ch4"), device


def flat(row: Row, *keys: str) -> str:
    return " ".join(str(row.get(key, "")) for key in keys)


def rows_with_bounds() -> Iterator[tuple[Row, str, str]]:
    """Yield each row about launches, its texts, and its version bounds."""
    for file in ("mpi", "pmix", "reported", "runtime"):
        for table in tables(file).values():
            for row in table if isinstance(table, list) else ():
                bounds = flat(row, "versions", "client", "server", "launcher", "launcher_versions", "ucx")
                yield row, flat(row, "because", "title"), bounds


def an_upper_bound_is_the_release_before_which_the_text_speaks() -> None:
    for row, words, bounds in rows_with_bounds():
        for release in re.findall(
            r"(?:MPI|MPICH|UCX|PMIx|PMIx servers|clients|pyxis) before (\d[\d.]*\d|\d)", words
        ):
            starts = (f"{bound}." for bound in re.findall(rf"<({VERSION.pattern})", bounds))
            assert any(
                start.startswith((f"{release}.", f"{release}a", f"{release}.0a")) for start in starts
            ), row


def a_bound_of_a_client_is_the_release_of_the_text() -> None:
    for row, words, _ in rows_with_bounds():
        for release in map(int, re.findall(r"PMIx (\d) clients?\b", words)):
            client = row["client"]
            assert client in {f"<{release + 1}", f"<{release + 1}.0"} or client.startswith(f">={release}."), (
                words
            )
        for release in re.findall(r"clients from (\d[\d.]*\d) on", words):
            assert f">={release}" in row["client"], words
        if words.strip().endswith("of another release series") and row["client"].startswith("<"):
            assert row["client"].strip("<") in VERSION.findall(row["server"]), words
        for release in map(int, re.findall(r"with mpirun of Open MPI (\d)$", row.get("title", ""))):
            assert row["launcher_versions"] == f"<{release + 1}", words


def a_release_without_slurm_starts_ranks_as_singletons() -> None:
    mpi = tables("mpi")
    rows = [row for row in mpi["mismatch"] if row["outcome"] == "singletons" and "step" not in row]
    first = next(row for row in rows if row["implementation"] == "openmpi")
    assert mpi["release"]["ignores_slurm"]["versions"] == first["versions"]


def an_option_of_a_launcher_is_on() -> None:
    words = [word for row in tables("mpi")["agent"] for word in row["words"]]
    assert {word for word in words if word.isdigit()} == {"1"}


def a_server_that_names_its_components_is_the_first_of_the_source() -> None:
    row = tables("pmix")["insists"]
    under = row["source"].partition("under PMIx")[2]
    assert order(row["server"].strip(">="))[0] == order(VERSION.findall(under)[0])[0]


CHECKS = [
    the_first_mpi_of_a_variable_reads_its_prefix,
    values_of_a_setting_mean_the_same,
    a_pmix_client_of_a_setting_is_of_the_measured_releases,
    numbers_of_ranks_are_in_the_texts,
    a_number_in_an_id_is_a_release_of_the_texts,
    a_device_has_the_generation_of_its_module,
    an_upper_bound_is_the_release_before_which_the_text_speaks,
    a_bound_of_a_client_is_the_release_of_the_text,
    a_release_without_slurm_starts_ranks_as_singletons,
    an_option_of_a_launcher_is_on,
    a_server_that_names_its_components_is_the_first_of_the_source,
]


@every_row("check", CHECKS)
def test_rows_agree_with_their_texts(check: Callable[[], None]):
    check()
