"""Read the components and version texts of an Open MPI from its libraries and plugins."""

import posixpath
import re
from dataclasses import dataclass

from toolkit.image.files import tree as files
from toolkit.image.loader import mca
from toolkit.image.loader.loader import Loader
from toolkit.sonames import plain, without_hash

_INNER = re.compile(r"lib(open_mpi|open-pal|open-rte|mpi)\.so")
"""A pattern for the libraries with the internal code of Open MPI. In Open MPI 6, libmpi has only the MPI
functions, and libopen_mpi has all other code."""
_FRAMEWORKS = (
    "btl", "pml", "mtl", "pmix", "ess", "plm", "ras", "schizo", "smsc", "shmem", "accelerator", "hwloc",
)  # fmt: skip
"""The MCA frameworks (kinds of component) that affect how ranks start, communicate and use devices."""
_PLUGIN = re.compile(r".*/mca_([a-z]+)_(\w+)\.so\Z")
_PMIX = re.compile(r"(ext|pmix)\d+x{0,2}\Z")
_OWN_PMIX = re.compile(r"pmix\d+x{0,2}\Z")
_SLURM = {"s1": "pmi1", "s2": "pmi2"}
_SUFFIX = r"(?:rc|a|b)\d{1,2}"
_MOST_PLUGINS = 300


@dataclass(frozen=True, slots=True)
class OpenMpi:
    """The facts of an Open MPI.

    ``components`` maps each framework to the names of its components, which are built in or plugins (separate
    files). ``files`` maps the framework and name of each loadable plugin to its path. ``missing_libraries``
    maps each plugin that ld.so cannot load to the plugin's missing libraries. ``pmix`` is the release of the
    PMIx in Open MPI. ``text`` is the text that MPI_Get_library_version returns. Unknown facts are None.
    """

    release: str | None
    components: dict[str, tuple[str, ...]]
    files: dict[tuple[str, str], str]
    missing_libraries: dict[str, str]
    pmix: str | None
    pmix_components: tuple[mca.McaComponent, ...]
    text: str | None


def read(loader: Loader, path: str, real_path: str, closure: dict[str, str | None]) -> OpenMpi:
    """Read the facts of an Open MPI from its libmpi, its internal libraries and its plugins.

    ``path`` is the path at which toolkit found libmpi, and ``real_path`` is the real path of libmpi.
    The keys of ``closure`` are the sonames that libmpi needs. The values are the paths of these libraries, or
    None for missing libraries.
    """
    inner = [p for soname, p in closure.items() if p and _INNER.match(without_hash(soname))]
    contents = [loader.texts(p) for p in dict.fromkeys((real_path, *inner))]
    built_in = tuple(c for content in contents for c in mca.components(content))
    plugins, broken = _plugins(loader, path, real_path)
    if not built_in:
        sample = next((p for (framework, _), p in plugins.items() if framework in {"pml", "btl"}), None)
        base = mca.components(loader.texts(sample)) if sample else ()
    else:
        base = built_in
    number = mca.release(base, "ompi", "opal")
    release = _full(number, contents) if number else None
    own = tuple(c for c in built_in if c.project in {"ompi", "opal", "orte"})
    client = tuple(c for c in built_in if c.project == "pmix") or _client(loader, plugins)
    return OpenMpi(
        release=release,
        components=_merge_components(mca.by_framework(own, *_FRAMEWORKS), plugins, number),
        files=plugins,
        missing_libraries=broken,
        pmix=mca.release(client, "pmix"),
        pmix_components=client,
        text=_text(release, contents) if release else None,
    )


def interfaces(
    loader: Loader, openmpi: OpenMpi, closure: dict[str, str | None]
) -> tuple[dict[str, str] | None, str]:
    """Return the launch interfaces of an Open MPI, and a line of evidence.

    Each interface, such as ``pmix``, maps to the code that provides the interface: ``linked`` or ``component
    NAME``. If the interfaces are unknown, the first value is None, and the second value says why.
    """
    how, reason = _seen_interfaces(loader, openmpi, closure)
    lost = sorted(s for s, path in closure.items() if path is None and _INNER.match(without_hash(s)))
    if lost and "pmix" not in how:
        return None, f"it needs {' '.join(lost)}, which the loader of the image does not find"
    return how, reason


def _seen_interfaces(
    loader: Loader, openmpi: OpenMpi, closure: dict[str, str | None]
) -> tuple[dict[str, str], str]:
    how: dict[str, str] = {}
    names = openmpi.components.get("pmix", ())
    for name in names:
        face = "pmix" if _PMIX.match(name) else _SLURM.get(name)
        if face:
            how[face] = f"component {name}" if ("pmix", name) in openmpi.files else "linked"
    if not names and (plugin := openmpi.files.get(("ess", "pmi"))):
        # Before Open MPI 2.0, builds linked the component ess_pmi with Slurm's PMI libraries.
        linked = {plain(soname).partition(".so")[0] for soname in loader.closure(plugin)[0]}
        how |= {face: "component ess_pmi" for face, lib in _OLD.items() if lib in linked}
    if names:
        return dict(sorted(how.items())), f"components {' '.join(names)}{_not_loading(openmpi)}"
    if how:
        return dict(sorted(how.items())), "component ess_pmi"
    if any(plain(soname).startswith("libpmix.so") for soname in closure):
        return {"pmix": "linked"}, "the library needs libpmix.so.2"
    if openmpi.pmix:
        return {"pmix": "linked"}, f"PMIx {openmpi.pmix} is built in"
    return {}, f"the library contains neither PMIx nor PMI{_not_loading(openmpi)}"


_OLD = {"pmi1": "libpmi", "pmi2": "libpmi2"}


@dataclass(frozen=True, slots=True)
class OpenMpiFolder:
    """An Open MPI that is not in the folder that its build or OPAL_PREFIX names.

    ``library`` is Open MPI's library that loads the plugins. It searches for plugins in the folder
    ``built_for``. ``led_by`` is the variable, with its value, that makes Open MPI search the folder with the
    plugins: ``{"OPAL_PREFIX": "/opt/hpcx/ompi"}``.
    """

    library: str
    built_for: str
    led_by: dict[str, str]


def find_moved(loader: Loader, openmpi: OpenMpi, closure: dict[str, str | None]) -> OpenMpiFolder | None:
    """Return the facts of an Open MPI that searches for its plugins in a wrong folder.

    The wrong folder comes from the configuration of Open MPI's build, or from OPAL_PREFIX in the image. The
    result is None if Open MPI searches the folder with its plugins. The result is also None if the image sets
    one of the variables ``_LEADING``.

    libopen-pal in HPC-X names a folder of the build machine. libopen-pal in a conda package also names such a
    folder if conda did not replace the prefix in the package's files (conda/conda#10284). If Open MPI's
    shared memory components are plugins, Open MPI does not start without them. If these components are built
    in, Open MPI runs without plugins, and the result is None. Source: open-mpi/ompi:opal/mca/installdirs.
    """
    pal = next(
        (p for soname, p in closure.items() if p and without_hash(soname).startswith("libopen-pal.")),
        None,
    )
    files = [file for (framework, _), file in openmpi.files.items() if framework == "shmem"]
    if pal is None or not files or any(loader.environment.get(name) for name in _LEADING):
        return None
    named = loader.environment.get("OPAL_PREFIX", "").rstrip("/")
    content = loader.texts(pal)
    end = content.find(_AFTER_PREFIX)
    prefix = _PREFIX.search(content[max(0, end - _LONGEST) : end]) if end >= 0 else None
    below, name = _LIBRARIES.findall(content), _PLUGINS.search(content)
    if not ((named or prefix) and below and name):
        return None
    configured = prefix[1].decode("utf-8", "replace") if prefix else ""
    built, folder = named or configured, posixpath.dirname(files[0])
    inner = [(prefix + name[1]).decode("utf-8", "replace") for prefix in dict.fromkeys(below)]
    if any(loader.real_path(built + path) == (loader.real_path(folder) or folder) for path in inner):
        return None
    root = next((folder.removesuffix(path) for path in inner if folder.endswith(path)), None)
    return OpenMpiFolder(pal, built + inner[0], {"OPAL_PREFIX": root} if root else {"OPAL_PKGLIBDIR": folder})


_LEADING = ("OPAL_LIBDIR", "OPAL_PKGLIBDIR", "OMPI_MCA_mca_base_component_path")
"""Variables that set Open MPI's folder for plugins directly."""
_AFTER_PREFIX = b"\0${exec_prefix}/bin\0"
_PREFIX = re.compile(rb"\0(/[^\0]{1,1000})\0+(?:\$\{prefix\}\0*)?\Z")
"""A pattern for the prefix and the exec_prefix from Open MPI's ``configure``. If conda replaces the prefix
with a shorter path, conda fills the remaining bytes with NUL bytes.
"""
_LIBRARIES = re.compile(
    rb"(?<=\0)\$\{(?:exec_)?prefix\}((?:/[^\0/]{1,60}){0,5}/(?:lib(?!exec)\w{0,20}|[\w.]{1,20}-linux-gnu\w{0,9}))(?=\0)"
)
"""A pattern for the library folders of Open MPI, and of the PMIx and hwloc that Open MPI may contain."""
_PLUGINS = re.compile(rb"\0\$\{libdir\}(/openmpi[^\0/]{0,20})\0")
_LONGEST = 2048


def _client(loader: Loader, plugins: dict[tuple[str, str], str]) -> tuple[mca.McaComponent, ...]:
    """Return the components of the PMIx inside an Open MPI plugin, such as ``mca_pmix_pmix3x.so``."""
    own = (
        path for (framework, name), path in plugins.items() if framework == "pmix" and _OWN_PMIX.match(name)
    )
    return tuple(c for path in own for c in mca.components(loader.texts(path)) if c.project == "pmix")


def _not_loading(openmpi: OpenMpi) -> str:
    lost = [
        f"{name} lacks {why}"
        for name, why in openmpi.missing_libraries.items()
        if name.startswith(("pmix_", "ess_"))
    ]
    return f"; not loadable: {', '.join(lost)}" if lost else ""


def _plugins(loader: Loader, path: str, real_path: str) -> tuple[dict[tuple[str, str], str], dict[str, str]]:
    """Return the path of each plugin that ld.so can load, and the missing libraries of each other plugin.

    The keys of the first value are pairs of framework and name. The keys of the second value are names
    such as ``pmix_ext3x``.
    """
    loading: dict[tuple[str, str], str] = {}
    broken: dict[str, str] = {}
    for file in _files(loader, path, real_path)[:_MOST_PLUGINS]:
        named = _PLUGIN.match(file)
        if named is None or named[1] not in _FRAMEWORKS:
            continue
        lacks = [soname for soname, where in loader.closure(file)[0].items() if where is None]
        if lacks:
            broken[f"{named[1]}_{named[2]}"] = " ".join(lacks)
        else:
            loading.setdefault((named[1], named[2]), file)
    return loading, broken


def plugin_files(loader: Loader, path: str, real_path: str) -> bool:
    """Return whether an Open MPI has plugins, that is, components in separate files."""
    return bool(_files(loader, path, real_path))


def _files(loader: Loader, path: str, real_path: str) -> list[str]:
    folders = {posixpath.dirname(path), posixpath.dirname(real_path)}
    patterns = [
        f"{folder}/{below}/mca_*.so"
        for folder in sorted(folders)
        for below in ("openmpi", "openmpi*", "openmpi/lib/openmpi*", "lib/openmpi*")
    ]
    return list(dict.fromkeys(p for pattern in patterns for p in files.glob(loader.tree, pattern)))


def _merge_components(
    static_components: dict[str, tuple[str, ...]], plugins: dict[tuple[str, str], str], number: str | None
) -> dict[str, tuple[str, ...]]:
    merged = {framework: set(names) for framework, names in static_components.items()}
    for framework, name in plugins:
        merged.setdefault(framework, set()).add(name)
    if number and int(number.partition(".")[0]) < 5 and "vader" in merged.get("btl", set()):
        # In Open MPI 3 and 4, the component btl/sm only prints that btl/vader replaces btl/sm.
        # ompi_info also omits btl/sm (open-mpi/ompi:opal/mca/btl/sm/help-mpi-btl-sm.txt at v4.1).
        merged["btl"].discard("sm")
    return {framework: tuple(sorted(names)) for framework, names in sorted(merged.items())}


def _full(number: str, contents: list[bytes]) -> str:
    """Return the version ``number`` with its suffix, such as ``5.0.0rc2``. If the libraries contain
    ``number`` with different suffixes, return ``number``.
    """
    pattern = re.compile(rb"\0v?" + re.escape(number).encode() + rb"(" + _SUFFIX.encode() + rb")?(?=\0)")
    suffixes = {m[1].decode() if m[1] else "" for content in contents for m in pattern.finditer(content)}
    return number + suffixes.pop() if len(suffixes) == 1 else number


def _text(release: str, contents: list[bytes]) -> str | None:
    """Return the text that MPI_Get_library_version would return, or None if the libraries lack a part of the
    text.

    Source: open-mpi/ompi:ompi/mpi/c/get_library_version.c.
    """
    content = next((c for c in contents if b"Open MPI v%d.%d.%d\0" in c and b", package: %s\0" in c), b"")
    number = re.match(r"\d+\.\d+\.\d+", release)
    if not content or number is None:
        return None
    whole = b"\0".join(contents)
    package = _only(rb"\0(Open MPI [^\0 ]{1,80}@[^\0 ]{1,80} Distribution)(?=\0)", whole) or _only(
        rb"\0((?!, )[^\0]{0,40}Open ?MPI[^\0]{0,40})\0, package: %s(?=\0)", content
    )
    revision = _only(
        rb"\0(v" + re.escape(number[0]).encode() + rb"(?:[-a-z0-9.]{0,40}))(?=\0)", whole
    )  # in a release, the revision is the release's git tag, such as v4.1.4
    date = _only(rb"\0((?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d\d, 20\d\d)(?=\0)", whole)
    if not (package and revision and date):
        return None
    return f"Open MPI v{release}, package: {package}, ident: {release}, repo rev: {revision}, {date}"


def _only(pattern: bytes, content: bytes) -> str | None:
    texts = set(re.findall(pattern, content))
    return texts.pop().decode("utf-8", "replace") if len(texts) == 1 else None
