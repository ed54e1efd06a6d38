"""Convert the measured launches (cells) to facts, plans and outcomes of the engine.

The conversion reads only a cell's command and the facts of its image, so new cells of the same form can be
scored: ``python -m tests.matrix.score FOLDER``.
"""

import json
import posixpath
import re
import shlex
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from toolkit import knowledge
from toolkit.folders import is_below
from toolkit.model.facts import ContainerRuntime, HostFacts, ImageFacts, SlurmFacts
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import Mode, Plan, Request
from toolkit.versions import within

HERE = Path(__file__).parent
_FAMILY = {"Open MPI": "openmpi", "MPICH": "mpich", "Intel MPI": "intelmpi", "MVAPICH": "mvapich2"}
_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_LAUNCHERS = {
    "openmpi": r"orterun|prte(run)?|mpi(run|exec)\.openmpi",
    "mpich": r"mpiexec\.hydra|mpi(run|exec)\.mpich",
}
"""File names of the programs to which a distribution's links ``mpirun`` and ``mpiexec`` lead."""
_SERVER = {"4.1.8": "3.2.5", "4.1.7": "3.2.5", "4.1.4": "4.2.2", "5.0.7": "5.0.7"}
"""PMIx release by the launcher's Open MPI release; the PMIx is part of Open MPI, or a Debian package."""

_NOT_A_LAUNCH_OF_OURS: tuple[tuple[str, str], ...] = (
    ("the launcher inside is itself a rank of srun", r"under srun --mpi=(pmi2|pmix)"),
    ("several nodes without an allocation of Slurm", r"hybrid without salloc"),
    ("the rank's own command changes its environment", r"passed back|unset PMIX_NAMESPACE"),
    ("modules of Python on the host: nobody read them", r"PYTHONPATH leaks$"),
    ("another Python of the image is started, without MPI", r"system python"),
    ("the user of the jobs was root, for whom --fakeroot changes nothing", r"--fakeroot"),
)
"""Reasons why toolkit would never make a measured launch, each with a pattern for the cell's ``trap``."""


@dataclass(frozen=True)
class Measured:
    """One measured launch (cell), with its outcome, in the engine's terms."""

    name: str
    host: HostFacts
    image: ImageFacts
    request: Request
    plan: Plan
    outcome: str


@cache
def cells(folder: Path = HERE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "cells.jsonl").read_text().splitlines()]


@cache
def _read(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "images.json").read_text())
    return found


@cache
def image(name: str, folder: Path = HERE) -> ImageFacts:
    """Return the facts of a measured image, as toolkit's image inspector would return them."""
    read = _read(folder)[name]
    implementation, version = _flavour(read["flavour"])
    components = {k: tuple(v) for k, v in read["ompi_components"].items()}
    bundled = implementation == "openmpi" and not read["libpmix_files"]
    client = read["pmix_client_version"] or (knowledge.bundled_pmix(version) if bundled else None)
    device = _device(read)
    ucx = re.match(r"\d[\w.~+-]*", read["ucx_version"] or "")
    library = read["libmpi"].split(" -> ")[-1]
    launcher = read["bins"].get("mpirun") or read["bins"].get("mpiexec")
    beside = _beside(implementation, library, launcher, read)
    mine = _beside_its_daemon(implementation, read) if beside else launcher
    return ImageFacts(
        path=f"{name}.sif",
        format="sif",
        architecture="x86_64",
        glibc=read["glibc"],
        mpi=ImageMpi(
            implementation=implementation,
            version=version,
            library=library,
            interfaces=_interfaces(implementation, version, read, components),
            launcher=mine,
            plugins=any(read["ompi_plugin_dirs"].values()),
            markers=tuple(dict.fromkeys(read["libmpi_markers"] + read["libmpi_strings"])),
            soname=next((n for n in read["needed"] if re.match(r"lib(mpi|mpich)[.-]", n)), None),
            device=device,
            own_shm=_own_shm(device),
            components=components,
            needs=_needs(read),
        ),
        other_mpis=(beside,) if beside else (),
        mpirun=launcher,
        pmix=client,
        # In PMIx packages before 4.1, all components are files; the PMIx in an MPI wheel has no such files.
        pmix_plugins=not bundled and within(client, "<4.1") if client else None,
        ucx=ucx[0] if ucx else None,
        libraries=_libraries(read),
        libfabric=read["libfabric_found"] or None,
        ssh=read["ssh"] or None,
        absent={
            "stack": "not in the image",
            **({} if launcher else {"mpirun": "none"}),
            **({} if mine else {"mpi.launcher": "none"}),
            **({} if client else {"pmix": "no libpmix"}),
            **({} if read["libfabric_found"] else {"libfabric": "no libfabric"}),
            **({} if read["ssh"] else {"ssh": "no ssh"}),
            **({} if read["ucx_version"] else {"ucx": "no UCX"}),
        },
    )


def _beside(implementation: str, library: str, launcher: str | None, read: dict[str, Any]) -> ImageMpi | None:
    """Return the MPI whose mpirun is first on PATH, if the program loads another MPI's library."""
    own = next((name for name, file in _LAUNCHERS.items() if re.search(rf"/({file})$", launcher or "")), None)
    # A launcher whose name identifies no MPI is in a virtual environment, together with the MPI library.
    if launcher is None or own is None:
        return None
    if own == implementation and is_below(library, posixpath.dirname(posixpath.dirname(launcher))):
        return None
    version = read["ompi_version" if own == "openmpi" else "mpich_version"] or None
    return ImageMpi(
        implementation=own, version=version, library="/usr/lib", interfaces=None, launcher=launcher
    )


def _beside_its_daemon(implementation: str, read: dict[str, Any]) -> str | None:
    """Return the path of the mpirun in the folder of the MPI's daemon, which is on PATH."""
    names = ("orted", "prted") if implementation == "openmpi" else ("hydra_pmi_proxy",)
    daemon = next((read["bins"][name] for name in names if name in read["bins"]), None)
    mine = "mpirun" if implementation == "openmpi" else "mpiexec.hydra"
    return posixpath.join(posixpath.dirname(daemon), mine) if daemon else None


_BRINGS_MUNGE = {
    "3.1.5": False,
    "4.1.2": False,
    "4.2.2": True,
    "5.0.1": True,
    "5.0.7": True,
    "5.0.8": False,
    "5.0.9": True,
    "7.0.0~rc1": False,
}
"""Whether the package libpmix2 installs libmunge, by its PMIx version, as images in truth/ show."""


def _libraries(read: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the image's libraries that the loader finds and that a mounted MPI may need.

    Libraries of an MPI in a separate folder do not count: only that MPI finds them, by its run path. The
    result is ``None`` if it is unknown whether the image's PMIx installed libmunge.
    """
    system = read["libmpi"].startswith(("/usr/lib", "/lib"))
    found = set(read["ldd_mpi_related"]) if system else set()
    if read["libfabric_found"].startswith("/usr/lib"):
        found.add("libfabric.so.1")
    if any(file.startswith("/usr/lib") for file in read["libpmix_files"]):
        munge = _BRINGS_MUNGE.get(read["pmix_client_version"].partition("-")[0])
        if munge is None:
            return None
        found |= {"libmunge.so.2"} if munge else set()
    return tuple(sorted(found))


def _flavour(text: str) -> tuple[str, str]:
    """Return implementation and version from a text such as ``MVAPICH2 2.3.7``."""
    for name, implementation in _FAMILY.items():
        if said := re.match(rf"{name}\d?\s+(\S+)", text):
            return implementation, said[1]
    name, _, version = text.rpartition(" ")
    return (name or text).lower().replace(" ", ""), version


def _device(read: dict[str, Any]) -> str | None:
    """Return MPICH's device, with all network modules that the configure line names."""
    first = read["mpich_device"]
    said = re.search(r"--with-device=([\w:,]+)", " ".join(read["configure_flags"]))
    if said and said[1].startswith(first):
        return said[1]
    return first or None


def _needs(read: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the libraries that the MPI library needs; add libslurm_pmi if it needs libpmi."""
    found = set(read["ldd_mpi_related"])
    if any(name.startswith("libpmi.so") for name in found):
        found.add("libslurm_pmi.so")
    return tuple(sorted(found))


def _own_shm(device: str | None) -> bool | None:
    if not device or not device.startswith("ch4"):
        return None
    return device != "ch4:ucx"


def _interfaces(
    implementation: str, version: str, read: dict[str, Any], components: dict[str, Any]
) -> tuple[str, ...]:
    if implementation != "openmpi":
        linked = any("libpmix" in name for name in read["ldd_mpi_related"])
        return ("pmix",) if linked else ("pmi1", "pmi2")
    plugins = components.get("pmix", ())
    old = tuple(face for name, face in (("s1", "pmi1"), ("s2", "pmi2")) if name in plugins)
    # Open MPI has PMIx since release 2. Before release 5, PMIx is a component: a file, or built in.
    brought = any(name.startswith(("pmix", "ext")) for name in plugins)
    built_in = any("PMIx_Init" in said for said in read["opal_rte_strings"])
    return (*old, *(["pmix"] if within(version, ">=5") or brought or built_in else []))


_SLURM = {
    "trixie": SlurmFacts(
        version="24.11.5",
        mpi_types=("pmix", "pmix_v5", "pmi2", "none", "cray_shasta"),
        mpi_default="pmix",
        nodes=2,
    ),
    "bookworm": SlurmFacts(
        version="22.05.8",
        mpi_types=("pmix", "pmix_v4", "pmi2", "none", "cray_shasta"),
        mpi_default="pmix",
        nodes=2,
    ),
}
_DEFAULT = {"trixie": "pmix", "bookworm": "pmix"}


def host(cell: dict[str, Any]) -> HostFacts:
    """Return the facts of the cell's cluster; the cell's launcher is the first of the host's MPIs."""
    place = "bookworm" if cell["host"].startswith("bookworm") else "trixie"
    words = _words(cell)
    env = dict(cell.get("env") or {})
    params: dict[str, str] = {}
    trap = cell.get("trap") or ""
    if trap.startswith("bad ~/.openmpi/mca-params.conf"):
        params = {"btl": "openib"}
    shm = re.search(r"/dev/shm=(\d+)([kmg])", trap)
    for name in ("SLURM_MPI_TYPE",):
        if said := re.search(rf"\b{name}=(\S+)", cell["cmd"]):
            env[name] = said[1]
    return HostFacts(
        place=cell["host"],
        architecture="x86_64",
        slurm=_SLURM[place],
        pmix="4.2.2" if place == "bookworm" else "5.0.7",
        mpis=(_provider(cell) or _launcher(place, words),),
        runtime=ContainerRuntime(name="apptainer", version="1.4.5", path="/usr/bin/apptainer", setuid=False),
        user_namespaces=True,
        shm=int(shm[1]) * _SIZES[shm[2]] if shm else None,
        libfabric="hostmpi/mpich-4.3.2/lib/mpich/libfabric.so.1",
        interfaces=("eth0",),
        infiniband=(),
        mca_params=params,
        munge=True,
        environment={k: v for k, v in env.items() if k != "HOME"},
    )


def _launcher(place: str, words: list[str]) -> HostMpi:
    path = next((w for w in words if re.search(r"(^|/)(mpirun|mpiexec(\.hydra)?)$", w)), "mpirun")
    own = re.search(r"hostmpi/(openmpi|mpich|impi-rt)-(\d[\w.]*)/bin", path)
    if own:
        family = {"openmpi": "openmpi", "mpich": "mpich", "impi-rt": "intelmpi"}[own[1]]
        return _own_launcher(family, own[2], path)
    if path.endswith("hydra"):
        version = "4.0.2" if place == "bookworm" else "4.2.1"
        return HostMpi(implementation="mpich", version=version, launcher="/usr/bin/mpiexec.hydra", leaks=())
    if place == "bookworm":
        return HostMpi(
            implementation="openmpi", version="4.1.4", launcher="/usr/bin/mpirun", leaks=(), pmix="4.2.2"
        )
    leaks = ("OMPI_MCA_mca_base_component_path",)
    return HostMpi(
        implementation="openmpi", version="5.0.7", launcher="/usr/bin/mpirun", leaks=leaks, pmix="5.0.7"
    )


def _own_launcher(family: str, version: str, path: str) -> HostMpi:
    if family != "openmpi":
        return HostMpi(implementation=family, version=version, launcher=path, leaks=())
    old = version.startswith("4")
    leaks = ("OPAL_PREFIX", "PMIX_INSTALL_PREFIX") if old else ("OPAL_PREFIX", "PMIX_PREFIX", "PRTE_PREFIX")
    pmix = _SERVER.get(version) or (knowledge.bundled_pmix(version) if old else version)
    return HostMpi(implementation=family, version=version, launcher=path, leaks=leaks, pmix=pmix)


def _provider(cell: dict[str, Any]) -> HostMpi | None:
    """Return the facts of the MPI that the launch mounts over the image's MPI."""
    said = cell.get("provider")
    if not said:
        return None
    known = json.loads((HERE / "providers.json").read_text())
    name = next((n for n in known if said.startswith(n)), None)
    if name is None:
        return HostMpi(implementation="unknown", version=None, launcher="/host/bin/mpirun")
    row = known[name]
    if "symlink" in said:
        row |= {"soname": "libmpich.so.12", "outside": row["outside_of_link"]}
    row.pop("outside_of_link", None)
    return msgspec.convert(row, HostMpi)


def excluded(cell: dict[str, Any]) -> str | None:
    """Return why toolkit would never make the launch of this cell; None if it would."""
    trap = cell.get("trap") or ""
    return next((reason for reason, pattern in _NOT_A_LAUNCH_OF_OURS if re.search(pattern, trap)), None)


def expressible(cell: dict[str, Any], folder: Path = HERE) -> Measured | None:
    """Return a cell in the engine's terms, or ``None`` if it is :func:`excluded`."""
    if excluded(cell):
        return None
    request, place = _request(cell), host(cell)
    mode, words = _mode(cell), _words(cell)
    options = _options(words)
    said = [pair for w, v in options if w == "--env" for pair in re.split(r",(?=\w+=)", v)]
    given = {pair.partition("=")[0]: pair.partition("=")[2] for pair in said}
    binds = tuple(v for w, v in options if w == "-B")
    launched = Plan(
        mode=mode,
        launcher=_launch_words(mode, cell, place),
        inside=mode == "mpirun-container",
        container=tuple(x for w, v in options if w not in {"-B", "--env"} for x in (w, *([v] if v else []))),
        unset=tuple(dict.fromkeys(_taken_away(words))),
        env={**request.env, **given},
        binds=binds,
    )
    special = cell.get("trap") or cell.get("provider") or ""
    name = f"{cell['host'][:8]} {cell['launcher']} {special} {cell['image']}"
    return Measured(name, place, image(cell["image"], folder), request, launched, cell["outcome"])


def _taken_away(words: list[str]) -> list[str]:
    """Return the variables that ``env -u`` removes; ignore Apptainer's own option ``-u``."""
    pairs = pairwise(words)
    return [value for word, value in pairs if word == "-u" and re.match(r"[A-Z]+_", value)]


def _words(cell: dict[str, Any]) -> list[str]:
    """Return the words of a cell's command; for a batch job, the words of the wrapped command."""
    wrapped = re.search(r'--wrap "([^"]*)"', cell["cmd"])
    return list(_split(wrapped[1] if wrapped else cell["cmd"]))


@cache
def _split(command: str) -> tuple[str, ...]:
    """Return the words of a command. Several functions split each command, so the result is cached."""
    return tuple(shlex.split(command))


_TAKE_A_VALUE = frozenset(
    {
        "-B",
        "--env",
        "--env-file",
        "--mount",
        "--no-mount",
        "-H",
        "--home",
        "-W",
        "--workdir",
        "-S",
        "--scratch",
    }
    | {"--cwd", "--pwd", "--overlay", "-o", "--network", "--add-caps", "--drop-caps", "--security"}
)
"""Options of ``apptainer exec`` that take a value (its --help, 1.4.5)."""


def _options(words: list[str]) -> list[tuple[str, str]]:
    if "apptainer" not in words:
        return []
    start = words.index("apptainer") + 2
    end = next(i for i, w in enumerate(words) if i >= start and w.endswith(".sif"))
    found: list[tuple[str, str]] = []
    rest = [w for w in words[start:end] if w != "-u"]
    while rest:
        word, _, value = rest.pop(0).partition("=")
        word = "-B" if word == "--bind" else word
        found.append((word, value or (rest.pop(0) if word in _TAKE_A_VALUE else "")))
    return found


def _mode(cell: dict[str, Any]) -> Mode:
    words = _words(cell)
    place = "bookworm" if cell["host"].startswith("bookworm") else "trixie"
    starts = [i for i, w in enumerate(words) if re.search(r"(^|/)(mpirun|mpiexec(\.hydra)?)$", w)]
    container = words.index("apptainer") if "apptainer" in words else len(words)
    if starts:
        return "mpirun-host" if starts[0] < container else "mpirun-container"
    if cell.get("provider"):
        return "bind"
    said = next((w.partition("=")[2] for w in words if w.startswith("--mpi=")), None)
    if said is None and "srun" in words:
        said = _DEFAULT[place]
    if said and said.startswith("pmix"):
        return "srun-pmix"
    return "srun-pmi2" if said == "pmi2" else "srun-none"


def _launch_words(mode: Mode, cell: dict[str, Any], place: HostFacts) -> tuple[str, ...]:
    words = _words(cell)
    if mode == "mpirun-container":
        forked = "HYDRA_LAUNCHER=fork" in cell["cmd"]
        return ("mpirun", "-launcher", "fork") if forked else ("mpirun",)
    if mode == "mpirun-host":
        return ("mpirun",)
    said = next((w for w in words if w.startswith("--mpi=")), None)
    return ("srun", said) if said else ("srun",)


def _request(cell: dict[str, Any]) -> Request:
    cmd = cell["cmd"]
    before = re.match(r"\s*((?:[A-Z]\w+=\S+ )*)", cmd)
    given = dict(re.findall(r"(\w+)=(\S+)", before[1] if before else ""))
    given |= dict(re.findall(r"\s((?:OMPI|PMIX)_MCA_\w+)=(\S+) apptainer", cmd))
    for own in ("HYDRA_LAUNCHER", "I_MPI_ROOT", "PATH", "LD_LIBRARY_PATH", "TMPDIR"):
        given.pop(own, None)
    allocation = bool(re.search(r"\b(srun|salloc|sbatch)\b", cmd))
    nodes = 2 if allocation else 1
    counted = re.search(r"-N\s?(\d)\b", cmd)
    if counted and _mode(cell) != "mpirun-container":
        nodes = int(counted[1])
    elif counted:
        outer = re.search(r"(?:salloc|sbatch).*?-N\s?(\d)\b", cmd)
        nodes = int(outer[1]) if outer else 1
    if cell["want"] == 1:
        nodes = 1
    return Request(
        nodes=nodes,
        ranks_per_node=max(1, cell["want"] // nodes),
        batch="sbatch" in cmd,
        allocation=allocation,
        env=given,
    )
