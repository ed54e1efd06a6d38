"""Find CUDA libraries in an image, and the CUDA versions for which TensorFlow and PyTorch were built."""

import posixpath
import re
from collections.abc import Iterator

from toolkit.image.files import tree as files
from toolkit.image.software.libraries import Finder
from toolkit.image.software.packages import PackageVersion, UnknownVersion, python_package

_MOST = 1 << 17
_TOOLKITS = (
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/targets/*/lib",
    "/usr/local/cuda-*/lib64",
    "/usr/local/cuda-*/targets/*/lib",
    "/usr/lib/*-linux-gnu*",
    "/usr/lib64",
)
_COMPAT = ("compat", "compat/lib", "compat/lib.real")
"""The folders below a CUDA installation that can contain the libraries of NVIDIA's package cuda-compat. With
this package, a newer CUDA runs on an older driver.

NVIDIA's framework images have ``compat/lib`` in LD_LIBRARY_PATH. A start script in these images checks the
driver. If the check succeeds, the script creates the link ``compat/lib``.
"""
_DRIVER = re.compile(r"libcuda\.so\.(\d{3,4}(?:\.\d{1,4}){1,2})\Z")
_WHEELS = {"libcudart": "cuda_runtime", "libcudnn": "cudnn", "libnccl": "nccl"}
"""For each library, the folder below site-packages/nvidia that contains the library. The name of NVIDIA's
wheel for the library consists of ``nvidia_``, the name of this folder, and a suffix such as ``_cu12``.
"""
_ENTRY = re.compile(r"""["'](\w+)["']\s*[,:]\s*["']?([\w.]+)""")
_RELEASE = re.compile(r"\d{1,3}(?:\.\d{1,4}){0,3}\Z")


def library(finder: Finder, name: str) -> PackageVersion | None:
    """Return the version of a CUDA library from its file name or its wheel. Return None if toolkit does not
    find the library, or if neither the file name nor the wheel contains the version.

    Libraries from wheels have priority, because packages such as PyTorch load these libraries first.
    """
    part = _WHEELS[name]
    for site in finder.places.sites:
        wheel_folder = f"{site}/nvidia/{part}/lib"
        if path := _newest(finder, wheel_folder, name):
            for major in ("cu13", "cu12", "cu11"):
                wheel = python_package(finder.loader.tree, (site,), f"nvidia_{part}_{major}")
                if wheel:
                    return wheel
            return _by_name(finder, path)
        for beside in (f"{site}/torch/lib", f"{site}/nvidia/cu13/lib"):
            if (path := _newest(finder, beside, name)) and (version := _by_name(finder, path)):
                return version
    for folder in _folders(finder):
        if (path := _newest(finder, folder, name)) and (version := _by_name(finder, path)):
            return version
    return None


def compat(finder: Finder) -> tuple[PackageVersion | None, tuple[str, ...]]:
    """Return the driver version of NVIDIA's package cuda-compat, and the folders with its libraries. With
    this package, a newer CUDA runs on an older driver.

    The version is in the file name of the package's ``libcuda.so``. The cuda-compat in /usr/local/cuda has
    priority over the cuda-compat in a folder such as /usr/local/cuda-12.2.
    """
    tree = finder.loader.tree
    cuda = sorted((n for n in files.names(tree, "/usr/local") if n.startswith("cuda")), key=len)
    folders = [f"/usr/local/{name}/{below}" for name in cuda for below in _COMPAT]
    lying = [path for folder in folders for path in files.glob(tree, f"{folder}/libcuda.so.*")]
    named = {path: match[1] for path in lying if (match := _DRIVER.search(path))}
    if not named:
        return None, ()
    first, version = next(iter(named.items()))
    real = files.resolve(tree, first)
    same = (path for path in named if files.resolve(tree, path) == real)
    return PackageVersion(version, first), tuple(posixpath.dirname(path) for path in same)


def tensorflow(finder: Finder) -> PackageVersion | None:
    """Return the version of TensorFlow from any of its Python packages, or None if the image has no
    TensorFlow.
    """
    names = ("tensorflow", "tensorflow_cpu", "tensorflow_gpu", "intel_tensorflow", "tensorflow_rocm")
    return python_package(finder.loader.tree, finder.places.sites, *names)


def tensorflow_built(finder: Finder, name: str) -> PackageVersion | UnknownVersion | None:
    """Return the value of ``name``, such as ``cuda_version``, in TensorFlow's ``build_info``. Return None if
    TensorFlow was built without CUDA.
    """
    for site in finder.places.sites:
        path = f"{site}/tensorflow/python/platform/build_info.py"
        content = files.text(finder.loader.tree, path, _MOST)
        if content is None:
            continue
        entries = dict(_ENTRY.findall(content))
        version = entries.get(name, "")
        if _RELEASE.match(version):
            return PackageVersion(version, f"{path}: {name} {version}")
        if entries.get("is_cuda_build") == "False":
            return None
        return UnknownVersion(f"{path} does not name {name}")
    return UnknownVersion("tensorflow/python/platform/build_info.py: not in the image")


def pytorch(finder: Finder) -> PackageVersion | None:
    """Return the version of PyTorch, or None if the image has no PyTorch."""
    package = python_package(finder.loader.tree, finder.places.sites, "torch")
    if package is None:
        path, content = _torch(finder)
        match = re.search(r"^__version__ *= *['\"]([\w.+]+)['\"]", content, re.MULTILINE)
        return PackageVersion(match[1], path) if match else None
    return package


def pytorch_cuda(finder: Finder) -> PackageVersion | UnknownVersion | None:
    """Return the CUDA version for which PyTorch was built, or None if PyTorch was built without CUDA."""
    path, content = _torch(finder)
    match = re.search(r"^cuda(?: *: *[\w\[\]. |]+)? *= *(None|['\"]([\d.]+)['\"])", content, re.MULTILINE)
    if match is None:
        return UnknownVersion(
            f"{path or 'torch/version.py'} does not name the CUDA release for which PyTorch was built"
        )
    return PackageVersion(match[2], f"{path}: cuda = {match[2]}") if match[2] else None


def pytorch_rocm(finder: Finder) -> PackageVersion | UnknownVersion | None:
    """Return the ROCm version for which PyTorch was built, or None if PyTorch was built without ROCm.

    Source: pytorch/pytorch:tools/generate_torch_version.py, which writes ``hip`` and ``cuda``.
    """
    path, content = _torch(finder)
    match = re.search(
        r"^hip(?: *: *[\w\[\]. |]+)? *= *(None|['\"]([\d.]+)[\w.-]*['\"])", content, re.MULTILINE
    )
    if match is None:
        return UnknownVersion(
            f"{path or 'torch/version.py'} does not name the ROCm release for which PyTorch was built"
        )
    return PackageVersion(match[2], f"{path}: hip = {match[2]}") if match[2] else None


def _torch(finder: Finder) -> tuple[str, str]:
    for site in finder.places.sites:
        path = f"{site}/torch/version.py"
        if content := files.text(finder.loader.tree, path, _MOST):
            return path, content
    return "", ""


def _folders(finder: Finder) -> Iterator[str]:
    loader = finder.loader
    yield from dict.fromkeys((*loader.library_path, *loader.default_folders))
    for pattern in _TOOLKITS:
        yield from files.glob(loader.tree, pattern)
    yield from finder.places.libraries


def _newest(finder: Finder, folder: str, name: str) -> str | None:
    """Return the path of a library in ``folder``, or None. If the folder has several files of the library,
    prefer the longest file name, because it contains the most exact version.
    """
    form = re.compile(rf"{name}(?:-[0-9a-f]+)?\.so\.(\d[\d.]*)\Z")
    named = [n for n in files.names(finder.loader.tree, folder) if form.match(n)]
    return posixpath.join(folder, max(named, key=len)) if named else None


def _by_name(finder: Finder, path: str) -> PackageVersion | None:
    real = files.resolve(finder.loader.tree, path) or path
    match = re.search(r"\.so\.(\d{1,3}(?:\.\d{1,4}){0,3})\Z", real)
    return PackageVersion(match[1], real) if match else None
