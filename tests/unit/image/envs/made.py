"""Make a small image with Python packages, and wheels, without a network."""

import hashlib
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

from tests.unit.image.sifs import elf, sif, squashfs
from tests.unit.image.test_inspect import BASE

SITE = "/usr/local/lib/python3.11/dist-packages"
MINOR = "3.11"


def write_image(
    path: Path, packages: dict[str, str] | None = None, requires: dict[str, str] | None = None
) -> Path:
    """Write a SIF with Python 3.11 and the named packages, which contain no code."""
    files = {**BASE, "/usr/bin/python3.11": elf(text=b"\x003.11.2\0")}
    for name, version in (packages or {"numpy": "1.26.4", "six": "1.16.0"}).items():
        lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
        if needs := (requires or {}).get(name):
            lines.append(f"Requires-Dist: {needs}\n")
        files[f"{SITE}/{name}-{version}.dist-info/METADATA"] = "".join(lines)
    content = {name: _bytes(given) for name, given in files.items()}
    path.write_bytes(sif(squashfs(content)))
    return path


def _bytes(given: str | bytes) -> str | bytes:
    return given if isinstance(given, bytes) or given.startswith("->") else given.encode()


def write_wheel(
    folder: Path,
    name: str,
    version: str,
    *requires: str,
    tag: str = "py3-none-any",
    files: dict[str, str] | None = None,
    scripts: str = "",
) -> Path:
    """Write a wheel whose module has the version as ``VERSION``, and return the wheel's path."""
    folder.mkdir(exist_ok=True)
    stem = f"{name}-{version}"
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    lines += [f"Requires-Dist: {one}\n" for one in requires]
    inside = {
        f"{name}/__init__.py": f"VERSION = {version!r}\n",
        **(files or {}),
        f"{stem}.dist-info/METADATA": "".join(lines),
        f"{stem}.dist-info/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    if scripts:
        inside[f"{stem}.dist-info/entry_points.txt"] = f"[console_scripts]\n{scripts} = {name}:main\n"
    rows = []
    for path, text in inside.items():
        digest = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(text)}\n")
    inside[f"{stem}.dist-info/RECORD"] = "".join([*rows, f"{stem}.dist-info/RECORD,,\n"])
    file = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        for path, text in inside.items():
            wheel.writestr(path, text)
    return file
