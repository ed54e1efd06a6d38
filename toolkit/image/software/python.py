"""Find the version of an image's Python, and whether this Python imports packages from the home folder."""

import re

from toolkit.image.files import tree as files
from toolkit.image.loader.loader import Loader
from toolkit.image.software.packages import PackageVersion, UnknownVersion

_MOST = 1 << 16
_BIN = re.compile(r"/bin/python[\d.]*\Z")
_VERSION = re.compile(r"^version(?:_info)?[ \t]*=[ \t]*(\d{1,2}\.\d{1,3}\.\d{1,3})", re.MULTILINE)


_SHARED = re.compile(r"^include-system-site-packages\s*=\s*true", re.MULTILINE | re.IGNORECASE)


def has_system_packages(settings: str) -> bool:
    """Return whether a virtual environment uses the system's packages; ``settings`` is its ``pyvenv.cfg``."""
    return _SHARED.search(settings) is not None


def reads_home(loader: Loader, program: str = "") -> bool:
    """Return whether Python imports packages from ~/.local, where ``pip install --user`` writes packages.

    ``program`` is the path of the Python; by default, this is the first python3 on PATH. The Python of a
    virtual environment without the system's packages does not use ~/.local (CPython:Lib/site.py, venv()).
    """
    program = program or loader.program("python3") or loader.program("python") or ""
    settings = files.text(loader.tree, _settings_beside(program), _MOST)
    return settings is None or has_system_packages(settings)


def _settings_beside(program: str) -> str:
    return f"{_BIN.sub('', program)}/pyvenv.cfg"


def python(loader: Loader, packages: dict[str, str]) -> PackageVersion | UnknownVersion | None:
    """Return the version of the first python3 on PATH, or None if PATH has no Python.

    If no folder of PATH contains python3, toolkit uses the program ``python`` instead. The version comes
    from pyvenv.cfg, from the Debian package, or from a text in the program or in libpython. If these sources
    do not contain the version, toolkit returns the minor release in the real file name of the program, such
    as ``3.11``.
    """
    program = loader.program("python3") or loader.program("python")
    if program is None:
        return None
    settings = _settings_beside(program)
    if match := _VERSION.search(files.text(loader.tree, settings, _MOST) or ""):
        return PackageVersion(match[1], f"{settings}: version = {match[1]}")
    real = files.resolve(loader.tree, program) or program
    minor = re.search(r"python(\d{1,2}\.\d{1,3})$", real)
    if minor is None:
        return _of_text(loader, real, r"3\.\d{1,3}") or UnknownVersion(
            f"{program} does not contain its version"
        )
    if real.startswith("/usr/bin/"):
        for name in (f"python{minor[1]}-minimal", f"python{minor[1]}"):
            release = re.match(r"\d+\.\d+\.\d+", packages.get(name, ""))
            if release and release[0].startswith(f"{minor[1]}."):
                return PackageVersion(release[0], f"dpkg: {name} {packages[name]}")
    if version := _of_text(loader, real, re.escape(minor[1])):
        return version
    return PackageVersion(minor[1], f"{program} is {real}")


def _of_text(loader: Loader, real_path: str, minor: str) -> PackageVersion | None:
    """Return the version that the interpreter or its libpython contains as text, or None."""
    libraries = [p for s, p in loader.closure(real_path)[0].items() if p and s.startswith("libpython3")]
    for path in (real_path, *libraries):
        versions = set(re.findall(rb"\0(" + minor.encode() + rb"\.\d{1,3})\+?(?=\0)", loader.texts(path)))
        if len(versions) == 1:
            return PackageVersion(version := versions.pop().decode(), f"{path} says {version}")
    return None
