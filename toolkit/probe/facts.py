"""Put the parsers' answers together: sections of evidence in, :class:`HostFacts` out; pure."""

from collections.abc import Callable

from toolkit.model.facts import ContainerRuntime, HostFacts, HostMpi, SlurmFacts
from toolkit.probe.evidence import TIMED_OUT, Section, Sections
from toolkit.probe.read import launcher, pmix, runtime, slurm, system

_Ask = Callable[[str], Section]


class _Book:
    """Collects why each fact is what it is, while the facts are read."""

    def __init__(self) -> None:
        self.evidence: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.unknown: dict[str, str] = {}

    def note(self, name: str, said: str) -> None:
        self.evidence[name] = said

    def lacks(self, name: str, section: Section, looked_for: str) -> None:
        """Say why a fact is missing: nothing there, or no answer."""
        if section.missing:
            self.absent[name] = f"{looked_for}: not found on PATH"
        else:
            self.unread(name, section, looked_for)

    def unread(self, name: str, section: Section, asked: str) -> None:
        """Say why nobody knows: what does not answer tells nothing about what it was asked for."""
        self.unknown[name] = f"{asked}: {section.trouble or 'the answer was not understood'}"


def host_facts(place: str, sections: Sections) -> HostFacts:
    """Read the sections of one machine's answer."""
    book = _Book()

    def section(name: str) -> Section:
        return sections.get(name, Section(name, (), TIMED_OUT))

    found = _slurm(section, sections, book)
    launchers = _launchers(section, book)
    return HostFacts(
        place=place,
        architecture=_line("architecture", section("architecture"), "uname -m", book),
        kernel=_line("kernel", section("kernel"), "uname -r", book),
        distribution=_distribution(section("os-release"), book),
        glibc=_glibc(section("glibc"), book),
        slurm=found,
        pmix=_pmix(section("pmix"), found, book),
        mpis=launchers,
        runtime=_runtime(section, book),
        user_namespaces=_user_namespaces(section("user-namespaces"), book),
        squashfuse=_squashfuse(section, book),
        gpu_driver=_gpu(section("gpu"), book),
        environment=_environment(section("environment"), book),
        evidence=book.evidence,
        absent=book.absent,
        unknown=book.unknown,
    )


def _line(name: str, section: Section, command: str, book: _Book) -> str | None:
    value = system.first_line(section)
    if value is None:
        book.lacks(name, section, command)
    else:
        book.note(name, f"{command}: {value}")
    return value


def _distribution(section: Section, book: _Book) -> str | None:
    value = system.distribution(section.lines) if section.ok else None
    if value is None:
        book.unknown["distribution"] = f"/etc/os-release: {section.trouble or 'says nothing'}"
    else:
        book.note("distribution", f"/etc/os-release: {value}")
    return value


def _glibc(section: Section, book: _Book) -> str | None:
    value = system.glibc(section)
    if value is None:
        book.unknown["glibc"] = f"getconf GNU_LIBC_VERSION: {section.trouble or 'not understood'}"
    else:
        book.note("glibc", f"getconf GNU_LIBC_VERSION: glibc {value}")
    return value


def _slurm(section: _Ask, sections: Sections, book: _Book) -> SlurmFacts | None:
    found = slurm.slurm(sections)
    if found is None:
        book.lacks("slurm", section("slurm"), "sinfo, srun")
        return None
    book.note("slurm.version", f"sinfo --version: slurm {found.version}")
    if found.mpi_types is None:
        book.unread("slurm.mpi_types", section("mpi-list"), "srun --mpi=list")
    else:
        book.note("slurm.mpi_types", f"srun --mpi=list: {' '.join(found.mpi_types)}")
    if found.mpi_default is None:
        book.unread("slurm.mpi_default", section("slurm-config"), "scontrol show config")
    else:
        book.note("slurm.mpi_default", f"scontrol show config: MpiDefault = {found.mpi_default}")
    if not found.settings:
        book.unread("slurm.settings", section("slurm-config"), "scontrol show config")
    if found.nodes is None:
        book.unread("slurm.nodes", section("partitions"), "sinfo")
    return found


def _environment(section: Section, book: _Book) -> dict[str, str]:
    if not section.ok:
        book.unread("environment", section, "env")
    return launcher.variables(section)


def _pmix(section: Section, found: SlurmFacts | None, book: _Book) -> str | None:
    types = (found.mpi_types if found else None) or ()
    if found and found.mpi_types is not None and not any(t.startswith("pmix") for t in types):
        book.absent["pmix"] = f"Slurm has no PMIx plugin; srun --mpi=list: {' '.join(types)}"
        return None
    library = pmix.server(section, types)
    if library:
        book.note("pmix", f"{library.path} is PMIx {library.version}, by {library.how}")
        return library.version
    if section.ok and not section.lines:
        book.absent["pmix"] = "no libpmix in the loader's cache or beside Slurm's plugins"
    else:
        book.unknown["pmix"] = section.trouble or "which libpmix Slurm's plugin loads could not be told"
    return None


def _launchers(section: _Ask, book: _Book) -> tuple[HostMpi, ...] | None:
    asked = section("launchers")
    if not asked.ok and not asked.missing:
        book.lacks("mpis", asked, "mpirun --version")
        return None
    found = launcher.launchers(asked, section("launcher-environment"))
    if found:
        first = found[0]
        leaks = ", ".join(first.leaks) if first.leaks else ("nothing" if first.leaks == () else "not seen")
        book.note(
            "mpis",
            f"{first.launcher} --version: {first.implementation} {first.version or '?'}"
            f"; of its own installation it exports: {leaks}",
        )
    else:
        book.note("mpis", "mpirun, mpiexec: not found on PATH")
    return found


def _runtime(section: _Ask, book: _Book) -> ContainerRuntime | None:
    asked = section("runtime")
    found = runtime.runtime(asked)
    if found is None:
        book.lacks("runtime", asked, "apptainer, singularity")
        return None
    how = {True: "setuid", False: "unprivileged", None: "installation not examined"}[found.setuid]
    book.note("runtime", f"{found.path} --version: {found.name} {found.version}, {how}")
    if not found.settings:
        book.unknown["runtime.settings"] = f"{found.name}.conf: not found or not readable"
    if found.setuid is None:
        book.unknown["runtime.setuid"] = f"{found.name} buildcfg does not say where its starter is"
    return found


def _user_namespaces(section: Section, book: _Book) -> bool | None:
    found = runtime.user_namespaces(section)
    if found is None:
        book.unknown["user_namespaces"] = (
            f"unshare -Ur true: {_refusal(section) or 'works for root, which proves nothing for others'}"
        )
    else:
        reason = "works" if found else _refusal(section) or "is refused"
        book.note("user_namespaces", f"unshare -Ur true: {reason}")
    return found


def _refusal(section: Section) -> str:
    """Return what unshare said, not the switches that were printed before."""
    said = next((line for line in section.lines if line.startswith("unshare: ")), "")
    return said or ("there is no unshare" if section.status == 127 else section.trouble)


def _squashfuse(section: _Ask, book: _Book) -> str | None:
    path = next(iter(section("runtime").values("squashfuse")), None) or system.first_line(
        section("squashfuse")
    )
    if path is None:
        book.absent["squashfuse"] = "squashfuse_ll, squashfuse: not found on PATH or beside the runtime"
    else:
        book.note("squashfuse", path)
    return path


def _gpu(section: Section, book: _Book) -> str | None:
    found = system.gpu_driver(section)
    if found:
        book.note("gpu_driver", f"NVIDIA driver {found}")
    elif section.missing:
        book.absent["gpu_driver"] = "no NVIDIA driver: neither /proc/driver/nvidia nor nvidia-smi"
    else:
        book.unknown["gpu_driver"] = f"nvidia-smi: {section.trouble or 'not understood'}"
    return found
