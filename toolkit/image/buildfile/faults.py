"""Find faults in a build file (Dockerfile or definition file). These faults occur on every cluster."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from toolkit.image.buildfile.installed import PackageInstall
from toolkit.image.buildfile.known import BaseName
from toolkit.knowledge.cuda import cuda as cuda_table
from toolkit.model.finding import Finding, Severity
from toolkit.versions import parse, within

_SOURCE = "the text of the build file"


class _Mpi(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def order(self) -> int: ...
    @property
    def report_line(self) -> str: ...


def faults(
    name: str,
    mpis: Sequence[_Mpi],
    packages: Mapping[str, PackageInstall],
    base: BaseName | None,
    versions: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield the faults of a build file.

    Args:
        name: the name of the build file.
        mpis: every MPI that the build file installs.
        packages: the Python packages that the build file installs. The keys are the names of fields in
            :class:`~toolkit.model.facts.ImageFacts`, such as ``pytorch`` for the package ``torch``.
        base: the row of ``buildfiles.toml`` for the base image, or None if no row matches.
        versions: the versions in the name of the base image, for example ``{"cuda": "12.2"}``.
    """
    if base is not None and base.musl and (found := _first(packages, ("tensorflow", "pytorch", "jax"))):
        yield _fault(
            "base-without-glibc",
            "error",
            f"{found.name} has no wheels for Alpine, whose C library is musl",
            (f"{name}:{found.line}: {found.name}, installed by {found.installer}",),
            "use a base image with glibc, such as debian:12 or ubuntu:22.04",
        )
    yield from _horovod(name, mpis, packages, versions)
    kinds = {mpi.name for mpi in mpis}
    if len(kinds) > 1:
        yield _fault(
            "several-mpis",
            "warning",
            "The file installs several MPIs, so a program may load an MPI that it was not built with",
            tuple(mpi.report_line for mpi in mpis),
            "install only one MPI",
        )
    if not mpis and "mpi4py" in packages and base is not None and not base.opaque:
        package = packages["mpi4py"]
        yield _fault(
            "mpi-missing",
            "error",
            "mpi4py needs an MPI library, but the file does not install one",
            (f"{name}:{package.line}: mpi4py, installed by {package.installer}",),
            "install an MPI before mpi4py, for example the packages libopenmpi-dev and openmpi-bin",
        )
    yield from _cuda(name, packages, versions)


def _horovod(
    name: str, mpis: Sequence[_Mpi], packages: Mapping[str, PackageInstall], versions: Mapping[str, str]
) -> Iterator[Finding]:
    horovod = packages.get("horovod")
    if horovod is None:
        return
    horovod_line = f"{name}:{horovod.line}: horovod, installed by {horovod.installer}"
    later = [mpi for mpi in mpis if mpi.order >= horovod.order]
    if mpis and len(later) == len(mpis):
        yield _fault(
            "horovod-before-mpi",
            "error",
            "Horovod is installed before the MPI, so Horovod is built without MPI",
            (horovod_line, later[0].report_line),
            "install the MPI before Horovod; HOROVOD_WITH_MPI=1 makes Horovod's build fail without MPI",
        )
    elif not mpis:
        yield _fault(
            "horovod-without-mpi",
            "warning",
            "The file installs no MPI, so Horovod is built only with Gloo",
            (horovod_line,),
            "install libopenmpi-dev and openmpi-bin before Horovod, or launch with --mode gloo",
        )
    frameworks = [package for key in ("tensorflow", "pytorch") if (package := packages.get(key))]
    of_base = "tensorflow" in versions or "pytorch" in versions
    if not of_base and not any(package.order < horovod.order for package in frameworks):
        yield _fault(
            "horovod-before-framework",
            "error",
            "No framework is installed before Horovod, so Horovod supports neither TensorFlow nor PyTorch",
            (horovod_line, *(f"{name}:{package.line}: {package.name}" for package in frameworks)),
            "install TensorFlow or PyTorch in a step before Horovod",
        )


def _cuda(
    name: str, packages: Mapping[str, PackageInstall], versions: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield a fault if TensorFlow's wheel needs another major release of CUDA than the base image has."""
    tensorflow, cuda = packages.get("tensorflow"), parse(versions.get("cuda", ""))
    if tensorflow is None or not tensorflow.version or cuda is None or tensorflow.name == "tensorflow-cpu":
        return
    row = next((r for r in cuda_table().tensorflow if within(tensorflow.version, r.versions)), None)
    if row is not None and cuda.release[:1] != (parse(row.cuda) or cuda).release[:1]:
        yield _fault(
            "cuda-of-base-differs",
            "error",
            f"TensorFlow {tensorflow.version} needs CUDA {row.cuda}; the base image has {versions['cuda']}",
            (f"{name}:{tensorflow.line}: {tensorflow.name} {tensorflow.version}", row.source),
            f"use a base image with CUDA {row.cuda}, or another release of TensorFlow",
        )


def _first(packages: Mapping[str, PackageInstall], names: Sequence[str]) -> PackageInstall | None:
    return next((packages[name] for name in names if name in packages), None)


def _fault(identity: str, severity: Severity, title: str, evidence: tuple[str, ...], fix: str) -> Finding:
    return Finding(id=identity, severity=severity, title=title, evidence=evidence, fix=fix, source=_SOURCE)
