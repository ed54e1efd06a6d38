"""Read facts about a machine, such as its GPUs and networks, and record the evidence for each fact."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from toolkit.probe.evidence import Section
from toolkit.probe.evidence_log import HostEvidence
from toolkit.probe.read import machine, runtime, system
from toolkit.probe.read.withheld import public

_T = TypeVar("_T")
_GIB = 1 << 30
_NO_X86 = "/proc/cpuinfo does not describe an x86 processor"


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Read facts from the sections of a probe's output, and record the evidence for each fact in ``book``.

    Each public method except ``facts`` has the name of a field of :class:`toolkit.model.facts.HostFacts`, and
    returns the value of this field.
    """

    ask: Callable[[str], Section]
    book: HostEvidence

    def facts(self) -> dict[str, Any]:
        """Return the values of all facts by name."""
        methods = {name: value for name, value in vars(MachineFacts).items() if callable(value)}
        names = [name for name in methods if not name.startswith("_") and name != "facts"]
        return {name: getattr(self, name)() for name in names}

    def gpu_driver(self) -> str | None:
        section = self.ask("gpu")
        version = system.gpu_driver(section)
        if version:
            self.book.note("gpu_driver", f"NVIDIA driver {version}")
        elif system.has_no_driver(section):
            self.book.absent["gpu_driver"] = _no_driver(section)
        else:
            self.book.unknown["gpu_driver"] = (
                f"nvidia-smi: {system.smi_trouble(section) or 'the output contains no driver version'}"
            )
        return version

    def gpus(self) -> tuple[str, ...] | None:
        section = self.ask("gpu")
        models = system.gpus(section)
        if models:
            self.book.note("gpus", f"nvidia-smi, /proc/driver/nvidia: {', '.join(models)}")
        elif system.has_no_driver(section):
            self.book.absent["gpus"] = _no_driver(section)
        else:
            self.book.unknown["gpus"] = (
                f"nvidia-smi: {system.smi_trouble(section) or 'the output lists no GPU'}"
            )
        return models

    def mig(self) -> tuple[str, ...] | None:
        section = self.ask("gpu")
        instances = system.mig(section)
        if instances is not None:
            self.book.note("mig", f"nvidia-smi -L: {' '.join(instances) or 'no MIG instances'}")
        elif system.has_no_driver(section):
            self.book.absent["mig"] = _no_driver(section)
        else:
            self.book.unknown["mig"] = (
                f"nvidia-smi -L: {system.smi_trouble(section) or 'the probe did not read this fact'}"
            )
        return instances

    def gpu_mismatch(self) -> bool:
        section = self.ask("gpu")
        text = system.mismatch(section)
        if text:
            self.book.note("gpu_mismatch", f"nvidia-smi: {system.smi_trouble(section)}")
        return text

    def user_namespaces_limit(self) -> int | None:
        section = self.ask("user-namespaces")
        limit = runtime.namespaces_limit(section)
        if limit is not None:
            self.book.note("user_namespaces_limit", f"user.max_user_namespaces = {limit}")
        elif section.ok or section.lines:
            # The setting user.max_user_namespaces exists since Linux 4.9 (user_namespaces(7)).
            self.book.absent["user_namespaces_limit"] = "user.max_user_namespaces: the kernel has no limit"
        else:
            self.book.unread("user_namespaces_limit", section, "user.max_user_namespaces")
        return limit

    def fuse3(self) -> str | None:
        section = self.ask("fuse3")
        line = system.first_line(section)
        if line:
            self.book.note("fuse3", f"libfuse3.so, fusermount3 -V: {line}")
        else:
            self.book.lacks("fuse3", section, "libfuse3.so and fusermount3")
        return line

    def fuse_device(self) -> bool | None:
        section = self.ask("fuse-device")
        line = next(iter(section.values("open")), None)
        if line is None:
            self.book.unread("fuse_device", section, "/dev/fuse")
            return None
        self.book.note("fuse_device", f"/dev/fuse: {'a user can open it' if line == 'yes' else line[4:]}")
        return line == "yes"

    def kernel_mounts(self) -> tuple[str, ...] | None:
        section = self.ask("kernel-mounts")
        mounts = runtime.kernel_mounts(section) if section.ok else None
        if mounts is None:
            self.book.unknown["kernel_mounts"] = (
                "the list of kernel modules cannot be read, or the probe did not read this fact"
            )
            return None
        has, lacks = mounts
        modules = "; ".join((*section.values("has"), *(f"no module {name}" for name in lacks)))
        self.book.note("kernel_mounts", f"kernel: {modules}")
        return has

    def amd_gpus(self) -> tuple[str, ...] | None:
        section = self.ask("gpu-amd")
        if not section.ok:
            self.book.unread("amd_gpus", section, "/sys/bus/pci/drivers/amdgpu")
            return None
        models = system.amd_gpus(section)
        counted = ", ".join(f"{models.count(name)} of {name}" for name in dict.fromkeys(models))
        self.book.note("amd_gpus", f"/sys/bus/pci/drivers/amdgpu, /sys/class/kfd: {counted or 'no AMD GPU'}")
        return models

    def gpu_libraries_glibc(self) -> str | None:
        section = self.ask("gpu-libraries")
        files = section.values("file")
        version = machine.newest_glibc(section.values("glibc"))
        if version:
            newest = f"GLIBC_{version} is the newest symbol version that these files need"
            self.book.note("gpu_libraries_glibc", f"{', '.join(files)}: {newest}")
        elif section.ok and not files:
            self.book.absent["gpu_libraries_glibc"] = "no library of a GPU driver in the loader's cache"
        else:
            self.book.unread("gpu_libraries_glibc", section, "libraries of the GPU driver")
        return version

    def gpu_container_cli(self) -> str | None:
        section = self.ask("gpu-container")
        line = system.first_line(section)
        if line:
            self.book.note("gpu_container_cli", line)
        else:
            self.book.lacks("gpu_container_cli", section, "nvidia-container-cli")
        return line

    def cpu_level(self) -> str | None:
        none = "/proc/cpuinfo has no flags of an x86 processor"
        return self._of_processor("cpu_level", machine.cpu_level, "flags of /proc/cpuinfo", none)

    def cpu_vendor(self) -> str | None:
        return self._of_processor("cpu_vendor", machine.cpu_vendor, "/proc/cpuinfo", _NO_X86)

    def cpu_threads(self) -> int | None:
        return self._of_processor("cpu_threads", machine.cpu_threads, "/proc/cpuinfo", _NO_X86)

    def _of_processor(
        self, name: str, parse: Callable[[Section], _T | None], source: str, absence: str
    ) -> _T | None:
        section = self.ask("cpu")
        value = parse(section)
        if value is not None:
            self.book.note(name, f"{source}: {value}")
        elif section.ok and not section.lines:
            self.book.absent[name] = absence
        else:
            self.book.unread(name, section, "/proc/cpuinfo")
        return value

    def shm(self) -> int | None:
        section = self.ask("memory")
        size = machine.shm(section)
        if size is None:
            self.book.unread("shm", section, "df /dev/shm")
        else:
            self.book.note("shm", f"df /dev/shm: {size / _GIB:.1f} GiB")
        return size

    def locked_memory(self) -> int | None:
        section = self.ask("memory")
        size = machine.locked_memory(section)
        if size is None:
            self.book.unread("locked_memory", section, "ulimit -l")
        else:
            limit = "unlimited" if size < 0 else f"{size // 1024} KiB"
            self.book.note("locked_memory", f"ulimit -l: {limit}")
        return size

    def interfaces(self) -> tuple[str, ...] | None:
        return self._list_fact("interfaces", "network", "/sys/class/net", machine.interfaces)

    def interfaces_routed(self) -> tuple[str, ...]:
        return machine.routed_interfaces(self.ask("network"))

    def libfabric(self) -> str | None:
        section = self.ask("libfabric")
        line = next((line for line in section.lines if line.startswith("/")), None) if section.ok else None
        if line:
            self.book.note("libfabric", f"ldconfig -p: {line}")
        elif section.ok:
            self.book.absent["libfabric"] = "no libfabric.so.1 in the loader's cache"
        else:
            self.book.unread("libfabric", section, "ldconfig -p")
        return line

    def user_packages(self) -> tuple[str, ...] | None:
        return self._list_fact(
            "user_packages", "user-packages", "~/.local/lib", lambda section: section.values("python")
        )

    def user_site(self) -> dict[str, tuple[str, ...]]:
        return machine.user_site(self.ask("user-packages"))

    def infiniband(self) -> tuple[str, ...] | None:
        devices = self._list_fact("infiniband", "network", "/sys/class/infiniband", machine.infiniband)
        if devices:
            links = self.link_layers()
            shown = (f"{name} ({links[name]})" if name in links else name for name in devices)
            self.book.note("infiniband", f"/sys/class/infiniband: {' '.join(shown)}")
        elif idle := machine.idle(self.ask("network")):
            self.book.note("infiniband", f"/sys/class/infiniband: every port is down: {' '.join(idle)}")
        return devices

    def link_layers(self) -> dict[str, str]:
        return machine.link_layers(self.ask("network"))

    def fabrics(self) -> tuple[str, ...] | None:
        return self._list_fact("fabrics", "fabrics", "devices of fast networks", machine.fabrics)

    def ptrace_scope(self) -> int | None:
        section = self.ask("neighbours")
        value = machine.number(section, "ptrace_scope")
        if value is not None:
            self.book.note("ptrace_scope", f"kernel.yama.ptrace_scope = {value}")
        elif section.ok and not section.values("ptrace_scope"):
            self.book.absent["ptrace_scope"] = (
                "the kernel has no kernel.yama.ptrace_scope, so it does not restrict ptrace"
            )
        else:
            self.book.unread("ptrace_scope", section, "kernel.yama.ptrace_scope")
        return value

    def xpmem(self) -> bool | None:
        section = self.ask("neighbours")
        values = section.values("xpmem")
        if not values:
            self.book.unread("xpmem", section, "/dev/xpmem")
            return None
        self.book.note("xpmem", f"/dev/xpmem: {'exists' if values[0] == 'yes' else 'does not exist'}")
        return values[0] == "yes"

    def munge(self) -> bool | None:
        section = self.ask("neighbours")
        if not section.ok:
            self.book.unread("munge", section, "munge.socket.2")
            return None
        sockets = section.values("munge")
        self.book.note("munge", sockets[0] if sockets else "no socket at /run/munge/munge.socket.2")
        return bool(sockets)

    def mca_params(self) -> dict[str, str] | None:
        section = self.ask("mca-params")
        unreadable = section.values("unreadable")
        if not section.ok or unreadable:
            file = unreadable[0] if unreadable else "mca-params.conf"
            self.book.unread("mca_params", section, file)
            return None
        files = section.values("file")
        settings = public(machine.mca_params(section), "OMPI_MCA_")
        self.book.note(
            "mca_params",
            f"{', '.join(files)}: {', '.join(settings) or 'no settings'}"
            if files
            else "no ~/.openmpi/mca-params.conf and no ~/.pmix/mca-params.conf",
        )
        return settings

    def tmpdir(self) -> str | None:
        section = self.ask("temporary")
        folder = next((line[7:] for line in section.lines if line.startswith("TMPDIR=")), None)
        if folder is not None:
            self.book.note("tmpdir", f"TMPDIR={folder}")
        elif section.ok:
            self.book.absent["tmpdir"] = "TMPDIR is not set"
        else:
            self.book.unread("tmpdir", section, "TMPDIR")
        return folder

    def tmpdir_usable(self) -> bool | None:
        section = self.ask("temporary")
        values = section.values("usable")
        if values:
            how = "a writable folder" if values[0] == "yes" else "no writable folder"
            self.book.note("tmpdir_usable", f"TMPDIR names {how}")
            return values[0] == "yes"
        if section.ok:
            self.book.absent["tmpdir_usable"] = "TMPDIR is not set"
        else:
            self.book.unread("tmpdir_usable", section, "TMPDIR")
        return None

    def _list_fact(
        self, name: str, question: str, source: str, parse: Callable[[Section], tuple[str, ...]]
    ) -> tuple[str, ...] | None:
        """Return the list that ``parse`` finds in a section; an empty list is a valid answer, and None means
        unknown.
        """
        section = self.ask(question)
        if not section.ok:
            self.book.unread(name, section, source)
            return None
        names = parse(section)
        self.book.note(name, f"{source}: {' '.join(names) or 'none'}")
        return names


def _no_driver(section: Section) -> str:
    if section.missing:
        return "no NVIDIA driver: neither /proc/driver/nvidia nor nvidia-smi"
    return f"no NVIDIA driver: {system.smi_trouble(section)}"
