"""Read the exact versions inside this image and write them down; runs once, in the image's own build.

Standard library alone: it runs in images that have nothing else.
"""

import argparse
import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path


def installed(*patterns: str) -> str:
    """Return the upstream version of the first Debian package that is there, else empty text."""
    for pattern in patterns:
        asked = subprocess.run(
            ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}\n", pattern],
            capture_output=True,
            text=True,
            check=False,
        )
        for line in asked.stdout.splitlines():
            status, _, version = line.partition(" ")
            if status == "installed":
                return re.split(r"[-+~]", version.partition(":")[2] or version)[0]
    return ""


def package(*names: str) -> str:
    """Return the version of the first Python package that is there, else empty text."""
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def mpi() -> tuple[str, str]:
    """Ask the MPI itself what it is."""
    for program, name, line in (
        (("ompi_info", "--version"), "openmpi", r"^Open MPI v(\S+)"),
        (("mpichversion",), "mpich", r"^MPICH Version:\s*(\S+)"),
    ):
        if shutil.which(program[0]):
            said = subprocess.run(program, capture_output=True, text=True, check=True)
            found = re.search(line, said.stdout, re.MULTILINE)
            return name, found[1] if found else ""
    return "", ""


def beside(library: str) -> Path | None:
    """Return a library that came with the MPI, and not from a package."""
    program = shutil.which("mpirun")
    folder = Path(program).resolve().parent.parent / "lib" if program else Path("/usr/lib")
    paths = (folder / library, folder / "openmpi" / library) if folder != Path("/usr/lib") else ()
    return next((path for path in paths if path.exists()), None)


def own(library: str, function: str) -> str:
    """Return the answer of a function in a library of the MPI; an empty text without the library."""
    path = beside(library)
    if path is None:
        return ""
    ask = getattr(ctypes.CDLL(str(path)), function)
    ask.restype = ctypes.c_char_p
    found = re.search(r"\d+(?:\.\d+)+(?:rc\d+)?", ask().decode())
    return found[0] if found else ""


def written(library: str) -> str:
    """Return the version that a library of the MPI contains, if no function returns it."""
    path = beside(library)
    found = re.search(rb"\0(\d+\.\d+\.\d+)\0", path.read_bytes()) if path else None
    return found[1].decode() if found else ""


def operations() -> list[str]:
    """Ask Horovod which ways of moving tensors it was built with."""
    if not package("horovod"):
        return []
    said = subprocess.run(["horovodrun", "--check-build"], capture_output=True, text=True, check=True)
    section = said.stdout.partition("Available Tensor Operations:")[2]
    return [name.lower() for name in re.findall(r"^\s*\[X\] (\S+)", section, re.MULTILINE)]


def distribution() -> str:
    said = platform.freedesktop_os_release()
    return " ".join(filter(None, (said.get("ID"), said.get("VERSION_ID"))))


def describe(recipe: str, base: str, toolkit: str) -> dict[str, object]:
    implementation, version = mpi()
    return {
        "schema": "toolkit.stack/1",
        "recipe": recipe,
        "distribution": distribution(),
        "architecture": platform.machine(),
        "glibc": os.confstr("CS_GNU_LIBC_VERSION").split()[-1],
        "python": platform.python_version(),
        "mpi": implementation,
        "mpi_version": version,
        "pmix": own("libpmix.so.2", "PMIx_Get_version") or installed("libpmix2", "libpmix2t64"),
        "ucx": own("libucp.so.0", "ucp_get_version_string") or installed("libucx0"),
        "libfabric": installed("libfabric1"),
        "hwloc": written("libhwloc.so.15") or installed("libhwloc15"),
        "tensorflow": package("tensorflow", "tensorflow-cpu"),
        "torch": package("torch"),
        "jax": package("jax"),
        "horovod": package("horovod"),
        "horovod_operations": operations(),
        "mpi4py": package("mpi4py"),
        "numpy": package("numpy"),
        "base": base,
        "toolkit": toolkit,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--recipe", "--base", "--toolkit", "--output"):
        parser.add_argument(option, required=True)
    given = parser.parse_args()
    found = json.dumps(describe(given.recipe, given.base, given.toolkit), indent=2, sort_keys=True)
    Path(given.output).write_text(found + "\n", encoding="utf-8")
