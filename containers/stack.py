"""Read the exact versions inside this image and write them down; runs once, in the image's own build.

Standard library alone: it runs in images that have nothing else.
"""

import argparse
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
    if shutil.which("ompi_info"):
        said = subprocess.run(["ompi_info", "--version"], capture_output=True, text=True, check=True)
        found = re.search(r"^Open MPI v(\S+)", said.stdout, re.MULTILINE)
        return "openmpi", found[1] if found else ""
    return "", ""


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
        "pmix": installed("libpmix2", "libpmix2t64"),
        "ucx": installed("libucx0"),
        "libfabric": installed("libfabric1"),
        "hwloc": installed("libhwloc15"),
        "tensorflow": package("tensorflow", "tensorflow-cpu"),
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
