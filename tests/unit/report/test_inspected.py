"""Test the output of ``toolkit image inspect``."""

from toolkit.model.facts import ImageFacts
from toolkit.model.mpifacts import ImageMpi
from toolkit.report.inspected import lines

MPI = ImageMpi(
    implementation="openmpi",
    version="4.1.8",
    library="/opt/x/lib/libmpi.so.40",
    interfaces=("pmix",),
    launcher="/opt/x/bin/mpirun",
    how={"pmix": "component ext3x"},
    components={"pmix": ("ext3x",), "btl": ("self", "tcp")},
    lacks=("libfoo.so.1",),
)


def shown(**facts):
    return "\n".join(lines(ImageFacts(path="a.sif", format="sif", **facts)))


def test_an_mpi_is_shown_with_what_it_speaks_and_lacks():
    text = shown(mpi=MPI, glibc="2.36", glibc_needed="2.34", cpu_level="x86-64-v2")
    assert "mpi           Open MPI 4.1.8 (/opt/x/lib/libmpi.so.40)" in text
    assert "supports      pmix (component ext3x)" in text
    assert "launcher      /opt/x/bin/mpirun" in text
    assert "components    pmix ext3x; btl self tcp" in text
    assert "lacks         libfoo.so.1" in text
    assert "needs         glibc 2.34, x86-64-v2" in text


def test_a_device_stands_for_components_and_other_mpis_follow():
    mpich = ImageMpi(
        implementation="mpich", version="4.2.3", library="/b", interfaces=(), device="ch4:ofi,ucx"
    )
    text = shown(mpi=mpich, other_mpis=(MPI,))
    assert "device        ch4:ofi,ucx" in text
    assert "supports      neither PMI nor PMIx" in text
    assert "other mpi     Open MPI 4.1.8 (/opt/x/lib/libmpi.so.40)" in text


def test_fabric_and_learning_are_one_line_each():
    text = shown(
        ucx="1.13.1-1",
        ucx_transports=("cma", "tcp"),
        libfabric_version="1.17.0-3",
        libfabric_providers=("tcp",),
        verbs_providers=("mlx5",),
        tensorflow="2.15.1",
        tensorflow_cuda="12.2",
        pytorch="2.1.0",
        horovod="0.28.1",
        horovod_built=("mpi", "nccl"),
        horovod_frameworks=("tensorflow",),
        mpi4py="4.0.3",
        cuda="12.4.127",
        nccl="2.18.3",
    )
    assert "fabric        UCX 1.13.1 cma tcp; libfabric 1.17.0 tcp" in text
    assert "verbs         mlx5" in text
    assert "tensorflow    2.15.1, for CUDA 12.2" in text
    assert "pytorch       2.1.0\n" in text
    assert "horovod       0.28.1 with mpi nccl tensorflow" in text
    assert "cuda          CUDA 12.4.127, NCCL 2.18.3" in text


def test_nccl_is_shown_with_its_plugin():
    text = shown(nccl="2.18.3", nccl_ofi="/opt/amazon/ofi-nccl/lib/libnccl-net.so")
    assert "cuda          NCCL 2.18.3 with aws-ofi-nccl" in text


def test_what_could_not_be_read_says_why_and_what_is_not_there_is_a_dash():
    text = shown(
        mpi=ImageMpi(implementation="mpich", version=None, library="/b", interfaces=None),
        unknown={"mpi.interfaces": "/b: it cannot be read", "tensorflow": "/opt cannot be read"},
        disagreements=("stack.json says pmix 5; toolkit found 4",),
    )
    assert "supports      /b: it cannot be read" in text
    assert "tensorflow    /opt cannot be read" in text
    assert "pmix          -" in text
    assert text.endswith("disagreement: stack.json says pmix 5; toolkit found 4")


def test_an_image_of_toolkit_is_named_by_its_recipe():
    assert "stack.json    recipe tf2.15-cpu" in shown(stack={"recipe": "tf2.15-cpu"})
    assert "stack.json    not in the image" in shown()
    assert "mpi           libmpi: not there" in shown(unknown={"mpi": "libmpi: not there"})


def test_values_are_wrapped_where_there_is_a_width():
    facts = ImageFacts(path="a.sif", format="sif", mpi=MPI)
    narrow = list(lines(facts, 40))
    assert "components    pmix ext3x; btl self tcp" in narrow
    assert "supports      pmix (component ext3x)" in narrow
    assert [line for line in narrow if "MPI" in line or "libmpi" in line] == [
        "mpi           Open MPI 4.1.8",
        "              (/opt/x/lib/libmpi.so.40)",
    ]
    assert max(map(len, narrow)) <= 40
