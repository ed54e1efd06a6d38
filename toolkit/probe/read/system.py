"""Parse a machine's distribution, C library, GPUs and GPU drivers."""

import re
import shlex

from toolkit.probe.evidence import TIMED_OUT, Section

_DRIVER = re.compile(r"Kernel Module(?:\s+for\s+\S+)?\s+(\d+\.\d[\d.]*)")
_DEVICE = re.compile(r"0x([0-9a-f]{4})", re.ASCII)
_TARGET = re.compile(r"\d{5,6}", re.ASCII)
_GLIBC = re.compile(r"(?:glibc|ldd \(.*\)) (\d+\.\d+)\s*$", re.ASCII)


def first_line(section: Section) -> str | None:
    """Return the first nonempty line of a section; None if the query failed or there is no such line."""
    return next((line.strip() for line in section.lines if line.strip()), None) if section.ok else None


def distribution(lines: tuple[str, ...]) -> str | None:
    """Return the distribution from ``os-release``, such as ``debian 12 (bookworm)``.

    For a rolling release, the result contains only the distribution's name.
    """
    values: dict[str, str] = {}
    for line in lines:
        name, sign, value = line.partition("=")
        if sign:
            try:
                values[name.strip()] = " ".join(shlex.split(value))
            except ValueError:  # the file may have an unclosed quote, because users can edit it
                values[name.strip()] = value.strip()
    words = (values.get("ID"), values.get("VERSION_ID"))
    code = values.get("VERSION_CODENAME")
    shown = " ".join(word for word in words if word)
    return f"{shown} ({code})" if shown and code else shown or None


def glibc(section: Section) -> str | None:
    """Return glibc's version from ``getconf GNU_LIBC_VERSION`` or ``ldd --version``, such as ``2.41``."""
    matches = (_GLIBC.match(line) for line in section.lines if section.ok)
    return next((match[1] for match in matches if match), None)


def gpu_driver(section: Section) -> str | None:
    """Return the version of the NVIDIA driver, from /proc/driver/nvidia or nvidia-smi."""
    for line in section.lines:
        if match := _DRIVER.search(line):
            return match[1]
        if match := re.match(r"^(\d{3}\.\d[\d.]*)\s*,", line):
            return match[1]
    return None


def has_no_driver(section: Section) -> bool:
    """Return whether the machine lacks an NVIDIA driver, which is common for login nodes.

    The machine has no driver if nvidia-smi is missing or reports no driver. If /proc/driver/nvidia shows a
    version, a driver exists, even if nvidia-smi cannot communicate with it.
    """
    silent = any("couldn't communicate with the NVIDIA driver" in line for line in section.lines)
    return section.missing or (silent and gpu_driver(section) is None)


def mismatch(section: Section) -> bool:
    """Return whether nvidia-smi reports that its libraries and the driver have different releases."""
    return any("Driver/library version mismatch" in line for line in section.lines)


def smi_trouble(section: Section) -> str:
    """Return the error message of nvidia-smi, without the lines from /proc that precede the message."""
    if section.ok or section.status == TIMED_OUT:
        return section.trouble
    files = ("NVRM version:", "GCC version:", "model ")
    return next(
        (line for line in section.lines if line.strip() and not line.startswith(files)), section.trouble
    )


def gpus(section: Section) -> tuple[str, ...] | None:
    """Return the names of the GPUs, from nvidia-smi or else from /proc/driver/nvidia.

    In a job without GPUs, nvidia-smi does not list the node's GPUs, but /proc/driver/nvidia does.
    """
    listed = [
        line.partition(",")[2].strip() for line in section.lines if re.match(r"^\d{3}\.\d[\d.]*\s*,", line)
    ]
    return tuple(name for name in listed if name) or tuple(v.strip() for v in section.values("model")) or None


def mig(section: Section) -> tuple[str, ...] | None:
    """Return the profiles of the MIG instances that nvidia-smi lists, or None if ``nvidia-smi -L`` failed."""
    return section.values("part") if "parts listed" in section.lines else None


def amd_gpus(section: Section) -> tuple[str, ...]:
    """Return the AMD GPUs of a machine from ``device 0x7408`` and ``gfx 90010`` lines.

    The result has one entry for each GPU: the architecture (``gfx90a``), or the PCI ids (``1002:7408``) if
    there are no ``gfx`` lines. ``device`` lines list GPUs on the PCI bus; ``gfx`` lines list GPUs that a job
    may use. A partitioned GPU is one device on the bus, but several GPUs for the compute driver.
    """
    numbers = [m[1] for value in section.values("device") if (m := _DEVICE.fullmatch(value))]
    names = [_architecture(int(value)) for value in section.values("gfx") if _TARGET.fullmatch(value)]
    if len(set(names)) == 1:
        return (names[0],) * max(len(names), len(numbers))
    return tuple(names) or tuple(f"1002:{number}" for number in numbers)


def _architecture(target: int) -> str:
    """Return the name of a GPU architecture, such as ``gfx90a`` for 90010.

    Source: linux:drivers/gpu/drm/amd/amdkfd/kfd_device.c, gfx_target_version.
    """
    return f"gfx{target // 10000}{target // 100 % 100:x}{target % 100:x}"
