"""Convert the sections of a probe's output to :class:`HostFacts` (pure functions)."""

from collections.abc import Callable

from toolkit.knowledge.pmix import is_plugin
from toolkit.model.facts import ContainerRuntime, HostFacts, SlurmFacts
from toolkit.model.mpifacts import HostMpi
from toolkit.probe.evidence import NO_ANSWER, TIMED_OUT, Section, Sections
from toolkit.probe.evidence_log import HostEvidence
from toolkit.probe.machine import MachineFacts
from toolkit.probe.read import launcher, pmix, runtime, slurm, system
from toolkit.probe.read.withheld import public
from toolkit.runtime import RUNTIMES

_Ask = Callable[[str], Section]


def host_facts(place: str, sections: Sections) -> HostFacts:
    """Return the facts in the answer of one machine; ``place`` is the machine's name."""
    book = HostEvidence()

    def section(name: str) -> Section:
        return sections.get(name, Section(name, (), TIMED_OUT))

    slurm_facts = _slurm(section, sections, book)
    launchers = _launchers(section, book)
    found_runtimes = _runtimes(section, book)
    return HostFacts(
        place=place,
        architecture=_line("architecture", section("architecture"), "uname -m", book),
        kernel=_line("kernel", section("kernel"), "uname -r", book),
        distribution=_distribution(section("os-release"), book),
        glibc=_glibc(section("glibc"), book),
        slurm=slurm_facts,
        schedulers=_schedulers(section("schedulers"), book),
        pmix=_pmix(section("pmix"), slurm_facts, book),
        mpis=launchers,
        folder_mpis=_folder_mpis(section, book),
        runtime=found_runtimes[0] if found_runtimes else None,
        other_runtimes=found_runtimes[1:],
        user_namespaces=_user_namespaces(section("user-namespaces"), book),
        squashfuse=_squashfuse(section, book),
        **MachineFacts(section, book).facts(),
        environment=_environment(section("environment"), book),
        evidence=book.evidence,
        absent=book.absent,
        unknown=book.unknown,
    )


def _schedulers(section: Section, book: HostEvidence) -> tuple[str, ...] | None:
    """Return the job schedulers, except Slurm, whose commands are on PATH. Return None if the query did not
    succeed, or if the output is from an earlier release of the probe that lacks the query.
    """
    if not section.ok:
        return None
    names = tuple(line for line in section.lines if line in {"lsf", "flux", "pbs", "grid-engine"})
    programs = "bsub, flux, qsub, pbsnodes"
    book.note("schedulers", f"schedulers with a program on PATH ({programs}): {' '.join(names) or 'none'}")
    return names


def _line(name: str, section: Section, command: str, book: HostEvidence) -> str | None:
    value = system.first_line(section)
    if value is None:
        book.lacks(name, section, command)
    else:
        book.note(name, f"{command}: {value}")
    return value


def _distribution(section: Section, book: HostEvidence) -> str | None:
    value = system.distribution(section.lines) if section.ok else None
    if value is None:
        book.unknown["distribution"] = f"/etc/os-release: {section.trouble or 'names no distribution'}"
    else:
        book.note("distribution", f"/etc/os-release: {value}")
    return value


def _glibc(section: Section, book: HostEvidence) -> str | None:
    value = system.glibc(section)
    if value is None:
        book.unknown["glibc"] = (
            f"getconf GNU_LIBC_VERSION: {section.trouble or 'the output contains no glibc version'}"
        )
    else:
        book.note("glibc", f"getconf GNU_LIBC_VERSION: glibc {value}")
    return value


def _slurm(section: _Ask, sections: Sections, book: HostEvidence) -> SlurmFacts | None:
    slurm_facts = slurm.slurm(sections)
    if slurm_facts is None:
        book.lacks("slurm", section("slurm"), "sinfo, srun")
        return None
    book.note("slurm.version", f"sinfo --version: slurm {slurm_facts.version}")
    if slurm_facts.mpi_types is None:
        book.unread("slurm.mpi_types", section("mpi-list"), "srun --mpi=list")
    else:
        book.note("slurm.mpi_types", f"srun --mpi=list: {' '.join(slurm_facts.mpi_types)}")
    if slurm_facts.mpi_default is None:
        book.unread("slurm.mpi_default", section("slurm-config"), "scontrol show config")
    else:
        book.note("slurm.mpi_default", f"scontrol show config: MpiDefault = {slurm_facts.mpi_default}")
    if not slurm_facts.settings:
        book.unread("slurm.settings", section("slurm-config"), "scontrol show config")
    if slurm_facts.nodes is None:
        book.unread("slurm.nodes", section("partitions"), "sinfo")
    return slurm_facts


def _environment(section: Section, book: HostEvidence) -> dict[str, str]:
    if not section.ok:
        book.unread("environment", section, "env")
    return public(launcher.variables(section))


def _pmix(section: Section, slurm_facts: SlurmFacts | None, book: HostEvidence) -> str | None:
    types = (slurm_facts.mpi_types if slurm_facts else None) or ()
    plugins = [t for t in types if is_plugin(t)]
    if slurm_facts and slurm_facts.mpi_types is not None and not plugins:
        book.absent["pmix"] = f"Slurm has no PMIx plugin; srun --mpi=list: {' '.join(types)}"
        return None
    if plugins == ["pspmix"]:
        # ParaStation's daemon contains the PMIx server.
        # The probe cannot find out which libpmix the daemon loads.
        book.unknown["pmix"] = (
            "Slurm's only PMIx plugin is ParaStation's pspmix, which does not report a release of PMIx"
        )
        return None
    library = pmix.server(section, types)
    if library:
        book.note("pmix", f"{library.path} is PMIx {library.version}, according to {library.evidence}")
        return library.version
    if section.ok and not section.lines and not plugins:
        book.absent["pmix"] = "neither the loader's cache nor a plugin of Slurm names a libpmix"
    elif section.ok and not section.lines:
        # Slurm's plugin loads libpmix from an unknown folder, which may exist only on compute nodes.
        book.unknown["pmix"] = f"Slurm offers {' '.join(plugins)}, but the probe found no libpmix"
    else:
        book.unknown["pmix"] = section.trouble or "toolkit does not know which libpmix Slurm's plugin loads"
    return None


def _folder_mpis(section: _Ask, book: HostEvidence) -> tuple[HostMpi, ...] | None:
    libraries = section("mpi-libraries")
    if "launcher -" not in libraries.lines:
        why = "the output is from an earlier release of the probe, which searched fewer folders for libmpi"
        book.unknown["folder_mpis"] = libraries.trouble or why
        return None
    mpis = launcher.of_folders(libraries, section("launcher-environment"))
    named = ", ".join(f"{mpi.library}: {mpi.implementation} {mpi.version or '?'}" for mpi in mpis)
    none = (
        "no libmpi outside system folders such as /usr/lib64, except mpirun's; the probe searched Cray's "
        "folders, and folders from mpicc and from variables such as MPI_HOME"
    )
    book.note("folder_mpis", named or none)
    return mpis


def _launchers(section: _Ask, book: HostEvidence) -> tuple[HostMpi, ...] | None:
    section_of_launchers = section("launchers")
    if not section_of_launchers.ok and not section_of_launchers.missing:
        book.lacks("mpis", section_of_launchers, "mpirun --version")
        return None
    libraries = section("mpi-libraries")
    mpis = launcher.launchers(section_of_launchers, section("launcher-environment"), libraries)
    if not mpis:
        book.note("mpis", "mpirun, mpiexec: not found on PATH; the probe loads no modules")
        return mpis
    first = mpis[0]
    leaks = ", ".join(first.leaks) if first.leaks else ("none" if first.leaks == () else "not known")
    book.note(
        "mpis",
        f"{first.launcher} --version: {first.implementation} {first.version or '?'}"
        f"; environment variables with the path of this MPI: {leaks}",
    )
    for mpi in mpis:
        if mpi.library is None:
            why = libraries.trouble or "no library of this MPI beside the launcher or in the loader's cache"
            book.unknown["mpis.library"] = f"{mpi.launcher}: {why}"
        elif mpi.needs is None:
            book.unknown["mpis.needs"] = f"{mpi.library}: ldd did not list all libraries that libmpi needs"
    if first.library:
        how = (
            "works after a move to another folder"
            if first.relocatable
            else "works only in its installation folder"
        )
        book.note(
            "mpis.library",
            f"{first.library}: {first.soname or 'no soname found'}, needs {len(first.needs or ())} libraries"
            f" and glibc {first.glibc_needed or '?'}, {how}",
        )
    return mpis


def _runtimes(section: _Ask, book: HostEvidence) -> tuple[ContainerRuntime, ...]:
    """Return the container runtimes of a machine; the preferred runtime comes first."""
    runtimes = tuple(runtime for kind in RUNTIMES if (runtime := kind.read(section(kind.SECTION))))
    late = next((kind.NAMES[0] for kind in RUNTIMES if section(kind.SECTION).status == TIMED_OUT), "")
    if late:
        book.unknown["other_runtimes"] = f"{late} --version: {NO_ANSWER}"
    if not runtimes:
        section_of_runtime = section("runtime")
        book.lacks("runtime", section_of_runtime, "apptainer, singularity")
        if unused := section_of_runtime.values("other"):
            book.unknown.pop("runtime", None)
            others_text = f"found but not used: {', '.join(unused)}"
            book.absent["runtime"] = f"apptainer, singularity: not found on PATH; {others_text}"
        return ()
    _note_runtime(runtimes[0], book)
    return runtimes


def _note_runtime(program: ContainerRuntime, book: HostEvidence) -> None:
    how = {True: "setuid", False: "unprivileged", None: "setuid not known"}[program.setuid]
    book.note(
        "runtime",
        f"{program.path} --version: {program.name} {program.version or '?'}, {how}",
    )
    if not program.version:
        book.unknown["runtime.version"] = f"{program.path} --version: the output contains no version"
    if not program.settings:
        book.unknown["runtime.settings"] = f"{program.name.partition('-')[0]}.conf: not found or not readable"
    if program.setuid is None:
        book.unknown["runtime.setuid"] = (
            f"{program.name} buildcfg does not print the folder of the starter program"
        )


def _user_namespaces(section: Section, book: HostEvidence) -> bool | None:
    allowed = runtime.user_namespaces(section)
    if allowed is None:
        book.unknown["user_namespaces"] = (
            f"unshare -Ur true: {_refusal(section) or 'works for root; not known for other users'}"
        )
    else:
        book.note(
            "user_namespaces",
            _by_profile(section) or f"unshare -Ur true: {_describe_trial(section, allowed)}",
        )
    return allowed


def _describe_trial(section: Section, success: bool) -> str:
    return "works" if success else _refusal(section) or "is refused"


def _by_profile(section: Section) -> str:
    """Return a line of evidence if AppArmor restricts user namespaces, otherwise an empty text."""
    if not runtime.restricted_by_apparmor(section):
        return ""
    allowed = next(iter(section.values("profile")), "no profile in /etc/apparmor.d")
    return (
        f"kernel.apparmor_restrict_unprivileged_userns = 1; {allowed} allows user namespaces for"
        " the runtime's starter"
    )


def _refusal(section: Section) -> str:
    """Return the reason why ``unshare`` failed, usually the error message of ``unshare``."""
    error = next((line for line in section.lines if line.startswith("unshare: ")), "")
    return error or ("unshare was not found" if section.status == 127 else section.trouble)


def _squashfuse(section: _Ask, book: HostEvidence) -> str | None:
    section_of_squashfuse = section("squashfuse")
    path = next(iter(section("runtime").values("squashfuse")), None) or system.first_line(
        section_of_squashfuse
    )
    if path is not None:
        book.note("squashfuse", path)
    elif section_of_squashfuse.status == TIMED_OUT:
        book.unread("squashfuse", section_of_squashfuse, "squashfuse_ll, squashfuse")
    else:
        book.absent["squashfuse"] = "squashfuse_ll, squashfuse: not found on PATH or beside the runtime"
    return path
