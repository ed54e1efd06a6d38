"""Read a machine's processor, memory, networks and MPI settings from sections of the probe's output.

``system.py`` reads the GPUs.
"""

import re

from toolkit.knowledge.fabric import is_fleeting
from toolkit.probe.evidence import Section

_LEVELS = (
    ("x86-64-v1", "cmov cx8 fpu fxsr mmx sse sse2 lm"),
    ("x86-64-v2", "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"),
    ("x86-64-v3", "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"),
    ("x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"),
)
"""The flags of each x86-64 level (x86-64 psABI, section 3.1.1), with the names in /proc/cpuinfo: ``pni`` is
SSE3, ``abm`` is LZCNT.
"""
_VENDOR = re.compile(r"[A-Za-z]{1,16}", re.ASCII)
_KIB = 1024
_INFO = re.compile(r"(?P<name>[\w.]{1,60}?)-(?P<version>\d[\w.+!]{0,40}?)(-py3[.\d]*)?\.(dist|egg)-info\Z")
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
_GLIBC = re.compile(r"GLIBC_(\d{1,2}\.\d{1,4}(?:\.\d{1,4})?)", re.ASCII)
_RELATIVE_RELOCATIONS = "2.36"
"""The glibc release that introduced ``GLIBC_ABI_DT_RELR`` (NEWS of glibc)."""
_FABRICS = (
    ("slingshot", re.compile(r"/dev/cxi\d|/sys/class/cxi/")),
    ("aries", re.compile(r"/dev/kgni\d|/sys/class/gni/")),
    ("omni-path", re.compile(r"/dev/hfi1_|/sys/class/infiniband/hfi1_")),
    ("efa", re.compile(r"/sys/class/infiniband/\S+ efa$")),
)
_IDLE = re.compile(r"[123]: ")
"""A pattern for the port states that count as down: DOWN, INIT and ARMED. A port with an unreadable state
does not count as down.
"""


def cpu_level(section: Section) -> str | None:
    """Return the highest x86-64 level whose flags are all in /proc/cpuinfo, for example ``x86-64-v3``."""
    flags = {flag for line in section.lines if line.startswith("flags") for flag in line.split()}
    level = None
    for name, needed in _LEVELS:
        if not set(needed.split()) <= flags:
            break
        level = name
    return level


def cpu_vendor(section: Section) -> str | None:
    """Return the vendor of the processor, for example ``GenuineIntel``."""
    vendor = _cpuinfo(section, "vendor_id")
    return vendor if vendor and _VENDOR.fullmatch(vendor) else None


def cpu_threads(section: Section) -> int | None:
    """Return the number of hardware threads per core.

    The result is the number of a processor's threads divided by the number of its cores. If SMT is switched
    off, the kernel counts only one thread of each core. The function then returns 2, because the processor
    still has two threads per core.
    """
    siblings, cores = _cpuinfo(section, "siblings"), _cpuinfo(section, "cpu cores")
    if not (siblings and cores and _NUMBER.fullmatch(siblings) and _NUMBER.fullmatch(cores)):
        return None
    if set(section.values("smt")) & {"off", "forceoff"}:
        return 2
    return max(1, int(siblings) // max(1, int(cores)))


def _cpuinfo(section: Section, name: str) -> str | None:
    entries = (line.partition(":") for line in section.lines)
    return next((value.strip() for key, _, value in entries if key.strip() == name), None)


def newest_glibc(names: tuple[str, ...]) -> str | None:
    """Return the newest release in names such as ``GLIBC_2.34``; None if no name is valid."""
    versions = [m[1] for name in names if (m := _GLIBC.fullmatch(name))]
    versions += [_RELATIVE_RELOCATIONS for name in names if name == "GLIBC_ABI_DT_RELR"]
    return max(versions, key=lambda v: [int(part) for part in v.split(".")], default=None)


def shm(section: Section) -> int | None:
    """Return the size of /dev/shm in bytes; ``df`` reports KiB."""
    return next((int(v) * _KIB for v in section.values("shm") if _NUMBER.fullmatch(v)), None)


def locked_memory(section: Section) -> int | None:
    """Return the limit of locked memory in bytes; -1 means no limit. ``ulimit`` reports KiB."""
    for value in section.values("locked"):
        if value == "unlimited":
            return -1
        if _NUMBER.fullmatch(value):
            return int(value) * _KIB
    return None


def interfaces(section: Section) -> tuple[str, ...]:
    """Return the network interfaces, except loopback interfaces and temporary interfaces of containers.

    Interfaces that are not down and have a route come first, then other interfaces that are not down, then
    interfaces that are down.
    """
    states = dict(v.split(" ", 1) for v in section.values("state") if " " in v)
    routed = set(section.values("route"))
    names = {line for line in section.lines if line.strip() and " " not in line} - {"lo", "bonding_masters"}
    lasting = (name for name in names if not is_fleeting(name))
    return tuple(sorted(lasting, key=lambda n: (states.get(n) == "down", n not in routed, n)))


def routed_interfaces(section: Section) -> tuple[str, ...]:
    """Return the interfaces that have a route and are not down; empty if the section has no routes."""
    states = dict(v.split(" ", 1) for v in section.values("state") if " " in v)
    known = set(section.values("route"))
    return tuple(n for n in interfaces(section) if n in known and states.get(n) != "down")


def infiniband(section: Section) -> tuple[str, ...]:
    """Return the devices in /sys/class/infiniband, except devices whose ports are all down."""
    return tuple(sorted(_rdma(section) - _down(section)))


def idle(section: Section) -> tuple[str, ...]:
    """Return the devices whose ports are all down, for example because a cable or the subnet manager is
    missing.
    """
    return tuple(sorted(_rdma(section) & _down(section)))


def _rdma(section: Section) -> set[str]:
    return {v.split(" ")[0] for v in section.values("infiniband") if v.strip()}


def _down(section: Section) -> set[str]:
    """Return the devices whose ports are all down, from lines such as ``port mlx5_0 4: ACTIVE``.

    Source: linux:Documentation/ABI/stable/sysfs-class-infiniband, state.
    """
    ports = [(device, state) for device, _, state in (v.partition(" ") for v in section.values("port"))]
    return {device for device, _ in ports} - {device for device, state in ports if not _IDLE.match(state)}


def link_layers(section: Section) -> dict[str, str]:
    """Return the link layer of each device, from lines such as ``link mlx5_0 Ethernet``.

    If a device has ports with different link layers, the result for the device is InfiniBand.
    """
    pairs = (value.partition(" ") for value in section.values("link"))
    layers = [(device, layer.strip()) for device, _, layer in pairs if layer.strip()]
    return dict(sorted(layers, key=lambda pair: pair[1] == "InfiniBand"))


def fabrics(section: Section) -> tuple[str, ...]:
    """Return the fast networks for which the machine has a device, from ``device PATH DRIVER`` lines."""
    devices = section.values("device")
    return tuple(name for name, pattern in _FABRICS if any(pattern.match(device) for device in devices))


def number(section: Section, word: str) -> int | None:
    """Return the number after ``word`` in a section, or None if the section has no such number."""
    return next((int(v) for v in section.values(word) if _NUMBER.fullmatch(v)), None)


def mca_params(section: Section) -> dict[str, str]:
    """Return the MCA parameters in lines such as ``set btl = tcp,self``; if a parameter occurs several times,
    the result contains its first value.
    """
    settings: dict[str, str] = {}
    for line in section.values("set"):
        name, sign, value = line.partition("=")
        if sign and name.strip():
            settings.setdefault(name.strip(), value.strip())
    return settings


def user_site(section: Section) -> dict[str, tuple[str, ...]]:
    """Return the packages in ``~/.local`` that affect ranks, such as ``mpi4py 4.1.2``. The keys are Python
    versions.
    """
    packages: dict[str, list[str]] = {}
    for line in section.values("package"):
        release, _, info = line.partition(" ")
        if named := _INFO.match(info):
            packages.setdefault(release, []).append(f"{named['name'].replace('_', '-')} {named['version']}")
    return {release: tuple(names) for release, names in packages.items()}
