"""Test the facts from the probe of a real GPU node: NVIDIA H100, driver 580.159.04, Ubuntu 24.04, no Slurm.

``h100.txt`` was recorded on 2026-11-26, without the sections that do not concern the GPU.
"""

from pathlib import Path

import pytest

from toolkit.probe.evidence import parse
from toolkit.probe.facts import host_facts


@pytest.fixture(scope="module")
def node():
    answer = Path(__file__).with_name("h100.txt").read_text()
    return host_facts("gpu-node", parse(answer, "gpu-node"))


def test_the_driver_and_the_gpu_are_read_from_what_nvidia_smi_says(node):
    assert str(node.gpu_driver) == "580.159.04"
    assert node.gpus == ("NVIDIA H100 80GB HBM3",)


def test_a_gpu_without_parts_has_no_mig_profile_and_no_mismatch(node):
    assert node.mig == ()
    assert "mig" not in node.unknown
    assert node.gpu_mismatch is False


def test_the_glibc_that_the_driver_libraries_need_is_their_newest(node):
    assert node.gpu_libraries_glibc == "2.26"


def test_an_amd_gpu_is_absent_not_unknown(node):
    assert "amd_gpus" not in node.unknown
