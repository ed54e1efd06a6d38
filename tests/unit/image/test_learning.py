"""Test the facts about Python, TensorFlow, PyTorch, Horovod and CUDA in an image."""

from tests.unit.image.sifs import elf, sandbox
from tests.unit.image.test_inspect import BASE, LIB
from tests.unit.tables import every_row
from toolkit.image.inspect import inspect

SITE = "/opt/venv/lib/python3.11/site-packages"
BUILD = f"{SITE}/tensorflow/python/platform/build_info.py"
DIST = "dist-info/METADATA"


def facts_of(path, files):
    return inspect(sandbox(path, {**BASE, **files}))


def test_tensorflow_tells_the_cuda_that_it_was_built_for(tmp_path):
    info = (
        'build_info = OrderedDict([("cuda_version", "12.2"), ("cudnn_version", "8"), ("is_rocm_build", 0)])'
    )
    facts = facts_of(tmp_path, {f"{SITE}/tensorflow-2.15.1.{DIST}": "", BUILD: info})
    assert (facts.tensorflow, facts.tensorflow_cuda, facts.tensorflow_cudnn) == ("2.15.1", "12.2", "8")
    assert facts.cite("tensorflow_cuda") == f"{BUILD}: cuda_version 12.2"


def test_tensorflow_without_cuda_is_told_from_one_that_does_not_say(tmp_path):
    package = {f"{SITE}/tensorflow_cpu-2.15.1.{DIST}": ""}
    without = facts_of(tmp_path / "a", {**package, BUILD: "build_info = {'is_cuda_build': False}"})
    assert "built without CUDA" in without.absent["tensorflow_cuda"]
    silent = facts_of(tmp_path / "b", package)
    assert "not in the image" in silent.unknown["tensorflow_cuda"]
    strange = facts_of(tmp_path / "c", {**package, BUILD: "build_info = {'is_cuda_build': True}"})
    assert "does not name cuda_version" in strange.unknown["tensorflow_cuda"]
    assert "lacks TensorFlow" in facts_of(tmp_path / "d", {}).absent["tensorflow_cuda"]


@every_row(
    ("line", "version", "book"),
    [
        ("cuda: Optional[str] = '11.8'", "11.8", "evidence"),
        ("cuda = '12.1'", "12.1", "evidence"),
        ("cuda = None", None, "absent"),
        ("cuda: Optional[str] = None", None, "absent"),
        ("", None, "unknown"),
    ],
)
def test_pytorch_tells_its_cuda(tmp_path, line, version, book):
    facts = facts_of(tmp_path, {f"{SITE}/torch/version.py": f"__version__ = '2.1.0+cu118'\n{line}\n"})
    assert (facts.pytorch, facts.pytorch_cuda) == ("2.1.0+cu118", version)
    assert "pytorch_cuda" in getattr(facts, book)


@every_row(
    ("line", "version", "book"),
    [
        ("hip: Optional[str] = '6.4.43484-123eb5128'", "6.4.43484", "evidence"),
        ("hip = '7.0.51831'", "7.0.51831", "evidence"),
        ("hip: Optional[str] = None", None, "absent"),
        ("", None, "unknown"),
    ],
)
def test_pytorch_says_its_rocm(tmp_path, line, version, book):
    facts = facts_of(
        tmp_path, {f"{SITE}/torch/version.py": f"__version__ = '2.9.0+rocm6.4'\ncuda = None\n{line}\n"}
    )
    assert (facts.pytorch, facts.pytorch_rocm) == ("2.9.0+rocm6.4", version)
    assert "pytorch_rocm" in getattr(facts, book)


HOROVOD = {
    f"{SITE}/horovod-0.28.1.{DIST}": "",
    f"{SITE}/horovod/tensorflow/mpi_lib.cpython-311-x86_64-linux-gnu.so": elf(
        needed=("libmpi.so.40", "libnccl.so.2"),
        text=b"12MPIAllreduceE\x0013GlooAllreduceE\x0013NCCLAllreduceE",
    ),
    f"{SITE}/horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so": elf(text=b"cudaGetDevice\0"),
}


def test_horovod_tells_what_it_was_built_with_and_for(tmp_path):
    metadata = {f"{SITE}/horovod/metadata.json": '{"tensorflow": "2.15.1", "pytorch": "2.1.0"}'}
    facts = facts_of(tmp_path, {**HOROVOD, **metadata})
    assert facts.horovod == "0.28.1"
    assert facts.horovod_built == ("mpi", "gloo", "nccl", "cuda")
    assert facts.horovod_frameworks == ("tensorflow", "torch")
    assert facts.horovod_tensorflow == "2.15.1"
    assert facts.programs == {next(p for p in HOROVOD if "/tensorflow/" in p): ""}


@every_row("metadata", [None, "[1]", "{", "[" * 100_000, '{"tensorflow": 2}', '{"tensorflow": "new"}'])
def test_a_horovod_that_does_not_tell_its_tensorflow_leaves_it_unknown(tmp_path, metadata):
    more = {} if metadata is None else {f"{SITE}/horovod/metadata.json": metadata}
    facts = facts_of(tmp_path, {**HOROVOD, **more})
    assert facts.horovod_tensorflow is None
    assert f"{SITE}/horovod/metadata.json" in facts.unknown["horovod_tensorflow"]


def test_an_image_without_horovod_says_so(tmp_path):
    facts = facts_of(tmp_path, {})
    for name in (
        "horovod",
        "horovod_built",
        "horovod_frameworks",
        "horovod_tensorflow",
        "cuda",
        "cudnn",
        "nccl",
    ):
        assert getattr(facts, name) is None
        assert name in facts.absent


def test_libraries_of_nvidias_wheels_come_before_those_of_the_system(tmp_path):
    facts = facts_of(
        tmp_path,
        {
            f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12": elf(),
            f"{SITE}/nvidia_cuda_runtime_cu12-12.1.105.{DIST}": "",
            f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9": elf(),
            f"{SITE}/nvidia_cudnn_cu12-9.1.0.70.{DIST}": "",
            f"{LIB}/libcudart.so.11.8.89": elf(),
            f"{LIB}/libnccl.so.2": "->libnccl.so.2.18.3",
            f"{LIB}/libnccl.so.2.18.3": elf(),
        },
    )
    assert (facts.cuda, facts.cudnn, facts.nccl) == ("12.1.105", "9.1.0.70", "2.18.3")
    assert facts.cite("nccl") == f"{LIB}/libnccl.so.2.18.3"


def test_a_toolkit_of_cuda_is_found_with_its_compatibility_package(tmp_path):
    facts = facts_of(
        tmp_path,
        {
            "/usr/local/cuda-12.4/targets/x86_64-linux/lib/libcudart.so.12.4.127": elf(),
            "/usr/local/cuda": "->cuda-12.4",
            "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15": elf(),
        },
    )
    assert (facts.cuda, facts.cuda_compat) == ("12.4.127", "550.54.15")
    assert facts.cuda_compat_folders == ("/usr/local/cuda/compat", "/usr/local/cuda-12.4/compat")


def test_nvidias_images_for_frameworks_keep_their_compatibility_package_apart(tmp_path):
    real = {"/usr/local/cuda/compat/lib.real/libcuda.so.525.85.11": elf(), "/usr/local/cuda/compat/x": b""}
    facts = facts_of(tmp_path / "kept", real)
    assert facts.cuda_compat == "525.85.11"
    assert facts.cite("cuda_compat") == "/usr/local/cuda/compat/lib.real/libcuda.so.525.85.11"
    assert facts.cuda_compat_folders == ("/usr/local/cuda/compat/lib.real",)
    linked = facts_of(tmp_path / "linked", {**real, "/usr/local/cuda/compat/lib": "->lib.real"})
    assert linked.cuda_compat_folders == ("/usr/local/cuda/compat/lib", "/usr/local/cuda/compat/lib.real")


def test_of_several_compatibility_packages_that_of_the_current_cuda_counts(tmp_path):
    facts = facts_of(
        tmp_path,
        {
            "/usr/local/cuda-11.8/compat/libcuda.so.520.61.05": elf(),
            "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15": elf(),
            "/usr/local/cuda": "->cuda-12.4",
        },
    )
    assert facts.cuda_compat == "550.54.15"
    assert facts.cuda_compat_folders == ("/usr/local/cuda/compat", "/usr/local/cuda-12.4/compat")


PYTHON = {
    "/opt/venv/bin/python3": "->python3.11",
    "/.singularity.d/env/90-x.sh": "export PATH=/opt/venv/bin:$PATH",
}


@every_row(
    ("files", "version", "line"),
    [
        (
            {"/opt/venv/bin/python3.11": elf(text=b"\x003.11.9\0")},
            "3.11.9",
            "/opt/venv/bin/python3.11 says 3.11.9",
        ),
        (
            {
                "/opt/venv/bin/python3.11": elf(needed=("libpython3.11.so.1.0",), rpath="$ORIGIN/../lib"),
                "/opt/venv/lib/libpython3.11.so.1.0": elf(text=b"\x003.11.4+\0"),
            },
            "3.11.4",
            "/opt/venv/lib/libpython3.11.so.1.0 says 3.11.4",
        ),
        ({"/opt/venv/bin/python3.11": elf()}, "3.11", "/opt/venv/bin/python3 is /opt/venv/bin/python3.11"),
        (
            {"/opt/venv/bin/python3.11": elf(), "/opt/venv/pyvenv.cfg": "version = 3.11.2\n"},
            "3.11.2",
            "/opt/venv/pyvenv.cfg: version = 3.11.2",
        ),
    ],
)
def test_python_is_read_from_what_tells_most(tmp_path, files, version, line):
    facts = facts_of(tmp_path, {**PYTHON, **files})
    assert (facts.python, facts.cite("python")) == (version, line)


@every_row(
    ("settings", "reads"),
    [
        ("home = /usr/bin\n", False),
        ("include-system-site-packages = false\n", False),
        ("home = /usr/bin\ninclude-system-site-packages = True\n", True),
        (None, True),
    ],
)
def test_an_environment_of_python_reads_the_home_folder_only_with_its_systems_packages(
    tmp_path, settings, reads
):
    files = {"/opt/venv/bin/python3.11": elf(), "/opt/venv/pyvenv.cfg": settings}
    kept = {path: content for path, content in files.items() if content is not None}
    assert facts_of(tmp_path, {**PYTHON, **kept}).python_reads_home is reads


def test_the_python_of_the_system_is_read_from_its_package(tmp_path):
    row = "Package: python3.11-minimal\nStatus: install ok installed\nVersion: 3.11.2-6+deb12u6\n"
    facts = facts_of(tmp_path, {"/var/lib/dpkg/status": row})
    assert facts.python == "3.11.2"
    assert "python3.11-minimal 3.11.2-6+deb12u6" in facts.cite("python")
