"""Test that numbers and names in the small knowledge tables agree with other rows, texts or documentation."""

import re
import resource
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from tests.unit.knowledge.rows import VERSION, order, series, tables, text
from tests.unit.tables import every_row

USUAL, RUNTIME, FABRIC = tables("usual"), tables("runtime"), tables("fabric")
COMPONENTS, FORMS, BUILDFILES = (tables(name) for name in ("components", "forms", "buildfiles"))
TRAINERS = Path(__file__).parents[3] / "toolkit" / "trainers"
POSITIONS = {
    "torch.distributed.init_process_group": "backend init_method timeout world_size rank store",
    "jax.distributed.initialize": "coordinator_address num_processes process_id",
    "torch.multiprocessing.spawn": "fn args nprocs join",
    "torch.utils.data.DataLoader": "dataset batch_size shuffle sampler batch_sampler num_workers",
}
"""The names of the first parameters of PyTorch's and JAX's functions, in the documented order."""
REASONS = [
    "NodesRequired",
    "QOSMinGRES",
    "QOSGrpCpuLimit",
    "QOSMaxJobsPerUserLimit",
    "AssocGrpCPURunMinutesLimit",
    "AssocGrpCPUMinutesLimit",
    "AssocGrpCpuLimit",
    "AssocMaxJobsLimit",
]
"""A reason of Slurm for each row of ``reasons.like``, in the order of the rows."""
KERNELS = ["3.10.0-1127.el7.x86_64", "3.10.0-1160.el7", "4.14.0.amzn2", "4.18.0-80.el8"]
"""Kernels into which distributions copied features of newer kernels."""


def the_solver_has_one_position_for_each_component() -> None:
    rows = COMPONENTS["component"]
    assert sorted(row["decided"] for row in rows) == [10 * n for n in range(1, len(rows) + 1)]


def a_form_asks_for_a_part_of_the_speed_up() -> None:
    for row in FORMS["form"]:
        assert 0 < row.get("efficiency", 1) <= 1
        assert 1 < row.get("doubling", 2) <= 2
        assert row["sizes"] == (3 if "nodes" in row else 2), row["name"]
        smallest, largest = row.get("nodes", (1, 10))
        assert largest == 10 * smallest
        assert row["name"].partition("-")[0] in row["title"].lower()


def an_argument_has_its_documented_position() -> None:
    for row in tables("joins")["says"]["call"]:
        names = POSITIONS[row["calls"][0]].split()
        assert {names.index(name): name for name in row["arguments"]} == {
            position: name for name, position in row["arguments"].items()
        }


def a_release_of_a_distribution_has_its_number_in_its_names() -> None:
    sources = text("mpi") + text("pmix") + text("stacks")
    for row in BUILDFILES["distribution"]:
        release = row["title"].split()[-1]
        assert [name for name in row["names"] if re.search(r"\d", name) and release not in name] == []
    for before, after in pairwise(BUILDFILES["distribution"]):
        if before["title"].split()[0] != after["title"].split()[0]:
            continue
        for mpi in {"openmpi", "mpich"} & set(before):
            assert order(before[mpi]) < order(after[mpi]), after["title"]
    for row in BUILDFILES["distribution"]:
        assert row.get("openmpi", "4.1.4") in {*re.findall(r"(?:Open MPI |openmpi-)([\d.]*\d)", sources)}
        # No source names a launch with MPICH 3.3.
        assert row.get("mpich", "3.3").startswith("3.3") or row["mpich"] in VERSION.findall(sources)


def a_driver_of_a_network_is_named_by_its_devices_or_its_source() -> None:
    for row in FABRIC["fabric"]:
        texts = f"{row.get('devices', '')} {row['fix']} {row['source']}"
        parts = [row.get("verbs", ""), *row.get("providers", ()), *row.get("mtl", ())]
        numbered = [found for part in parts for found in re.findall(r"^[a-z]+\d", part)]
        assert [part for part in numbered if part not in texts] == [], row["name"]
    assert f"from {VERSION.findall(FABRIC['openib']['versions'])[0]}," in FABRIC["openib"]["source"]


def a_security_fault_ends_with_the_release_that_fixes_it() -> None:
    for row in RUNTIME["vulnerable"]:
        assert row["versions"] == f"<{row['fixed']}"
        assert re.fullmatch(r"CVE-20\d\d-\d{4,}", row["cve"])
    for row in RUNTIME["retired"]:
        fixed = [order(other["fixed"]) for other in RUNTIME["vulnerable"] if other["name"] == row["name"]]
        for release in VERSION.findall(row["successor"]):
            assert max(fixed)[: len(order(release))] == order(release), row["name"]


def a_format_is_unreadable_before_and_after_one_release() -> None:
    for name in {row["name"] for row in RUNTIME["unreadable"]}:
        rows = [row["versions"] for row in RUNTIME["unreadable"] if row["name"] == name]
        assert len({found for bounds in rows for found in VERSION.findall(bounds)}) <= 1, name


def a_kernel_of_a_distribution_has_features_of_newer_kernels() -> None:
    for row in (RUNTIME["fuse"], *RUNTIME["kernel"]):
        found = [kernel for kernel in KERNELS if re.search(row["backported"], kernel)]
        assert found == (KERNELS if "name" in row else KERNELS[:2])
        assert row["kernel"] in f"{row.get('because', '')} {row['source']}"


def a_reason_finds_its_row() -> None:
    rows = tables("slurm")["reasons"]["like"]
    for number, reason in enumerate(REASONS):
        assert next(n for n, row in enumerate(rows) if re.match(row["pattern"], reason)) == number
    assert len(rows) == len(REASONS)


def a_trainer_with_a_number_in_its_name_is_a_module() -> None:
    modules = {file.stem for file in TRAINERS.glob("*.py")}
    names = {row["name"] for row in tables("trainers")["trainer"] if re.search(r"\d", row["name"])}
    assert names <= modules


def the_usual_host_has_no_limits() -> None:
    host = USUAL["host"]
    assert host["locked_memory"] == resource.RLIM_INFINITY
    # Linux's documentation of Yama: with 0, a process can attach to each process of its user.
    assert host["ptrace_scope"] == 0
    assert host["cpu_threads"] == 2
    assert host["slurm"]["nodes"] == 100


def images_on_an_old_kernel_have_an_older_c_library() -> None:
    old = USUAL["old_kernel"]
    kernels = [row["kernel"] for row in tables("glibc")["kernel"] if "architecture" not in row]
    assert f"{old['kernel']}.0" == kernels[0]
    known = {one["glibc"] for row in USUAL["distribution"] for one in row["releases"]}
    assert old["glibc"] in known
    assert order(old["glibc"]) < order(VERSION.findall(tables("glibc")["kernel"][0]["glibc"])[0])


def releases_of_a_distribution_follow_each_other() -> None:
    for row in USUAL["distribution"]:
        majors = [order(one["release"])[0] for one in row["releases"]]
        steps = {after - before for before, after in pairwise(majors)}
        assert steps == {{"ubuntu": 2, "sles": 3}.get(row["names"][0], 1)}


def a_usual_release_is_a_release_that_other_rows_name() -> None:
    releases = {row["fact"]: row["values"] for row in USUAL["question"]}
    known = {*tables("pmix")["library_file"].values(), *tables("mpi")["bundled_pmix"].values()}
    for fact in ("host.pmix", "image.pmix"):
        assert {series(release) for release in releases[fact]} <= {series(release) for release in known}
        assert len({order(release)[0] for release in releases[fact]}) == len(releases[fact])
    host, image = (list(map(order, releases[fact])) for fact in ("host.pmix", "image.pmix"))
    assert (min(image) < min(host), max(image) > max(host)) == (True, True)
    assert USUAL["runtime_releases"]["podman-hpc"].startswith("1.")


def names_of_amd_gpus_are_of_one_family() -> None:
    rows = tables("cuda")["amd_gpu"]
    assert [row["name"] for row in rows if not re.fullmatch(r"gfx9[0-9a-f]{2}", row["name"])] == []


def the_portable_code_of_tensorflow_is_for_the_next_generation() -> None:
    for row in tables("cuda")["tensorflow"]:
        assert order(row["ptx"]) == (order(row["native"][-1])[0] + 1, 0), row["versions"]
    for row in tables("cuda")["pytorch_gpu"]:
        bound = series(VERSION.findall(row["compute"])[0])
        assert bound in {series(release) for release in VERSION.findall(row["source"])}


CHECKS = [
    the_solver_has_one_position_for_each_component,
    a_form_asks_for_a_part_of_the_speed_up,
    an_argument_has_its_documented_position,
    a_release_of_a_distribution_has_its_number_in_its_names,
    a_driver_of_a_network_is_named_by_its_devices_or_its_source,
    a_security_fault_ends_with_the_release_that_fixes_it,
    a_format_is_unreadable_before_and_after_one_release,
    a_kernel_of_a_distribution_has_features_of_newer_kernels,
    a_reason_finds_its_row,
    a_trainer_with_a_number_in_its_name_is_a_module,
    the_usual_host_has_no_limits,
    images_on_an_old_kernel_have_an_older_c_library,
    releases_of_a_distribution_follow_each_other,
    a_usual_release_is_a_release_that_other_rows_name,
    names_of_amd_gpus_are_of_one_family,
    the_portable_code_of_tensorflow_is_for_the_next_generation,
]


@every_row("check", CHECKS)
def test_the_small_tables_agree(check: Callable[[], None]):
    check()
