"""Test the rules about the host's GPU driver, the image's CUDA, and programs that train on GPUs."""

import msgspec

from tests.unit.engine.whole import HOST, IMAGE, absent, case, host, image, runtime, unread
from tests.unit.tables import every_row
from toolkit.engine.case import Case
from toolkit.engine.judge import judge
from toolkit.engine.planning.plan import plan
from toolkit.engine.planning.proposal import propose
from toolkit.engine.predict import predict_plan
from toolkit.engine.registry import RULES
from toolkit.knowledge import cuda
from toolkit.model.prediction import Request

H100 = ("NVIDIA H100 80GB HBM3",) * 4
V100 = ("Tesla V100-SXM2-16GB",) * 4
GEFORCE = ("NVIDIA GeForce RTX 3090",)
P100 = ("Tesla P100-PCIE-16GB",)
K80 = ("Tesla K80",)
B200 = ("NVIDIA B200",)
LIBS = "/.singularity.d/libs"
PODMAN = msgspec.structs.replace(HOST.runtime, name="podman", path="/usr/bin/podman")
GPUS = {"gpus": True}
IN_PODMAN_HPC = host(runtime=msgspec.structs.replace(PODMAN, name="podman-hpc"))
IN_PYXIS = host(runtime=msgspec.structs.replace(HOST.runtime, name="pyxis", path="pyxis", version="0.19"))
BARE = absent(image(environment={"PATH": "/usr/bin"}, pytorch="2.4.0"), "cuda")
NO_GPU = absent(HOST, "gpu_driver", "gpus")
OF_AMD = absent(host(amd_gpus=("gfx90a",) * 8), "gpu_driver", "gpus")
AMD_SLINGSHOT = msgspec.structs.replace(OF_AMD, fabrics=("slingshot",))
AMD_IN_PODMAN = msgspec.structs.replace(OF_AMD, runtime=PODMAN)
COMPAT = image(cuda="12.0.1", cuda_compat="525.85.12")
UNLISTED = image(cuda="13.9.1", cuda_compat="610.57.04")
SCRIPTED = unread(COMPAT, "environment.LD_LIBRARY_PATH")
IN_FRONT = {"LD_LIBRARY_PATH": "/usr/local/cuda/compat:/usr/local/lib"}
REAL = "/usr/local/cuda/compat/lib.real"
NGC = {"LD_LIBRARY_PATH": "/usr/local/lib/python3.10/dist-packages/torch/lib:/usr/local/cuda/compat/lib"}
APART = image(cuda="12.0.1", cuda_compat="525.85.12", cuda_compat_folders=(REAL,), environment=NGC)

PLUGIN = "/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so"
NAMED = {"NCCL_NET_PLUGIN": PLUGIN}
FIRES = {
    "gpu-libraries-missed": [case(runtime(name="singularity", version="3.4.2"), container=("--nv",))],
    "gpu-driver-too-old": [
        case(host(gpu_driver="470.82.01")),
        case(host(gpu_driver="418.39"), image(cuda="10.2.89")),
    ],
    "gpu-minor-compatibility": [case(host(gpu_driver="525.60.13"))],
    "cuda-compat-refused": [
        case(host(gpu_driver="510.47.03", gpus=GEFORCE), COMPAT),
        case(host(gpu_driver="460.32.03"), COMPAT),
        case(host(gpu_driver="460.106.00"), image(cuda="12.4.127", cuda_compat="550.54.15")),
        case(host(gpu_driver="470.223.02"), image(cuda="13.0.48", cuda_compat="580.65.06")),
    ],
    "cuda-compat-needed": [
        case(host(gpu_driver="510.47.03"), COMPAT),
        case(host(gpu_driver="510.47.03"), APART),
        case(host(gpu_driver="510.47.03"), UNLISTED, env=IN_FRONT),
        case(host(gpu_driver="510.47.03"), COMPAT, env={"LD_LIBRARY_PATH": f"{LIBS}:/usr/local/cuda/compat"}),
    ],
    "cuda-compat-outdated": [
        case(of=image(cuda_compat="525.85.12", environment=IN_FRONT)),
        case(of=COMPAT, env=IN_FRONT),
        case(of=APART, env={"LD_LIBRARY_PATH": f"/opt/lib:{REAL}/"}),
    ],
    "library-path-hides-driver": [
        case(env={"LD_LIBRARY_PATH": "/opt/mine/lib"}, container=("--nv",)),
        case(of=absent(IMAGE, "cuda"), env={"LD_LIBRARY_PATH": ""}, container=("--nv",)),
        case(given={"LD_LIBRARY_PATH": "/opt/mine/lib"}),
    ],
    "driver-not-searched": [case(of=image(driver_searched=False), container=("--nv",))],
    "gpu-newer-than-cuda": [case(host(gpus=H100), image(cuda="11.2.152"))],
    "gpu-dropped-by-cuda": [case(host(gpus=V100), image(cuda="13.0.48"))],
    "gpu-parts-apart": [case(host(mig=("3g.20gb", "3g.20gb")), ranks_per_node=2)],
    "gpu-without-driver": [case(NO_GPU)],
    "gpu-of-amd": [case(OF_AMD)],
    "gpus-not-handed-in": [
        case(asked=GPUS, container=()),
        case(asked=GPUS, container=("--rocm",)),
        case(OF_AMD, asked=GPUS, container=("--containall",)),
        case(IN_PYXIS, BARE, "torch", asked=GPUS),
        case(IN_PYXIS, BARE, "torch", asked=GPUS, env={"NVIDIA_VISIBLE_DEVICES": "void"}),
        case(host(runtime=PODMAN), asked=GPUS, container=("--ipc=host",)),
        case(IN_PODMAN_HPC, asked=GPUS, container=("--ipc=host",)),
        case(AMD_IN_PODMAN, asked=GPUS, container=("--ipc=host",)),
        case(AMD_IN_PODMAN, asked=GPUS, container=("--device", "/dev/kfd", "--group-add=video")),
        case(runtime(name="singularity", version="2.4.2"), asked=GPUS, container=("--nv", "--contain")),
    ],
    "gpu-driver-mismatch": [case(host(gpu_mismatch=True))],
    "tensorflow-without-gpu": [case(of=absent(IMAGE, "tensorflow_cuda"))],
    "pytorch-without-gpu": [case(of=absent(image(pytorch="2.4.0"), "pytorch_cuda"))],
    "tensorflow-cuda-missing": [case(of=absent(IMAGE, "cuda")), case(of=image(cuda="11.8.89"))],
    "tensorflow-cudnn-mismatch": [
        case(of=absent(IMAGE, "cudnn")),
        case(of=image(cudnn="8.6.0")),
        case(of=image(cudnn="9.1.0")),
    ],
    "tensorflow-compiles-at-start": [case(host(gpus=H100))],
    "tensorflow-ptx-too-new": [case(host(gpus=H100, gpu_driver="525.60.13"))],
    "tensorflow-lacks-gpu-code": [case(host(gpus=K80))],
    "cudnn-dropped-gpu": [case(host(gpus=P100), image(cudnn="9.12.0"))],
    "nccl-lacks-gpu": [case(host(gpus=B200)), case(host(gpus=K80), image(nccl="2.28.3"))],
    "nccl-cuda-mismatch": [case(of=image(cuda="11.8.89", nccl="2.23.4"))],
    "nccl-known-bad": [
        case(of=image(nccl="2.29.2")),
        case(of=image(nccl="2.28.3")),
        case(of=image(nccl="2.28.8")),
    ],
    "nccl-needs-plugin": [
        case(host(fabrics=("slingshot",))),
        case(host(fabrics=("efa",)), image(nccl_ofi=PLUGIN, nccl_ofi_found=False)),
        case(host(fabrics=("efa",)), image(nccl_ofi=PLUGIN, environment={"LD_LIBRARY_PATH": "/usr/lib"})),
        case(AMD_SLINGSHOT, absent(image(pytorch="2.5.1", pytorch_rocm="6.2"), "nccl"), "torch"),
    ],
    # a job of two nodes whose InfiniBand ports have no IP addresses in a common network
    "nccl-interface-unrouted": [
        case(host(interfaces=("eno1", "ib0"), interfaces_routed=("eno1",)), image(pytorch="2.5.1"), "torch"),
    ],
}
QUIET = {
    "gpu-libraries-missed": [
        case(container=("--nv",)),
        case(runtime(name="singularity", version="3.4.2")),
        case(NO_GPU, container=("--nv",)),
    ],
    "gpus-not-handed-in": [
        case(),
        case(container=()),
        case(asked=GPUS, container=("--nv",)),
        case(asked=GPUS, container=("--nvccli",)),
        case(asked=GPUS, container=("--bind", "/usr/lib64/libcuda.so.1")),
        case(runtime(settings={"always use nv": "yes"}), asked=GPUS, container=()),
        case(runtime(name="singularity", version="2.5.0"), asked=GPUS, container=("--nv", "--contain")),
        case(runtime(name="singularity", version="2.4.2"), asked=GPUS, container=("--nv",)),
        case(host(runtime=PODMAN), asked=GPUS, container=("--hooks-dir=/usr/share/containers/oci/hooks.d/",)),
        case(OF_AMD, asked=GPUS, container=()),
        case(OF_AMD, asked=GPUS, container=("--rocm", "--containall")),
        case(OF_AMD, asked=GPUS, container=("--containall", "--bind=/dev/kfd,/dev/dri")),
        case(host(runtime=PODMAN), asked=GPUS, container=("--device=nvidia.com/gpu=all",)),
        case(IN_PODMAN_HPC, asked=GPUS, container=("--gpu",)),
        case(AMD_IN_PODMAN, asked=GPUS, container=("--device=/dev/kfd", "--group-add=keep-groups")),
        case(runtime(name="ch-run", version="0.31"), asked=GPUS, container=()),
        case(IN_PYXIS, BARE, "torch"),
        case(IN_PYXIS, BARE, "torch", asked=GPUS, env={"NVIDIA_VISIBLE_DEVICES": "all"}),
        case(IN_PYXIS, BARE, "torch", asked=GPUS, container=("--export=ALL,NVIDIA_VISIBLE_DEVICES=all",)),
        case(IN_PYXIS, image(environment={"PATH": "/bin"}), "torch", asked=GPUS),
        case(IN_PYXIS, absent(IMAGE, "cuda"), "torch", asked=GPUS),
        case(NO_GPU, asked=GPUS, container=()),
    ],
    "gpu-driver-too-old": [
        case(),
        case(host(gpu_driver="525.60.13")),
        case(host(gpu_driver="510.47.03"), COMPAT),
        case(NO_GPU),
    ],
    "gpu-minor-compatibility": [case(), case(host(gpu_driver="470.82.01"))],
    "cuda-compat-refused": [
        case(of=COMPAT),
        case(host(gpu_driver="510.47.03"), COMPAT),
        case(host(gpu_driver="470.223.02"), image(cuda="12.4.127", cuda_compat="550.54.15")),
        case(host(gpu_driver="535.183.01"), image(cuda="13.0.48", cuda_compat="580.65.06")),
        case(host(gpu_driver="510.47.03"), UNLISTED),
    ],
    "cuda-compat-needed": [
        case(of=COMPAT),
        case(host(gpu_driver="510.47.03"), COMPAT, env=IN_FRONT),
        case(
            host(gpu_driver="510.47.03"), COMPAT, env={"LD_LIBRARY_PATH": f"/x:/usr/local/cuda/compat:{LIBS}"}
        ),
        case(host(gpu_driver="510.47.03"), APART, env={"LD_LIBRARY_PATH": REAL}),
        case(host(gpu_driver="510.47.03", gpus=GEFORCE), COMPAT),
    ],
    "cuda-compat-outdated": [
        case(of=COMPAT),
        case(of=image(cuda_compat="560.28.03", environment=IN_FRONT)),
        case(of=image(cuda_compat="525.85.12", environment=IN_FRONT), env={"LD_LIBRARY_PATH": ""}),
        case(of=APART),
        case(of=COMPAT, env={"LD_LIBRARY_PATH": f"{LIBS}:/usr/local/cuda/compat"}),
    ],
    "library-path-hides-driver": [
        case(container=("--nv",)),
        case(env={"LD_LIBRARY_PATH": f"/opt/mine/lib:{LIBS}/"}, container=("--nv",)),
        case(of=absent(IMAGE, "cuda"), env={"LD_LIBRARY_PATH": "/opt/mine/lib"}),
        case(NO_GPU, env={"LD_LIBRARY_PATH": "/opt/mine/lib"}, container=("--nv",)),
    ],
    "driver-not-searched": [
        case(container=("--nv",)),
        case(of=image(driver_searched=True), container=("--nv",)),
        case(of=image(driver_searched=False)),
        case(of=image(driver_searched=False), env={"LD_LIBRARY_PATH": "/a"}, container=("--nv",)),
        case(host(runtime=PODMAN), image(driver_searched=False), container=("--nv",)),
        case(NO_GPU, image(driver_searched=False), container=("--nv",)),
    ],
    "gpu-newer-than-cuda": [case(host(gpus=H100)), case(host(gpus=("Some GPU",)), image(cuda="11.2"))],
    "gpu-dropped-by-cuda": [case(host(gpus=V100), image(cuda="12.9.1")), case(of=image(cuda="13.0.48"))],
    "gpu-parts-apart": [
        case(ranks_per_node=2),
        case(host(mig=("7g.40gb",))),
        case(host(mig=("3g.20gb", "3g.20gb")), absent(IMAGE, "cuda"), ranks_per_node=2),
    ],
    "gpu-without-driver": [case(), case(NO_GPU, absent(IMAGE, "cuda")), case(OF_AMD)],
    "gpu-driver-mismatch": [case(), case(host(gpu_mismatch=True), absent(IMAGE, "cuda"))],
    "gpu-of-amd": [
        case(),
        case(NO_GPU),
        case(host(amd_gpus=("gfx1151",))),
        case(OF_AMD, absent(IMAGE, "cuda")),
    ],
    "tensorflow-without-gpu": [case(), case(NO_GPU, absent(IMAGE, "tensorflow_cuda"))],
    "pytorch-without-gpu": [case(), case(of=image(pytorch="2.4.0", pytorch_cuda="12.1"))],
    "tensorflow-cuda-missing": [case(), case(NO_GPU, absent(IMAGE, "cuda"))],
    "tensorflow-cudnn-mismatch": [case(), case(of=image(cudnn="8.9.2", tensorflow_cudnn="8.9.6"))],
    "tensorflow-compiles-at-start": [
        case(),
        case(host(gpus=H100), image(tensorflow="2.99.0")),
        case(host(gpus=K80)),
    ],
    "tensorflow-ptx-too-new": [case(host(gpus=H100)), case(host(gpu_driver="525.60.13"))],
    "tensorflow-lacks-gpu-code": [case(), case(host(gpus=K80), image(tensorflow="1.15.5"))],
    "cudnn-dropped-gpu": [case(host(gpus=P100)), case(of=image(cudnn="9.12.0"))],
    "nccl-lacks-gpu": [case(), case(host(gpus=B200), image(nccl="2.26.2"))],
    "nccl-cuda-mismatch": [case(), case(of=image(cuda="10.2.89")), case(of=image(nccl="not a version"))],
    "nccl-known-bad": [
        case(),
        case(of=image(nccl="2.29.3")),
        case(of=image(nccl="2.28.9")),
        case(of=image(nccl="2.27.7")),
        case(of=image(nccl="not a version")),
    ],
    "nccl-needs-plugin": [
        case(),
        case(host(fabrics=("slingshot",)), nodes=1),
        case(host(fabrics=("efa",)), image(nccl_ofi=PLUGIN)),
        case(host(fabrics=("efa",)), image(nccl_ofi=PLUGIN, nccl_ofi_found=True)),
        case(host(fabrics=("efa",)), image(nccl_ofi=PLUGIN, nccl_ofi_found=False), env=NAMED),
        case(host(fabrics=("slingshot",)), container=("--module=gpu,nccl-plugin",)),
        case(AMD_SLINGSHOT, absent(image(pytorch_rocm="6.2"), "nccl"), binds=("/opt/aws-ofi-rccl",)),
    ],
    "nccl-interface-unrouted": [
        case(),
        case(host(interfaces=("eno1", "ib0"), interfaces_routed=("eno1", "ib0"))),
        case(host(interfaces=("eno1", "docker0"), interfaces_routed=("eno1",))),
        case(host(interfaces=("eno1", "ib0"), interfaces_routed=("eno1",)), nodes=1),
        case(
            host(interfaces=("eno1", "ib0"), interfaces_routed=("eno1",)), env={"NCCL_SOCKET_IFNAME": "eno1"}
        ),
        case(host(interfaces=("eno1", "ib0"), interfaces_routed=("eno1",)), absent(IMAGE, "nccl", "pytorch")),
    ],
}
UNDECIDED = {
    "gpu-driver-too-old": [
        case(unread(HOST, "gpu_driver")),
        case(host(gpu_driver="470.82.01"), unread(IMAGE, "cuda_compat")),
    ],
    "cuda-compat-refused": [case(unread(host(gpu_driver="510.47.03"), "gpus"), COMPAT)],
    "cuda-compat-needed": [case(host(gpu_driver="510.47.03"), SCRIPTED)],
    "cuda-compat-outdated": [case(of=SCRIPTED)],
    "library-path-hides-driver": [
        case(unread(HOST, "gpu_driver"), env={"LD_LIBRARY_PATH": "/opt/mine/lib"}),
        case(of=unread(IMAGE, "cuda"), env={"LD_LIBRARY_PATH": "/opt/mine/lib"}),
    ],
    "driver-not-searched": [
        case(unread(HOST, "gpu_driver"), image(driver_searched=False), container=("--nv",))
    ],
    "gpu-parts-apart": [case(unread(HOST, "mig"), ranks_per_node=2)],
    "gpu-without-driver": [case(unread(HOST, "gpu_driver"))],
    "gpu-driver-mismatch": [case(host(gpu_mismatch=True), unread(IMAGE, "cuda"))],
    "gpu-of-amd": [
        case(unread(NO_GPU, "amd_gpus")),
        case(unread(OF_AMD, "gpu_driver")),
        case(OF_AMD, unread(IMAGE, "cuda")),
    ],
    "tensorflow-without-gpu": [case(of=unread(IMAGE, "tensorflow_cuda"))],
    "pytorch-without-gpu": [case(of=unread(image(pytorch="2.4.0"), "pytorch_cuda"))],
    "tensorflow-cuda-missing": [case(of=unread(IMAGE, "cuda"))],
    "tensorflow-cudnn-mismatch": [case(of=unread(IMAGE, "cudnn"))],
    "nccl-needs-plugin": [case(host(fabrics=("efa",)), unread(IMAGE, "nccl_ofi"))],
    "nccl-interface-unrouted": [case(unread(HOST, "interfaces"))],
}


@every_row(
    ("name", "of", "fix"),
    [
        (
            "cuda-compat-needed",
            case(host(gpu_driver="510.47.03"), APART),
            f"{REAL}:/usr/local/lib/python3.10/dist-packages/torch/lib:/usr/local/cuda/compat/lib:{LIBS}",
        ),
        (
            "cuda-compat-needed",
            case(host(gpu_driver="510.47.03"), COMPAT, env={"LD_LIBRARY_PATH": f"{LIBS}:/x"}),
            f"/usr/local/cuda/compat:/x:{LIBS}",
        ),
        ("cuda-compat-outdated", case(of=COMPAT, env=IN_FRONT), f"/usr/local/lib:{LIBS}"),
        ("library-path-hides-driver", case(env={"LD_LIBRARY_PATH": "/a:/b"}), f"/a:/b:{LIBS}"),
        ("library-path-hides-driver", case(env={"LD_LIBRARY_PATH": ""}), LIBS),
    ],
)
def test_a_search_path_that_is_proposed_keeps_the_image_and_the_driver(name: str, of: Case, fix: str):
    _, findings = judge(of, tuple(r for r in RULES if r.id == name))
    assert [f.fix.rpartition("`--env LD_LIBRARY_PATH=")[2] for f in findings] == [f"{fix}`"]


@every_row(
    ("name", "family", "compute"),
    [
        ("NVIDIA A100-SXM4-40GB", "Ampere", "8.0"),
        ("NVIDIA A100 80GB PCIe", "Ampere", "8.0"),
        ("NVIDIA A10", "Ampere", "8.6"),
        ("NVIDIA A10G", "Ampere", "8.6"),
        ("NVIDIA RTX A6000", "Ampere", "8.6"),
        ("NVIDIA GeForce RTX 3090", "Ampere", "8.6"),
        ("NVIDIA GH200 480GB", "Hopper", "9.0"),
        ("NVIDIA H100 PCIe", "Hopper", "9.0"),
        ("NVIDIA L40S", "Ada", "8.9"),
        ("NVIDIA L4", "Ada", "8.9"),
        ("NVIDIA RTX 6000 Ada Generation", "Ada", "8.9"),
        ("NVIDIA GeForce RTX 4090", "Ada", "8.9"),
        ("Tesla T4", "Turing", "7.5"),
        ("NVIDIA TITAN RTX", "Turing", "7.5"),
        ("Tesla V100-PCIE-32GB", "Volta", "7.0"),
        ("NVIDIA TITAN V", "Volta", "7.0"),
        ("Tesla P100-SXM2-16GB", "Pascal", "6.0"),
        ("Tesla P40", "Pascal", "6.1"),
        ("Quadro P4000", "Pascal", "6.1"),
        ("Tesla M60", "Maxwell", "5.2"),
        ("Tesla K80", "Kepler", "3.7"),
        ("Tesla K40m", "Kepler", "3.5"),
        ("NVIDIA B200", "Blackwell", "10.0"),
        ("NVIDIA B300 SXM6 AC", "Blackwell", "10.3"),
        ("NVIDIA GB10", "Blackwell", "12.1"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "Blackwell", "12.0"),
        ("NVIDIA GeForce RTX 5090", "Blackwell", "12.0"),
        ("NVIDIA GeForce RTX 5070 Ti", "Blackwell", "12.0"),
        ("NVIDIA Thor", "Blackwell", "11.0"),
        ("NVIDIA RTX 4500 Ada Generation", "Ada", "8.9"),
        ("NVIDIA RTX 5000 Ada Generation", "Ada", "8.9"),
        ("NVIDIA RTX 5880 Ada Generation", "Ada", "8.9"),
        ("NVIDIA RTX 4000 SFF Ada Generation", "Ada", "8.9"),
        ("NVIDIA RTX 2000 Ada Generation", "Ada", "8.9"),
        ("NVIDIA A100X", "Ampere", "8.0"),
        ("NVIDIA A30X", "Ampere", "8.0"),
        ("NVIDIA RTX A4500", "Ampere", "8.6"),
        ("NVIDIA RTX A5500", "Ampere", "8.6"),
        ("NVIDIA RTX A1000 Laptop GPU", "Ampere", "8.6"),
        ("Tesla T10", "Turing", "7.5"),
        ("NVIDIA T1000 8GB", "Turing", "7.5"),
        ("Quadro RTX 3000", "Turing", "7.5"),
        ("Quadro RTX 4000", "Turing", "7.5"),
        ("Quadro RTX 5000", "Turing", "7.5"),
        ("NVIDIA GeForce RTX 2080 Ti", "Turing", "7.5"),
        ("Quadro GV100", "Volta", "7.0"),
        ("Quadro GP100", "Pascal", "6.0"),
        ("NVIDIA TITAN X (Pascal)", "Pascal", "6.1"),
        ("NVIDIA TITAN Xp", "Pascal", "6.1"),
        ("NVIDIA GeForce GTX TITAN X", "Maxwell", "5.2"),
        ("NVIDIA GeForce GTX 980", "Maxwell", "5.2"),
        ("NVIDIA GeForce GTX 970M", "Maxwell", "5.2"),
        ("Quadro M6000 24GB", "Maxwell", "5.2"),
        ("Tesla M10", "Maxwell", "5.0"),
    ],
)
def test_a_gpu_is_known_by_the_name_that_nvidia_smi_prints(name: str, family: str, compute: str):
    kind = cuda.gpu_of(name)
    assert kind is not None
    assert (kind.family, kind.compute) == (family, compute)


@every_row(
    "name",
    [
        "AMD Instinct MI250X",
        # These names resemble names in the table, but the GPUs have other chips.
        "NVIDIA GeForce RTX 2050",
        "NVIDIA GeForce GTX 960M",
        "Quadro M2000M",
    ],
)
def test_a_gpu_that_is_not_in_the_list_is_not_taken_for_one_of_it(name: str):
    assert cuda.gpu_of(name) is None


@every_row(
    ("version", "least", "full"),
    [
        ("12.4.127", "525.60.13", "550.54.14"),
        ("11.8.89", "450.80.02", "520.61.05"),
        ("10.2.89", "440.33", "440.33"),
        ("13.9", "580.65.06", None),
        ("nonsense", None, None),
    ],
)
def test_before_cuda_11_each_release_needs_its_own_driver(version: str, least: str | None, full: str | None):
    assert (cuda.least_driver(version), cuda.full_driver(version)) == (least, full)


def test_of_a_release_that_is_not_listed_no_promise_is_made():
    of = case(host(gpu_driver="535.183.01"), UNLISTED)
    _, findings = judge(of, tuple(r for r in RULES if r.id == "cuda-compat-needed"))
    assert [f.title for f in findings] == [
        "toolkit does not know whether cuda-compat for CUDA 13.9 works with driver 535.183.01"
    ]
    assert cuda.compat_takes("13.9.1", "535.183.01") is None


@every_row(
    ("version", "driver", "taken"),
    [
        ("12.4.127", "470.223.02", True),
        ("12.4.127", "460.106.00", False),
        ("12.8.90", "470.223.02", True),
        ("12.9.79", "470.223.02", False),
        ("12.3.101", "510.47.03", False),
        ("12.2.140", "510.47.03", True),
        ("13.0.48", "525.85.12", False),
        ("13.0.48", "550.54.15", True),
        ("11.8.89", "418.226.00", False),
        ("11.6.55", "418.226.00", True),
    ],
)
def test_a_compatibility_package_works_on_the_branches_that_its_release_names(
    version: str, driver: str, taken: bool
):
    assert cuda.compat_takes(version, driver) is taken


def test_a_gpu_never_changes_how_mpi_starts():
    rules = tuple(r for r in RULES if r.id in FIRES)
    for broken in (c for cases in FIRES.values() for c in cases):
        prediction, _ = judge(broken, rules)
        assert prediction.outcome == "ok"


AMD = absent(host(amd_gpus=("AMD Instinct MI250X",) * 8), "gpu_driver", "gpus")
ROCM = absent(
    image(pytorch="2.9.0+rocm6.4", pytorch_rocm="6.4.43484"),
    "cuda",
    "tensorflow_cuda",
    "pytorch_cuda",
    "nccl",
)


@every_row(
    ("on", "of", "container"),
    [
        (HOST, IMAGE, ("--nv",)),
        (absent(HOST, "gpu_driver"), IMAGE, ()),
        (host(gpus=()), IMAGE, ()),
        (HOST, absent(IMAGE, "cuda", "tensorflow_cuda", "pytorch_cuda", "nccl"), ()),
        (AMD, ROCM, ("--rocm",)),
        (AMD, IMAGE, ()),
        (HOST, ROCM, ()),
    ],
)
def test_the_driver_comes_in_where_the_image_computes_on_gpus(on, of, container):
    assert propose(on, of, Request(), "srun-pmix").container == container


def test_an_image_without_the_runtimes_scripts_gets_the_path_of_the_driver():
    there = {"LD_LIBRARY_PATH": "/opt/lib"}
    cases = (
        (image(driver_searched=False), LIBS),
        (image(driver_searched=False, environment=there), f"/opt/lib:{LIBS}"),
        (image(driver_searched=True), None),
        (image(), None),
        (absent(image(driver_searched=False, tensorflow_cuda=None, nccl=None), "cuda"), None),
    )
    for of, wanted in cases:
        for mode in ("srun-pmix", "torch"):
            assert propose(HOST, of, Request(), mode).env.get("LD_LIBRARY_PATH") == wanted, (of, mode)


@every_row(
    ("inside", "words"),
    [
        ({"PATH": "/usr/bin"}, ("--export=ALL,NVIDIA_VISIBLE_DEVICES=all",)),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, ()),
    ],
)
def test_pyxis_is_told_to_hand_in_gpus_unless_the_image_tells_it(inside, words):
    of = absent(image(environment=inside, pytorch="2.4.0"), "cuda")
    made = plan(IN_PYXIS, of, Request(ranks_per_node=4, gpus=True), "torch")
    assert made.container == words
    assert predict_plan(IN_PYXIS, of, Request(ranks_per_node=4, gpus=True), made).accelerator != "gpu-failure"
