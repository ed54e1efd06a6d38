"""Test that the tables of releases agree with each other, and that their releases are in order."""

from collections.abc import Callable
from itertools import pairwise

from tests.unit.knowledge.rows import VERSION, ascend, order, series, tables, text
from tests.unit.tables import every_row

MPI, PMIX, CUDA, USUAL = tables("mpi"), tables("pmix"), tables("cuda"), tables("usual")
FILES_OF = {**MPI["library_file"], "pmix": PMIX["library_file"]}
BUNDLED: dict[str, str] = MPI["bundled_pmix"]
DRIVERS: dict[str, str] = CUDA["toolkit_driver"]["minimum"]
MAJOR_DRIVERS: dict[str, str] = CUDA["major_driver"]["minimum"]


@every_row("library", FILES_OF)
def test_a_newer_library_file_is_of_a_newer_release(library: str):
    names, releases = list(FILES_OF[library]), list(FILES_OF[library].values())
    assert ascend([name.partition(".so.")[2] for name in names])
    assert ascend(releases)


@every_row("library", ["openmpi", "mpich"])
def test_library_files_of_one_series_are_of_one_series_of_releases(library: str):
    files = {tuple(order(name.partition(".so.")[2])[:2]): set() for name in FILES_OF[library]}
    for name, release in FILES_OF[library].items():
        files[order(name.partition(".so.")[2])[:2]].add(series(release))
    assert [found for found in files.values() if len(found) > 1] == []
    assert len({next(iter(found)) for found in files.values()}) == len(files)


def the_newest_pmix_of_a_file_is_named_by_a_source() -> None:
    newest = list(PMIX["library_file"].values())[-1]
    assert f"v{newest}" in text("pmix")


def open_mpi_bundles_a_pmix_that_is_not_newer_than_itself() -> None:
    assert ascend(list(BUNDLED))
    assert [mpi for mpi, pmix in BUNDLED.items() if order(pmix)[0] > order(mpi)[0]] == []


def a_newer_open_mpi_of_a_series_does_not_bundle_an_older_pmix() -> None:
    for (old, before), (new, after) in pairwise(BUNDLED.items()):
        if series(old) == series(new):
            assert order(before) <= order(after), new
        assert order(before)[0] <= order(after)[0], new


def a_newer_cuda_needs_a_newer_driver() -> None:
    assert ascend(list(DRIVERS))
    assert ascend(list(DRIVERS.values()))
    assert ascend(list(MAJOR_DRIVERS.values()))


def minor_version_compatibility_begins_with_the_branch_of_the_first_minor_release() -> None:
    for major, driver in MAJOR_DRIVERS.items():
        assert order(driver)[0] == order(DRIVERS[f"{major}.0"])[0]


BRANCHES = {order(driver)[0] for driver in (*DRIVERS.values(), *MAJOR_DRIVERS.values())}
OTHER_BRANCHES = {565}
"""Driver branches that work with CUDA compatibility packages, but came with no CUDA release."""


@every_row("row", CUDA["compat"], ids=lambda row: row["cuda"])
def test_the_drivers_of_a_cuda_compat_are_older_branches_in_order(row: dict[str, list[str]]):
    starts = [VERSION.findall(bound)[0] for bound in row["drivers"]]
    assert ascend(starts)
    assert {order(start)[0] for start in starts} <= BRANCHES | OTHER_BRANCHES
    for bound in row["drivers"][:-1]:
        low, high = VERSION.findall(bound)
        assert order(high) == (order(low)[0] + 1,)
    assert len(VERSION.findall(row["drivers"][-1])) == 1


def the_rows_of_cuda_compat_are_releases_with_a_driver_in_order() -> None:
    releases = [row["cuda"] for row in CUDA["compat"]]
    assert ascend(releases)
    assert set(releases) <= set(DRIVERS)


def the_gpu_code_of_tensorflow_is_for_known_gpus_and_compilers() -> None:
    known = {row["compute"] for row in CUDA["gpu"]}
    ranges = [VERSION.findall(row["versions"]) for row in CUDA["tensorflow"]]
    assert [high for _, high in ranges[:-1]] == [low for low, _ in ranges[1:]]
    for row, (low, high) in zip(CUDA["tensorflow"], ranges, strict=True):
        named = [series(release) for release in VERSION.findall(row["source"])]
        assert series(low) == named[0]
        assert order(high) == (named[-1][0], named[-1][1] + 1)
        assert row["cuda"] in DRIVERS
        assert {*row["native"], row["ptx"]} <= known
        assert ascend(row["native"])
    for key in ("cuda", "ptx"):
        releases = [order(row[key]) for row in CUDA["tensorflow"]]
        assert releases == sorted(releases)


def the_release_without_a_fault_of_nccl_ends_the_faulty_releases() -> None:
    for row in CUDA["nccl_bad"]:
        low, high = VERSION.findall(row["versions"])
        assert high == row["instead"]
        assert low in row["source"] or row["instead"] in row["because"]
        assert series(low) == series(high)


def each_cuda_has_newer_nccl_and_the_source_names_its_first_release() -> None:
    majors = [str(order(cuda)[0]) for cuda in MAJOR_DRIVERS]
    assert [row["cuda"] for row in CUDA["nccl"]] == majors
    lows = [VERSION.findall(row["versions"])[0] for row in CUDA["nccl"]]
    assert ascend(lows)
    for row, low in zip(CUDA["nccl"], lows, strict=True):
        assert series(low) in {series(named) for named in VERSION.findall(row["source"])}


def bounds_of_gpus_are_compute_capabilities_of_a_gpu() -> None:
    known = {order(row["compute"]) for row in CUDA["gpu"]}
    for table in ("nccl_gpu", "cudnn_gpu", "pytorch_gpu"):
        for row in CUDA[table]:
            bound, release = VERSION.findall(row["compute"])[0], VERSION.findall(row["versions"])[0]
            assert series(bound) in known
            assert release in row["source"]


def the_first_rocm_of_a_gpu_is_the_release_of_the_source() -> None:
    for row in CUDA["amd_gpu"]:
        assert f"ROCm {row['first']}.0 " in row["source"]


BASES = {row["name"]: row for row in tables("stacks")["base"]}


def a_distribution_has_one_c_library_in_all_tables() -> None:
    usual = {
        f"{name} {release['release']}": release
        for row in USUAL["distribution"]
        for name in row["names"]
        for release in row["releases"]
    }
    by_title = {"Ubuntu": "ubuntu", "Debian": "debian", "Enterprise": "rhel"}
    for row in tables("buildfiles")["distribution"]:
        words = row["title"].split()
        assert usual[f"{by_title[words[0]]} {words[-1]}"]["glibc"] == row["glibc"], row["title"]
    for row in USUAL["distribution"]:
        for key in ("release", "kernel", "glibc"):
            assert ascend([release[key] for release in row["releases"]]), (row["names"], key)
    host, image = USUAL["host"], USUAL["image"]
    assert (host["kernel"], host["glibc"]) == tuple(
        usual[host["distribution"]][k] for k in ("kernel", "glibc")
    )
    assert image["glibc"] == usual[image["distribution"]]["glibc"]
    assert order(image["glibc_needed"]) <= order(image["glibc"])


def debian_has_one_release_of_each_component_in_all_tables() -> None:
    stacks = tables("stacks")
    for row in tables("buildfiles")["distribution"]:
        for base in BASES.values():
            if base["release"] not in row["names"] or not base["name"].startswith("debian:"):
                continue
            assert base["glibc"] == row["glibc"]
            for component in ("openmpi", "mpich", "pmix"):
                of_base = [
                    one["version"]
                    for one in stacks[component]
                    if one["provider"] == "debian" and one["requires"]["base"] == base["name"]
                ]
                assert row.get(component, of_base[0]) == of_base[0], (row["title"], component)


CHECKS = [
    the_newest_pmix_of_a_file_is_named_by_a_source,
    open_mpi_bundles_a_pmix_that_is_not_newer_than_itself,
    a_newer_open_mpi_of_a_series_does_not_bundle_an_older_pmix,
    a_newer_cuda_needs_a_newer_driver,
    minor_version_compatibility_begins_with_the_branch_of_the_first_minor_release,
    the_rows_of_cuda_compat_are_releases_with_a_driver_in_order,
    the_gpu_code_of_tensorflow_is_for_known_gpus_and_compilers,
    the_release_without_a_fault_of_nccl_ends_the_faulty_releases,
    each_cuda_has_newer_nccl_and_the_source_names_its_first_release,
    bounds_of_gpus_are_compute_capabilities_of_a_gpu,
    the_first_rocm_of_a_gpu_is_the_release_of_the_source,
    a_distribution_has_one_c_library_in_all_tables,
    debian_has_one_release_of_each_component_in_all_tables,
]


@every_row("check", CHECKS)
def test_the_tables_of_releases_agree(check: Callable[[], None]):
    check()
