"""Write wheels without code. From these wheels, uv's resolver learns which Python packages an image has."""

import zipfile
from pathlib import Path

from toolkit.image.envs.interpreter import InstalledPackage


def write_stub(folder: Path, package: InstalledPackage) -> Path:
    """Write a wheel that contains only the metadata of an image's package, and return the wheel's path."""
    stem = f"{package.name.replace('-', '_')}-{package.version}"
    file = folder / f"{stem}-py3-none-any.whl"
    lines = ["Metadata-Version: 2.1", f"Name: {package.name}", f"Version: {package.version}"]
    lines += [f"Provides-Extra: {extra}" for extra in package.extras]
    lines += [f"Requires-Dist: {' '.join(line.split())}" for line in package.requirements]
    info = f"{stem}.dist-info"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return file
