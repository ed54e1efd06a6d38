"""Test the rules about kernel, processor and C library, which decide whether a program starts at all."""

from tests.unit.engine.whole import HOST, IMAGE, absent, case, host, image, unread, with_
from tests.unit.tables import every_row
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES
from toolkit.knowledge import glibc

CENTOS_6 = host(kernel="2.6.32-754.35.1.el6.x86_64")
CENTOS_7 = host(distribution="centos 7.9", glibc="2.17")
FEDORA = host(distribution="fedora 42", glibc="2.41")
EL8 = image(distribution="centos 8", glibc="2.28", glibc_needed="2.28")
UBUNTU = image(distribution="ubuntu 22.04", glibc="2.35", glibc_needed="2.17")
AMD = absent(host(amd_gpus=("gfx942",) * 8, gpu_libraries_glibc="2.38"), "gpu_driver", "gpus")
FOCAL = image(distribution="ubuntu 20.04", glibc="2.31")
OLD_CPU = host(cpu_level="x86-64-v1")

FIRES = {
    "kernel-too-old": [
        # This host cannot mount a squashfs without setuid, so the image is a folder.
        case(CENTOS_6, image(format="sandbox")),
        case(host(kernel="3.4.0", architecture="aarch64")),
        case(host(kernel="2.6.18-419.el5"), image(glibc="2.23")),
    ],
    "image-needs-newer-processor": [case(OLD_CPU), case(of=image(cpu_level="x86-64-v4"))],
    "tensorflow-needs-avx": [case(OLD_CPU), case(host(cpu_level="x86-64-v2"))],
    "gpu-libraries-need-newer-glibc": [
        case(host(gpu_libraries_glibc="2.38")),
        case(host(gpu_libraries_glibc="2.38"), container=("--nv",)),
        case(host(gpu_libraries_glibc="2.38"), absent(IMAGE, "cuda"), container=("--nv",)),
        case(AMD, FOCAL, asked={"gpus": True}, container=("--rocm",)),
        case(AMD, image(glibc="2.35", pytorch_rocm="6.4"), container=("--rocm",)),
        case(AMD, FOCAL, container=("--rocm",)),
    ],
    "gpu-rocm-libraries-newer": [case(with_(AMD, glibc="2.38"), FOCAL, container=("--rocm",))],
    "image-glibc-too-old": [case(of=image(glibc_needed="2.38"))],
    "bind-hides-c-library": [
        case(CENTOS_7, EL8, binds=("/lib64",)),
        case(CENTOS_7, EL8, container=("-B", "/etc,/lib64")),
        case(FEDORA, EL8, container=("--volume=/usr:/usr",)),
        case(CENTOS_7, UBUNTU, binds=("/lib64",)),
        case(host(distribution="ubuntu 24.04", glibc="2.39"), EL8, binds=("/lib64",)),
        case(host(distribution="debian 12", glibc="2.36"), UBUNTU, binds=("/lib64",)),
    ],
}
QUIET = {
    "kernel-too-old": [
        case(),
        case(CENTOS_6, image(glibc="2.17")),
        case(CENTOS_6, absent(IMAGE, "glibc")),
        case(host(kernel="3.4.0")),
    ],
    "image-needs-newer-processor": [
        case(),
        case(OLD_CPU, absent(IMAGE, "cpu_level")),
        case(OLD_CPU, image(cpu_level="x86-64-v1")),
        case(absent(HOST, "cpu_level")),
        case(host(cpu_level="x86-64-v2")),
    ],
    "tensorflow-needs-avx": [case(), case(OLD_CPU, image(tensorflow="1.5.0"))],
    "gpu-libraries-need-newer-glibc": [
        case(),
        case(container=("--nv",)),
        case(absent(host(gpu_libraries_glibc="2.38"), "gpu_driver")),
        case(host(gpu_libraries_glibc="2.38"), absent(IMAGE, "cuda")),
        case(AMD, FOCAL, asked={"gpus": True}),
        case(AMD, image(glibc="2.39"), container=("--rocm",)),
        case(absent(AMD, "gpu_libraries_glibc"), FOCAL, container=("--rocm",)),
    ],
    "gpu-rocm-libraries-newer": [
        case(with_(AMD, glibc="2.38"), FOCAL),
        case(with_(AMD, glibc="2.31"), FOCAL, container=("--rocm",)),
        case(host(glibc="2.38"), FOCAL, container=("--rocm",)),
    ],
    "image-glibc-too-old": [case(), case(of=absent(IMAGE, "glibc"))],
    "bind-hides-c-library": [
        case(),
        case(CENTOS_7, EL8, binds=("/lib64:/host/lib64", "/usr/lib64/libcxi.so.1")),
        case(host(distribution="rocky 8.9", glibc="2.28"), EL8, binds=("/usr/lib64",)),
        case(CENTOS_7, UBUNTU, binds=("/usr/lib64",)),
        case(CENTOS_7, absent(EL8, "glibc"), binds=("/lib64",)),
    ],
}
UNDECIDED = {
    "bind-hides-c-library": [case(unread(CENTOS_7, "glibc"), EL8, binds=("/lib64",))],
    "kernel-too-old": [case(unread(HOST, "kernel"))],
    "image-needs-newer-processor": [case(of=unread(IMAGE, "cpu_level")), case(unread(HOST, "cpu_level"))],
    "gpu-libraries-need-newer-glibc": [
        case(unread(HOST, "gpu_libraries_glibc"), container=("--nv",)),
        case(of=unread(IMAGE, "cuda"), container=("--nv",)),
        case(unread(AMD, "gpu_libraries_glibc"), FOCAL, container=("--rocm",)),
    ],
}
OUTCOMES = {
    "kernel-too-old": "loader-failure",
    "image-needs-newer-processor": "loader-failure",
    "gpu-libraries-need-newer-glibc": "ok",
    "bind-hides-c-library": "loader-failure",
}
STARTS = {
    "kernel-too-old": ["loader-failure"] * 3,
    "image-needs-newer-processor": ["loader-failure"] * 2,
    "bind-hides-c-library": ["loader-failure"] * 2 + ["unknown"] + ["loader-failure"] * 2 + ["unknown"],
    "gpu-libraries-need-newer-glibc": [
        "ok",
        "loader-failure",
        "ok",
        "loader-failure",
        "loader-failure",
        "ok",
    ],
    "tensorflow-needs-avx": ["ok", "ok"],
    "gpu-rocm-libraries-newer": ["ok"],
    "image-glibc-too-old": ["ok"],
}


@every_row("name", FIRES)
def test_a_program_that_cannot_start_is_foretold(name: str):
    rules = tuple(r for r in RULES if r.id == name)
    assert [judge(c, rules)[0].outcome for c in FIRES[name]] == STARTS[name]


@every_row("name", UNDECIDED)
def test_what_could_not_be_read_leaves_the_start_unknown(name: str):
    rules = tuple(r for r in RULES if r.id == name)
    assert {judge(c, rules)[0].outcome for c in UNDECIDED[name]} == {"unknown"}


def test_facts_that_were_never_asked_withhold_no_prediction():
    never = host(kernel=None)
    rules = tuple(r for r in RULES if r.id in FIRES)
    assert judge(case(never, image(cpu_level=None)), rules)[0].outcome == "ok"


def test_a_processor_that_may_lack_avx_is_no_error():
    _, findings = judge(
        case(host(cpu_level="x86-64-v2")), tuple(r for r in RULES if r.id == "tensorflow-needs-avx")
    )
    assert [f.severity for f in findings] == ["info"]


def test_levels_are_ordered():
    assert [glibc.level(name) for name in ("x86-64-v1", "x86-64-v4", "armv8", "")] == [0, 3, None, None]
