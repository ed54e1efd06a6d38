"""Test the rules about PyTorch builds without machine code for the GPUs: CUDA for NVIDIA, ROCm for AMD."""

from tests.unit.engine.whole import HOST, IMAGE, absent, case, host, image
from tests.unit.tables import every_row
from toolkit.knowledge import cuda

B200, H100, L40S = ("NVIDIA B200",) * 8, ("NVIDIA H100 80GB HBM3",) * 8, ("NVIDIA L40S",) * 4
A100, P100 = ("NVIDIA A100-PCIE-40GB",), ("Tesla P100-PCIE-16GB",)


def wheel(version: str, built: str):
    return image(pytorch=version, pytorch_cuda=built)


def rocm(built: str):
    return image(pytorch=f"2.5.1+rocm{built}", pytorch_rocm=built)


FIRES = {
    "pytorch-lacks-gpu-code": [
        # princeton-vl/DROID-SLAM and others: 'sm_90 is not compatible with the current PyTorch installation'
        case(host(gpus=H100), wheel("1.13.1", "11.7")),
        case(host(gpus=B200), wheel("2.6.0+cu124", "12.4")),
        case(host(gpus=A100), wheel("1.6.0", "10.2")),
        case(host(gpus=P100), wheel("2.8.0", "12.8")),
    ],
    "gpu-newer-than-rocm": [case(host(amd_gpus=("gfx942",) * 4), rocm("5.7"))],
}
QUIET = {
    "pytorch-lacks-gpu-code": [
        case(),
        case(host(gpus=H100), wheel("2.1.0", "11.8")),
        case(host(gpus=L40S), wheel("1.13.1", "11.7")),
        case(host(gpus=B200), wheel("2.7.0", "12.8")),
        case(host(gpus=B200), wheel("2.6.0a0+ecf3bae40a", "12.6")),
        case(host(gpus=P100), wheel("2.7.0", "12.6")),
        case(host(gpus=B200), wheel("2.6.0", "unknown")),
        case(host(gpus=("Some GPU",)), wheel("2.6.0", "12.4")),
    ],
    "gpu-newer-than-rocm": [
        case(),
        case(host(amd_gpus=("gfx942",) * 4), rocm("6.2")),
        case(host(amd_gpus=("gfx90a",) * 8), rocm("5.7")),
        case(HOST, absent(IMAGE, "pytorch_rocm")),
    ],
}


@every_row(
    ("name", "first"),
    [
        ("NVIDIA L40S", "11.0"),
        ("NVIDIA H100 PCIe", "11.8"),
        ("NVIDIA B300 SXM6 AC", "12.8"),
        ("Tesla T4", "9.0"),
        ("Tesla P40", "8.0"),
    ],
)
def test_machine_code_runs_on_newer_gpus_of_its_major_capability(name: str, first: str):
    kind = cuda.gpu_of(name)
    assert kind is not None
    assert cuda.first_with_code(kind) == first
