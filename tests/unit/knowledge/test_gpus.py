"""Test what toolkit derives from the name of an NVIDIA GPU, as ``nvidia-smi`` prints the name."""

import pytest

from tests.unit.tables import every_row
from toolkit.knowledge.cuda import cuda, gpu_of

NAMES = {
    ("10.3", True): ["NVIDIA GB300", "NVIDIA B300 SXM6 AC"],
    ("12.1", False): ["NVIDIA GB10"],
    ("11.0", True): ["NVIDIA Thor"],
    ("10.0", True): ["NVIDIA B200", "NVIDIA GB200"],
    ("12.0", False): ["NVIDIA GeForce RTX 5090", "NVIDIA RTX PRO 6000 Blackwell Server Edition"],
    ("9.0", True): ["NVIDIA H100 80GB HBM3", "NVIDIA GH200 480GB", "NVIDIA H200"],
    ("8.9", True): ["NVIDIA L40S", "NVIDIA L4"],
    ("8.9", False): ["NVIDIA GeForce RTX 4090", "NVIDIA RTX 6000 Ada Generation"],
    ("8.0", True): ["NVIDIA A100-SXM4-80GB", "NVIDIA A30"],
    ("8.6", True): ["NVIDIA A10G", "NVIDIA A40"],
    ("8.6", False): ["NVIDIA GeForce RTX 3090", "NVIDIA RTX A6000"],
    ("7.5", True): ["Tesla T4"],
    ("7.5", False): ["NVIDIA GeForce RTX 2080 Ti", "Quadro RTX 8000", "NVIDIA T1000"],
    ("7.0", True): ["Tesla V100-SXM2-32GB"],
    ("7.0", False): ["NVIDIA TITAN V", "Quadro GV100"],
    ("6.0", True): ["Tesla P100-PCIE-16GB"],
    ("6.1", True): ["Tesla P40", "Tesla P4"],
    ("6.0", False): ["Quadro GP100"],
    ("6.1", False): ["NVIDIA GeForce GTX 1080 Ti", "NVIDIA TITAN Xp", "Quadro P5000"],
    ("5.2", True): ["Tesla M40", "Tesla M60"],
    ("5.2", False): ["NVIDIA GeForce GTX TITAN X", "NVIDIA GeForce GTX 980", "Quadro M4000"],
    ("5.0", True): ["Tesla M10"],
    ("3.7", True): ["Tesla K80"],
    ("3.5", True): ["Tesla K40m", "Tesla K20Xm"],
}
"""Names of GPUs, by compute capability and by whether the GPU is made for data centres. Only GPUs for data
centres support NVIDIA's forward-compatible drivers (CUDA Compatibility guide).
"""
EACH = [(name, *kind) for kind, names in NAMES.items() for name in names]


@every_row(("name", "compute", "data_centre"), EACH)
def test_a_gpu_is_recognised_by_its_name(name: str, compute: str, data_centre: bool):
    kind = gpu_of(name)
    assert kind
    assert (kind.compute, kind.data_centre) == (compute, data_centre)


def test_each_row_has_a_name():
    assert {gpu_of(name) for name, *_ in EACH} == set(cuda().gpu)


@pytest.mark.parametrize("name", ["NVIDIA Q1", "AMD Instinct MI300X", ""])
def test_an_unknown_name_is_no_gpu_of_the_table(name: str):
    assert gpu_of(name) is None
