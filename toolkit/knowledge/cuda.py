"""Read ``cuda.toml``: which CUDA releases, CUDA libraries, drivers and GPUs work together."""

import re
from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.versions import older, parse, within


class Minima(Row, frozen=True, kw_only=True):
    """A driver version for each CUDA release (``toolkit_driver``) or for each major release
    (``major_driver``).

    In ``toolkit_driver``, the driver is the oldest that supports all features of the release, such as
    ``12.4``. In ``major_driver``, it is the oldest that runs programs of the major release, such as ``12``.
    """

    minimum: dict[str, str]


class Compat(Row, frozen=True, kw_only=True):
    """The drivers with which a release of ``cuda-compat`` (NVIDIA's forward-compatibility package) works.

    Each entry of ``drivers`` has the version bounds of one driver branch.
    """

    cuda: str
    drivers: tuple[str, ...]


class Gpu(Row, frozen=True, kw_only=True):
    """A type of GPU: a pattern for its name, and the oldest and newest CUDA releases that support this type.

    ``compute`` is the compute capability. An empty ``last`` means that the newest CUDA release supports the
    type. ``data_centre`` is true if NVIDIA supports forward compatibility (``cuda-compat``) on this type.
    """

    name: str
    family: str
    compute: str
    first: str
    data_centre: bool
    last: str = ""


class Wheel(Row, frozen=True, kw_only=True):
    """The GPUs for which TensorFlow wheels contain code, as compute capabilities.

    ``native`` lists the capabilities with machine code. ``ptx`` is the oldest capability for which the driver
    can compile the wheels' PTX code. ``cuda`` is the release of the compiler that wrote the PTX code.
    """

    versions: str
    cuda: str
    native: tuple[str, ...]
    ptx: str


class AmdGpu(Row, frozen=True, kw_only=True):
    """An AMD GPU architecture, named by its compiler target, such as ``gfx90a``, and the first ROCm release
    that compiles programs for this architecture.
    """

    name: str
    first: str


class Nccl(Row, frozen=True, kw_only=True):
    """The NCCL releases that NVIDIA builds for a major release of CUDA."""

    cuda: str
    versions: str


class Dropped(Row, frozen=True, kw_only=True):
    """Library releases (``versions``) without code for GPUs of some compute capabilities (``compute``)."""

    compute: str
    versions: str


class KnownBad(Row, frozen=True, kw_only=True):
    """Library releases with a known fault; ``instead`` is the first later release without the fault."""

    versions: str
    because: str
    instead: str


class Plugin(Row, frozen=True, kw_only=True):
    """The networks that NCCL supports only with a plugin, and the ``library`` of this plugin."""

    fabrics: tuple[str, ...]
    library: str


class CudaKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``cuda.toml``."""

    toolkit_driver: Minima
    major_driver: Minima
    compat: tuple[Compat, ...]
    gpu: tuple[Gpu, ...]
    amd_gpu: tuple[AmdGpu, ...]
    pytorch_gpu: tuple[Dropped, ...]
    tensorflow: tuple[Wheel, ...]
    nccl: tuple[Nccl, ...]
    nccl_gpu: tuple[Dropped, ...]
    nccl_bad: tuple[KnownBad, ...]
    cudnn_gpu: tuple[Dropped, ...]
    nccl_plugin: Plugin


@cache
def cuda() -> CudaKnowledge:
    """Return the content of ``cuda.toml``."""
    return read("cuda", CudaKnowledge)


def gpu_of(name: str) -> Gpu | None:
    """Return the type of a GPU from the name that ``nvidia-smi`` prints; ``None`` for an unknown name."""
    return next((row for row in cuda().gpu if re.search(row.name, name, re.IGNORECASE)), None)


def first_with_code(kind: Gpu) -> str:
    """Return the oldest CUDA release whose compiler generates machine code that runs on this type of GPU.

    Machine code runs on GPUs with the same major compute capability and an equal or newer minor capability
    (CUDA C++ Programming Guide, binary compatibility): code for 8.0 runs on 8.9.
    """
    found = kind.first
    for row in cuda().gpu:
        runs = major(row.compute) == major(kind.compute) and not older(kind.compute, row.compute)
        found = row.first if runs and older(row.first, found) else found
    return found


def cuda_of_driver(driver: str) -> str:
    """Return the newest CUDA release that a driver fully supports (``CUDA Version`` in the output of
    ``nvidia-smi``). Return an empty string if ``cuda.toml`` lists no such release.
    """
    found = ""
    for release, least in cuda().toolkit_driver.minimum.items():
        found = release if not older(driver, least) and not older(release, found) else found
    return found


def major(version: str) -> str:
    """Return the first number of a version, such as ``12`` for ``12.4.127``. Return an empty string if
    the text does not start with a version.
    """
    found = parse(version)
    return str(found.major) if found else ""


def series(version: str) -> str:
    """Return the first two numbers of a version, such as ``12.4`` for ``12.4.127``. Return an empty string if
    the text does not start with a version.
    """
    found = parse(version)
    return f"{found.major}.{found.minor}" if found else ""


def full_driver(version: str) -> str | None:
    """Return the driver version that NVIDIA shipped with the CUDA release ``version``. Return ``None`` if
    ``cuda.toml`` does not list the release.
    """
    return cuda().toolkit_driver.minimum.get(series(version))


def least_driver(version: str) -> str | None:
    """Return the oldest driver version with which a CUDA release works; ``None`` if unknown.

    From CUDA 11 on, the oldest driver depends only on CUDA's major release. Before CUDA 11, the oldest driver
    is the driver that NVIDIA shipped with the release.
    """
    return cuda().major_driver.minimum.get(major(version)) or full_driver(version)


def compat_takes(version: str, driver: str) -> bool | None:
    """Return whether the ``cuda-compat`` of the CUDA release ``version`` works with a driver. Return ``None``
    if ``cuda.toml`` does not list this package for the release.
    """
    row = next((r for r in cuda().compat if r.cuda == series(version)), None)
    return None if row is None else any(within(driver, branch) for branch in row.drivers)
