"""Test the rules about hooks that add GPUs to a container: the driver, a hook's rights, the image's C
library.
"""

import msgspec
import pytest

from tests.unit.engine.whole import HOST, IMAGE, absent, case, host, image, unread, with_
from tests.unit.tables import every_row
from toolkit.engine.rules.cuda_compat import _holds
from toolkit.knowledge import cuda

PYXIS = msgspec.structs.replace(HOST.runtime, name="pyxis", path="pyxis", version="0.20.0")
PODMAN = msgspec.structs.replace(HOST.runtime, name="podman", path="/usr/bin/podman")
CE = msgspec.structs.replace(HOST.runtime, name="ce", path="ce", version="")
BY_CDI, UNMAPPED = "--device=nvidia.com/gpu=all", "--userns=nomap"
# Sources: SyneRBI/PETRIC2 issue 27 (cuda>=12.8 on driver 551 with CUDA 12.4), image nvidia/cuda:12.8.1
WANTED = (
    "cuda>=12.8 brand=unknown,driver>=470,driver<471 brand=tesla,driver>=535,driver<536 "
    "brand=geforce,driver>=550,driver<551"
)


def in_pyxis(driver: str, *gpus: str):
    return host(runtime=PYXIS, gpu_driver=driver, gpus=gpus or ("NVIDIA A100-SXM4-40GB",))


def requires(value: str = WANTED, **more: str):
    return image(environment={"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_REQUIRE_CUDA": value, **more})


FIRES = {
    "gpu-hook-refuses-driver": [
        case(in_pyxis("545.23.08"), requires()),
        case(in_pyxis("551.78"), requires()),
        case(in_pyxis("535.183.01", "NVIDIA GeForce RTX 3090"), requires()),
    ],
    "gpu-hook-lacks-rights": [
        case(host(runtime=PODMAN), container=(BY_CDI, UNMAPPED)),
        case(host(runtime=PODMAN), container=("--hooks-dir=/usr/share/containers/oci/hooks.d/",)),
    ],
    "hooks-need-glibc": [case(host(runtime=CE), absent(IMAGE, "glibc"))],
}
QUIET = {
    "gpu-hook-refuses-driver": [
        case(),
        case(in_pyxis("570.133.20"), requires()),
        case(in_pyxis("535.183.01"), requires()),
        case(in_pyxis("545.23.08"), requires(NVIDIA_DISABLE_REQUIRE="1")),
        case(in_pyxis("545.23.08"), requires(), env={"NVIDIA_DISABLE_REQUIRE": "1"}),
        case(in_pyxis("545.23.08"), requires(), env={"NVIDIA_VISIBLE_DEVICES": "void"}),
        case(in_pyxis("545.23.08"), image(environment={"NVIDIA_VISIBLE_DEVICES": "all"})),
        case(in_pyxis("545.23.08"), requires("arch>=9.0")),
        case(in_pyxis("545.23.08"), requires("nonsense")),
        case(host(gpu_driver="545.23.08"), requires()),
    ],
    "gpu-hook-lacks-rights": [
        case(container=(BY_CDI, UNMAPPED)),
        case(host(runtime=PODMAN), container=(BY_CDI, "--userns=keep-id")),
        case(host(runtime=PODMAN), container=(UNMAPPED,)),
        case(absent(host(runtime=PODMAN), "gpus"), container=("--hooks-dir=/x",)),
    ],
    "hooks-need-glibc": [
        case(host(runtime=CE)),
        case(of=absent(IMAGE, "glibc")),
        case(absent(HOST, "runtime"), absent(IMAGE, "glibc")),
    ],
}
UNDECIDED = {
    "gpu-hook-refuses-driver": [case(unread(in_pyxis("545.23.08"), "gpu_driver"), requires())],
    "hooks-need-glibc": [case(host(runtime=CE), unread(IMAGE, "glibc"))],
}
OUTCOMES = {
    "gpu-hook-refuses-driver": "unavailable",
    "gpu-hook-lacks-rights": "unavailable",
    "hooks-need-glibc": "unavailable",
}


@every_row(
    ("driver", "release"),
    [
        ("470.82.01", "11.4"),
        ("520.61.05", "11.8"),
        ("535.183.01", "12.2"),
        ("560.28.03", "12.6"),
        ("580.159.03", "13.0"),
        ("340.1", ""),
    ],
)
def test_a_driver_supports_the_cuda_that_nvidia_smi_prints(driver: str, release: str):
    assert cuda.cuda_of_driver(driver) == release


@every_row(
    ("part", "held"),
    [
        ("cuda>=12.2", True),
        ("cuda < 12", False),
        ("driver>=535", True),
        ("driver=535.104.05", True),
        ("brand=tesla", True),
        ("brand=geforce", False),
        ("brand!=tesla", None),
        ("arch>=8.0", None),
        ("nonsense", None),
    ],
)
def test_one_comparison_of_a_requirement(part: str, held: bool | None):
    assert _holds(case(in_pyxis("535.104.05")), part, "535.104.05") is held


@pytest.mark.parametrize("gpus", [(), ("Some GPU",)])
def test_the_brand_of_an_unknown_gpu_is_unknown(gpus: tuple[str, ...]):
    assert _holds(case(with_(in_pyxis("535.104.05"), gpus=gpus)), "brand=tesla", "535.104.05") is None
