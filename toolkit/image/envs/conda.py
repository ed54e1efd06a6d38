"""Read a conda environment file, and select the packages that are also on PyPI (pure functions)."""

import re
from typing import NamedTuple

import yaml

from toolkit.errors import BadInput

_SPEC = re.compile(r"(?:[^:\s]+::)?(?P<name>[A-Za-z0-9_.-]+)\s*(?P<rest>.*)")
_RELEASE = re.compile(r"[\d][\w.*+!]*")
_NAMES = {
    "pytorch": "torch",
    "pytorch-cpu": "torch",
    "pytorch-gpu": "torch",
    "tensorflow-gpu": "tensorflow",
    "matplotlib-base": "matplotlib",
    "opencv": "opencv-python-headless",
    "py-opencv": "opencv-python-headless",
    "pytables": "tables",
    "dask-core": "dask",
    "graphviz": "",
    "msgpack-python": "msgpack",
    "ruamel_yaml": "ruamel.yaml",
    "pillow-simd": "pillow",
}
"""Map conda packages to their names on PyPI if the two names differ. The PyPI name is empty if the conda
package's name belongs to an unrelated project on PyPI.
"""
_IMAGE = {"python": "the image has its own Python", "pip": "toolkit installs packages with uv instead of pip"}
_SYSTEM = re.compile(
    r"(?!(?:librosa|libcst|libpysal|libsass|libtmux|libarchive-c|libusb1|netcdf4|boost-histogram|makefun"
    r"|ffmpeg-python|cuda-python|cuda-bindings|mkl-service|mkl[_-]fft|mkl[_-]random)\Z)"
    r"(cuda|cudatoolkit|cudnn|nccl|mkl|blas|lib|gcc|gxx|gfortran|_|openmpi|mpich|mpi\Z|cmake|make|compilers"
    r"|c-compiler|cxx-compiler|openssl|readline|sqlite\Z|zlib|xz\Z|bzip2|ncurses|tk\Z|ca-certificates|git\Z"
    r"|ffmpeg|nodejs|ucx|hdf5\Z|netcdf|fftw|gsl\Z|boost|rdma|pytorch-cuda|r-|perl|ninja-base|sysroot|binutils)"
)
"""A pattern for the names of conda packages that contain no Python code. The first two lines list
exceptions: Python packages that the third and later lines would match by mistake.
"""


class CondaFile(NamedTuple):
    """The contents of a conda environment file.

    ``requirements`` are the conda packages that are also on PyPI, as requirements for uv. ``pip`` are the
    lines in the section ``pip``. ``omissions`` maps each omitted package to the reason.
    """

    requirements: tuple[str, ...]
    pip: tuple[str, ...]
    omissions: dict[str, str]


def of_conda(text: str, name: str) -> CondaFile:
    """Return the packages in the text of an ``environment.yml``; ``name`` is the file's name in error
    messages.

    Raises:
        BadInput: if the file is not a conda environment file.
    """
    try:
        table = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"-f {name}: {' '.join(str(error).split())}") from error
    listed = table.get("dependencies") if isinstance(table, dict) else None
    if not isinstance(listed, list):
        raise BadInput(f"-f {name}: the list `dependencies` is missing", fix="give a conda environment file")
    requirements, pip, left = list[str](), list[str](), dict[str, str]()
    for entry in listed:
        if isinstance(entry, dict) and isinstance(lines := entry.get("pip"), list):
            pip += [str(line) for line in lines]
        elif isinstance(entry, str):
            _add(entry, requirements, left, name)
        else:
            raise BadInput(f"-f {name}: {str(entry)[:60]!r} is not a package; write NAME or NAME=VERSION")
    return CondaFile(tuple(requirements), tuple(pip), left)


def _add(entry: str, requirements: list[str], omissions: dict[str, str], name: str) -> None:
    match = _SPEC.fullmatch(entry.strip())
    if match is None:
        raise BadInput(f"-f {name}: {entry!r} is not a package; write NAME or NAME=VERSION")
    conda = match["name"].lower()
    if conda in _IMAGE:
        omissions[entry] = _IMAGE[conda]
    elif _SYSTEM.match(conda):
        omissions[entry] = "the Python package index has no such package; the image must contain it"
    elif not (wanted := _NAMES.get(conda, conda)):
        omissions[entry] = "the Python package index has a different project with this name"
    else:
        requirements.append(f"{wanted}{_specifier(match['rest'])}")


def _specifier(rest: str) -> str:
    """Return a conda version specifier in the syntax of PEP 440, without conda's build string. For example,
    ``=1.2`` becomes ``==1.2.*``. The result is empty if ``rest`` allows all versions, or contains ``|``.
    """
    text = rest.strip().strip("[]")
    if "|" in text or not text or text == "*":
        return ""
    words = text.replace("==", " ==").split() if text[0] in "<>!~" else [text]
    if text[0] == "=" and text[1:2] != "=":
        release = text[1:].partition("=")[0].strip()
        return f"=={release}" if release.endswith("*") else f"=={release}.*"
    if text.startswith("=="):
        return f"=={text[2:].strip().partition('=')[0]}"
    if _RELEASE.match(text):
        return f"=={text.split()[0].partition('=')[0]}"
    return "".join(words)
