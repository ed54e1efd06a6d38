"""Collect toolkit and all its requirements as wheels, for a machine without a network."""

import base64
import hashlib
import importlib.metadata
import re
import sys
import zipfile
from pathlib import Path

from toolkit import DISTRIBUTION, data
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.model.progress import Tell
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner
from toolkit.versions import OLDEST_PYTHON, older

_SECONDS = 900.0
_EPOCH = "1580601600"
"""The modification time of the files in toolkit's wheel, in seconds since 1970: 2 February 2020, the default
of the build tool hatchling.
"""
_ZIP_TIME = (2020, 2, 2, 0, 0, 0)
_PLATFORMS = (
    "manylinux_2_28",
    "manylinux_2_17",
    "manylinux2014",
    "manylinux_2_12",
    "manylinux2010",
    "manylinux_2_5",
)
"""The platform tags of wheels that work on a system with glibc 2.28 or later (PEP 600)."""


def gather(folder: Path, pythons: tuple[str, ...], machine: str, tell: Tell) -> tuple[Path, ...]:
    """Write the wheels of toolkit and of its requirements to ``folder``, and return the paths of the wheels.

    ``pythons`` are the Python versions for the wheels, such as ``3.11``. ``machine`` is the processor type,
    such as ``x86_64``. The requirements have the same versions as in toolkit's own Python environment.

    Raises:
        BadInput: if a Python version is invalid or too old.
        CheckFailed: if pip fails, for example because the package index has no wheel of a requirement.
        Missing: if the Python that runs toolkit has no pip.
    """
    for python in pythons:
        if not re.fullmatch(r"\d\.\d{1,2}", python) or older(python, OLDEST_PYTHON):
            raise BadInput(f"--python {python}: expected MAJOR.MINOR, at least {OLDEST_PYTHON}, such as 3.12")
    tell.step("Building a wheel of toolkit")
    own = _own_wheel(folder, tell)
    pins = folder / "constraints.txt"
    pins.write_text("".join(f"{name}=={version}\n" for name, version in sorted(requirements().items())))
    for python in pythons:
        tell.step(f"Downloading the wheels that toolkit needs on Python {python}")
        tag = f"cp{python.replace('.', '')}"
        choice = ("--only-binary=:all:", "--python-version", python, "--implementation", "cp")
        abis = tuple(word for abi in (tag, "abi3", "none") for word in ("--abi", abi))
        platforms = tuple(word for p in _PLATFORMS for word in ("--platform", f"{p}_{machine}"))
        _pip(("download", *choice, *abis, *platforms, "-c", str(pins), "-d", str(folder), str(own)), tell)
    pins.unlink()
    return tuple(sorted(folder.glob("*.whl")))


def requirements(name: str = DISTRIBUTION) -> dict[str, str]:
    """Return the installed version of each package that a distribution requires, directly or indirectly.

    The keys of the result are package names. The result omits packages that only an optional extra requires.
    """
    from packaging.requirements import Requirement

    versions: dict[str, str] = {}
    waiting = [name]
    while waiting:
        for line in importlib.metadata.requires(waiting.pop()) or ():
            wanted = Requirement(line)
            if wanted.name in versions or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
                continue
            versions[wanted.name] = importlib.metadata.version(wanted.name)
            waiting.append(wanted.name)
    return versions


def _own_wheel(folder: Path, tell: Tell) -> Path:
    checkout = data.package().parent
    if (checkout / "pyproject.toml").is_file():
        _pip(("wheel", "--no-deps", "-w", str(folder), str(checkout)), tell)
    else:
        rebuild_wheel(importlib.metadata.distribution(DISTRIBUTION), folder)
    wheels = sorted(folder.glob(f"{DISTRIBUTION.replace('-', '_')}-*.whl"))
    if not wheels:
        raise CheckFailed(f"pip did not build a wheel of {checkout}")
    return wheels[0]


def rebuild_wheel(distribution: importlib.metadata.Distribution, folder: Path) -> Path:
    """Build a wheel in ``folder`` from the installed files of a distribution, and return the wheel's path.
    Equal installed files give equal wheels, byte for byte.
    """
    installed = distribution.files or ()
    meta = next(str(f.parent) for f in installed if f.name == "METADATA" and f.parent.suffix == ".dist-info")
    left_out = {f"{meta}/{name}" for name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")}
    files = {
        str(file): Path(str(distribution.locate_file(file))).read_bytes()
        for file in installed
        if str(file) not in left_out and ".." not in file.parts and file.suffix != ".pyc"
    }
    record = "".join(f"{name},{_record_columns(content)}\n" for name, content in sorted(files.items()))
    files[f"{meta}/RECORD"] = f"{record}{meta}/RECORD,,\n".encode()
    wheel = folder / f"{meta.removesuffix('.dist-info')}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, _ZIP_TIME), files[name], zipfile.ZIP_DEFLATED)
    return wheel


def _record_columns(content: bytes) -> str:
    """Return the hash and the size of ``content``, as two columns of the file ``RECORD`` in a wheel.

    Source: packaging.python.org, "Recording installed projects".
    """
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"sha256={digest},{len(content)}"


def _pip(words: tuple[str, ...], tell: Tell) -> None:
    start = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
    command = Command((*start, *words), env={"SOURCE_DATE_EPOCH": _EPOCH}, timeout=_SECONDS)
    done = LocalRunner().stream(command, tell.detail)
    if "No module named pip" in done.errors:
        raise Missing(
            "toolkit downloads wheels with pip, but the Python that runs toolkit has no pip",
            fix=f"install pip: `{sys.executable} -m ensurepip`",
        )
    done.require(
        "building or downloading wheels with pip",
        "check pip's settings and proxies, and that the package index is reachable",
    )
