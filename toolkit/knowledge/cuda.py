"""``cuda.toml``: requirements between CUDA, its libraries, drivers and GPUs."""

import re
from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.versions import parse, within


class Minima(Row, frozen=True, kw_only=True):
    """The oldest driver for each release of CUDA."""

    minimum: dict[str, str]


class Compat(Row, frozen=True, kw_only=True):
    """Branches of the driver on which a release of ``cuda-compat`` works; bounds, one a branch."""

    cuda: str
    drivers: tuple[str, ...]


class Gpu(Row, frozen=True, kw_only=True):
    """A kind of GPU: a pattern for its name, and the CUDA releases with code for it."""

    name: str
    family: str
    compute: str
    first: str
    data_centre: bool
    last: str = ""


class Wheel(Row, frozen=True, kw_only=True):
    """The compute capabilities for which the wheels of some TensorFlow releases have code."""

    versions: str
    cuda: str
    native: tuple[str, ...]
    ptx: str


class Nccl(Row, frozen=True, kw_only=True):
    """NCCL releases that are built for a major release of CUDA."""

    cuda: str
    versions: str


class Dropped(Row, frozen=True, kw_only=True):
    """Releases of a library without code for some GPUs; each bound limits one side."""

    compute: str
    versions: str


class KnownBad(Row, frozen=True, kw_only=True):
    """Releases of a library with a known fault, and the nearest release without it."""

    versions: str
    because: str
    instead: str


class Plugin(Row, frozen=True, kw_only=True):
    """Networks that a library supports only through a plugin."""

    fabrics: tuple[str, ...]
    library: str


class CudaKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``cuda.toml``."""

    toolkit_driver: Minima
    major_driver: Minima
    compat: tuple[Compat, ...]
    gpu: tuple[Gpu, ...]
    tensorflow: tuple[Wheel, ...]
    nccl: tuple[Nccl, ...]
    nccl_gpu: tuple[Dropped, ...]
    nccl_bad: tuple[KnownBad, ...]
    cudnn_gpu: tuple[Dropped, ...]
    nccl_plugin: Plugin


@cache
def cuda() -> CudaKnowledge:
    """Return the table about CUDA."""
    return read("cuda", CudaKnowledge)


def gpu_of(name: str) -> Gpu | None:
    """Return the kind of a GPU from the name that ``nvidia-smi`` prints; ``None`` if it is unknown."""
    return next((row for row in cuda().gpu if re.search(row.name, name, re.IGNORECASE)), None)


def major(version: str) -> str:
    """Return the first number of a version; empty if there is none."""
    found = parse(version)
    return str(found.major) if found else ""


def series(version: str) -> str:
    """Return the first two numbers of a version, as ``12.4`` of ``12.4.127``."""
    found = parse(version)
    return f"{found.major}.{found.minor}" if found else ""


def full_driver(version: str) -> str | None:
    """Return the driver that was shipped with a release of CUDA; ``None`` if the table lacks it."""
    return cuda().toolkit_driver.minimum.get(series(version))


def least_driver(version: str) -> str | None:
    """Return the oldest driver on which a release of CUDA works; ``None`` if unknown.

    From CUDA 11 on any driver of the major family works; before, the driver must be as new as the release's
    own.
    """
    return cuda().major_driver.minimum.get(major(version)) or full_driver(version)


def compat_takes(version: str, driver: str) -> bool | None:
    """Return whether ``cuda-compat`` of a release works on a driver; ``None`` if the table lacks it."""
    row = next((r for r in cuda().compat if r.cuda == series(version)), None)
    return None if row is None else any(within(driver, branch) for branch in row.drivers)
