"""Find the glibc version and the x86-64 level (set of CPU instructions) that an image's files need."""

import re

from toolkit.image.loader.elf import Elf
from toolkit.image.software.packages import PackageVersion

_C_LIBRARY = re.compile(
    r".*/(ld-linux[\w.-]*|ld-[\d.]+|lib(c|m|mvec|dl|rt|pthread|util|resolv|anl|nsl|nss_\w+|thread_db))[.-]"
)
_GLIBC = re.compile(r"GLIBC_(\d{1,3})\.(\d{1,3})(?:\.\d+)?\Z")


def glibc_needed(headers: dict[str, Elf]) -> PackageVersion | None:
    """Return the newest glibc version that an ELF file needs, such as ``2.34``, or None if no file needs
    glibc.

    ``headers`` maps the path of each ELF file to the file's headers. The function ignores glibc's own files.
    """
    newest, which = (0, 0), ""
    for path, elf in headers.items():
        if _C_LIBRARY.match(path):
            continue
        for name in elf.versions:
            if (match := _GLIBC.match(name)) and (int(match[1]), int(match[2])) > newest:
                newest, which = (int(match[1]), int(match[2])), path
    version = f"{newest[0]}.{newest[1]}"
    return PackageVersion(version, f"{which} needs GLIBC_{version}") if which else None


def cpu_level(headers: dict[str, Elf]) -> PackageVersion | None:
    """Return the highest x86-64 level that an ELF file needs, such as ``x86-64-v3``, or None if no file
    states a level. ``headers`` maps the path of each ELF file to the file's headers.
    """
    asking = [(elf.level, path) for path, elf in headers.items() if elf.level]
    if not asking:
        return None
    level, path = max(asking)
    return PackageVersion(f"x86-64-v{level}", f"{path} requires x86-64-v{level} (.note.gnu.property)")
