"""Read the properties of a machine that matter to a rank: processor, memory, networks, shared-memory
permissions.
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
"""x86-64 psABI, section 3.1.1, in the names of /proc/cpuinfo: SSE3 is ``pni``, LZCNT is ``abm``."""
_VENDOR = re.compile(r"[A-Za-z]{1,16}", re.ASCII)
_KIB = 1024
_INFO = re.compile(r"(?P<name>[\w.]{1,60}?)-(?P<version>\d[\w.+!]{0,40}?)(-py3[.\d]*)?\.(dist|egg)-info\Z")
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
_GLIBC = re.compile(r"GLIBC_(\d{1,2}\.\d{1,4}(?:\.\d{1,4})?)", re.ASCII)
_RELATIVE_RELOCATIONS = "2.36"
"""``GLIBC_ABI_DT_RELR`` was added by this release (see its NEWS)."""
_FABRICS = (
    ("slingshot", re.compile(r"/dev/cxi\d|/sys/class/cxi/")),
    ("aries", re.compile(r"/dev/kgni\d|/sys/class/gni/")),
    ("omni-path", re.compile(r"/dev/hfi1_|/sys/class/infiniband/hfi1_")),
    ("efa", re.compile(r"/sys/class/infiniband/\S+ efa$")),
)
_IDLE = re.compile(r"[123]: ")
"""DOWN, INIT and ARMED; an unreadable state does not count as down."""


def cpu_level(section: Section) -> str | None:
    """Return the newest level of x86-64 that the ``flags`` line of /proc/cpuinfo fully covers."""
    flags = {flag for line in section.lines if line.startswith("flags") for flag in line.split()}
    level = None
    for name, needed in _LEVELS:
        if not set(needed.split()) <= flags:
            break
        level = name
    return level


def cpu_vendor(section: Section) -> str | None:
    """Return the vendor of the processor."""
    found = _cpuinfo(section, "vendor_id")
    return found if found and _VENDOR.fullmatch(found) else None


def cpu_threads(section: Section) -> int | None:
    """Return the threads of a core: a package's threads by its cores, or two if the kernel has one
    switched off.
    """
    siblings, cores = _cpuinfo(section, "siblings"), _cpuinfo(section, "cpu cores")
    if not (siblings and cores and _NUMBER.fullmatch(siblings) and _NUMBER.fullmatch(cores)):
        return None
    if set(section.values("smt")) & {"off", "forceoff"}:
        return 2
    return max(1, int(siblings) // max(1, int(cores)))


def _cpuinfo(section: Section, name: str) -> str | None:
    told = (line.partition(":") for line in section.lines)
    return next((value.strip() for key, _, value in told if key.strip() == name), None)


def newest_glibc(names: tuple[str, ...]) -> str | None:
    """Return the newest release among names such as ``GLIBC_2.34``."""
    found = [m[1] for name in names if (m := _GLIBC.fullmatch(name))]
    found += [_RELATIVE_RELOCATIONS for name in names if name == "GLIBC_ABI_DT_RELR"]
    return max(found, key=lambda v: [int(part) for part in v.split(".")], default=None)


def shm(section: Section) -> int | None:
    """Return the bytes of /dev/shm, which ``df`` reports in kibibytes."""
    return next((int(v) * _KIB for v in section.values("shm") if _NUMBER.fullmatch(v)), None)


def locked_memory(section: Section) -> int | None:
    """Return the bytes that a process may lock, which ``ulimit`` reports in kibibytes; -1 for no limit."""
    for value in section.values("locked"):
        if value == "unlimited":
            return -1
        if _NUMBER.fullmatch(value):
            return int(value) * _KIB
    return None


def interfaces(section: Section) -> tuple[str, ...]:
    """Return the network interfaces; interfaces that are up and have a route come first."""
    states = dict(v.split(" ", 1) for v in section.values("state") if " " in v)
    routed = set(section.values("route"))
    names = {line for line in section.lines if line.strip() and " " not in line} - {"lo", "bonding_masters"}
    lasting = (name for name in names if not is_fleeting(name))
    return tuple(sorted(lasting, key=lambda n: (states.get(n) == "down", n not in routed, n)))


def routed_interfaces(section: Section) -> tuple[str, ...]:
    """Return the interfaces that are up and have a route; none if the answer does not contain routes."""
    states = dict(v.split(" ", 1) for v in section.values("state") if " " in v)
    known = set(section.values("route"))
    return tuple(n for n in interfaces(section) if n in known and states.get(n) != "down")


def infiniband(section: Section) -> tuple[str, ...]:
    """Return the devices below /sys/class/infiniband, except devices whose ports are all down."""
    return tuple(sorted(_rdma(section) - _down(section)))


def idle(section: Section) -> tuple[str, ...]:
    """Return the devices that carry nothing: they have no cable, or no subnet manager."""
    return tuple(sorted(_rdma(section) & _down(section)))


def _rdma(section: Section) -> set[str]:
    return {v.split(" ")[0] for v in section.values("infiniband") if v.strip()}


def _down(section: Section) -> set[str]:
    """Read ``port mlx5_0 4: ACTIVE`` (linux:Documentation/ABI/stable/sysfs-class-infiniband, state)."""
    ports = [(device, state) for device, _, state in (v.partition(" ") for v in section.values("port"))]
    return {device for device, _ in ports} - {device for device, state in ports if not _IDLE.match(state)}


def link_layers(section: Section) -> dict[str, str]:
    """Return the link layer of each device's ports (``link mlx5_0 Ethernet``): InfiniBand, if any port has
    it.
    """
    pairs = (value.partition(" ") for value in section.values("link"))
    found = [(device, layer.strip()) for device, _, layer in pairs if layer.strip()]
    return dict(sorted(found, key=lambda pair: pair[1] == "InfiniBand"))


def fabrics(section: Section) -> tuple[str, ...]:
    """Return the fast networks with a device, from ``device PATH DRIVER`` lines."""
    devices = section.values("device")
    return tuple(name for name, seen in _FABRICS if any(seen.match(device) for device in devices))


def number(section: Section, word: str) -> int | None:
    """Return the number after ``word``."""
    return next((int(v) for v in section.values(word) if _NUMBER.fullmatch(v)), None)


def mca_params(section: Section) -> dict[str, str]:
    """Read ``set btl = tcp,self`` lines; an earlier file has priority."""
    found: dict[str, str] = {}
    for line in section.values("set"):
        name, sign, value = line.partition("=")
        if sign and name.strip():
            found.setdefault(name.strip(), value.strip())
    return found


def user_site(section: Section) -> dict[str, tuple[str, ...]]:
    """Return Python release → packages of the home folder that matter to ranks: ``mpi4py 4.1.2``."""
    found: dict[str, list[str]] = {}
    for line in section.values("package"):
        release, _, info = line.partition(" ")
        if named := _INFO.match(info):
            found.setdefault(release, []).append(f"{named['name'].replace('_', '-')} {named['version']}")
    return {release: tuple(names) for release, names in found.items()}
