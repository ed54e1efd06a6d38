"""Find the frameworks and communication libraries for which an image's Horovod was built."""

import re
from dataclasses import dataclass

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.image.files import tree as files
from toolkit.image.loader.loader import Loader
from toolkit.image.software.packages import PackageVersion, UnknownVersion

_FRAMEWORKS = ("tensorflow", "torch", "mxnet")
_METADATA = 1 << 16
_BUILT = {
    "mpi": (b"MPIAllreduce", b"MPI_Allreduce"),
    "gloo": (b"GlooAllreduce", b"gloo_"),
    "nccl": (b"NCCLAllreduce", b"ncclAllReduce"),
    "cuda": (b"cudaGetDevice", b"libcudart.so"),
    "rocm": (b"hipGetDevice",),
    # In mangled C++, a name's length precedes the name. Without the length 12, this text would also match
    # NCCLAllreduce.
    "ccl": (b"12CCLAllreduce",),
}
"""For each communication library and GPU platform, texts that show that Horovod was built for it: class names
in the C++ type information, and function names (horovod/horovod:horovod/common/ops).
"""


@dataclass(frozen=True, slots=True)
class HorovodPackage:
    """A Horovod installation.

    ``libraries`` maps each framework to the path of Horovod's native library for this framework. ``features``
    are the communication libraries and GPU platforms for which Horovod was built. ``operations`` names the
    communication libraries (of ``mpi``, ``gloo`` and ``nccl``) for which Horovod has an Allreduce class, such
    as ``NCCLAllreduce``. It is None if toolkit finds no such class.
    """

    libraries: dict[str, str]
    features: tuple[str, ...]
    operations: frozenset[str] | None


def read(loader: Loader, package_folders: tuple[str, ...]) -> HorovodPackage:
    """Return the first Horovod in ``package_folders`` that has native libraries."""
    for site in package_folders:
        libraries = {
            framework: path
            for framework in _FRAMEWORKS
            if (path := next(files.glob(loader.tree, f"{site}/horovod/{framework}/mpi_lib*.so"), None))
        }
        if libraries:
            built = {name for path in libraries.values() for name in _built(loader, path)}
            classes = {"mpi", "gloo", "nccl"} & {n for p in libraries.values() for n in _classes(loader, p)}
            return HorovodPackage(
                libraries, tuple(n for n in _BUILT if n in built), frozenset(classes) or None
            )
    return HorovodPackage({}, (), None)


def built_for(
    loader: Loader, package: HorovodPackage, framework: str
) -> PackageVersion | UnknownVersion | None:
    """Return the version of ``framework`` for which Horovod was built, from Horovod's metadata.json.

    The build of Horovod writes metadata.json (horovod/horovod:horovod/tensorflow/CMakeLists.txt). If Horovod
    cannot import its native library, it compares the versions in metadata.json with the installed frameworks.
    The result is None if Horovod has no native library for ``framework``.
    """
    library = package.libraries.get(framework)
    if library is None:
        return None
    path = f"{library.rpartition(f'/{framework}/')[0]}/metadata.json"
    content = files.read(loader.tree, path, _METADATA)
    if content is None:
        return UnknownVersion(
            f"{path}: not in the image, so the {framework} version for which Horovod was built is unknown"
        )
    try:
        versions = msgspec.json.decode(content)
    except DECODE_ERRORS as error:
        return UnknownVersion(f"{path}: not valid JSON: {error}")
    version = versions.get(framework) if isinstance(versions, dict) else None
    if isinstance(version, str) and re.fullmatch(r"\d{1,4}\.[\w.+-]{1,40}", version):
        return PackageVersion(version, f"{path}: {framework} {version}")
    return UnknownVersion(f"{path} does not contain a version of {framework}")


def _built(loader: Loader, path: str) -> set[str]:
    content = loader.texts(path)
    needed = loader.elf(path)
    sonames = " ".join(needed.needed if needed else ())
    operations = {name for name, texts in _BUILT.items() if any(t in content for t in texts)}
    linked = {"mpi": "libmpi", "nccl": "libnccl", "cuda": "libcudart", "rocm": "libamdhip"}
    return operations | {name for name, library in linked.items() if library in sonames}


def _classes(loader: Loader, path: str) -> set[str]:
    content = loader.texts(path)
    return {name.lower() for name in ("MPI", "Gloo", "NCCL") if f"{name}Allreduce".encode() in content}
