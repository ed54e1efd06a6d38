"""Find the network libraries of an image (UCX, libfabric, libibverbs), and hwloc, which binds ranks to
cores."""

import posixpath
import re
from dataclasses import dataclass

from toolkit.image.files import tree as files
from toolkit.image.software.libraries import Finder
from toolkit.image.software.packages import PackageVersion, UnknownVersion
from toolkit.model.mpifacts import ImageMpi
from toolkit.sonames import plain

_UCT = re.compile(r"libuct_(\w+)\.so(?:\.\d+)?\Z")
_UCT_BUILT_IN = re.compile(rb"\0uct_([a-z0-9]+)_tl(?=\0)")
_PROVIDER = re.compile(r"lib(\w+)-fi\.so\Z")
_VERBS = re.compile(r"lib(\w+?)(?:-rdmav\d+)?\.so\Z")
_NCCL_NET = re.compile(r"libnccl-net[\w-]*\.so(?:\.\d+)*\Z")
_FUNCTION = re.compile(rb"(?<![A-Za-z0-9_])([a-z0-9]+|fi_opx)_[a-z]\w+(?=\0)")
_PREFIXES = {
    "vrb": "verbs",
    "efa": "efa",
    "psmx": "psm",
    "psmx2": "psm2",
    "psmx3": "psm3",
    "fi_opx": "opx",
    "xnet": "tcp",
    "tcpx": "tcp",
    "sock": "sockets",
    "udpx": "udp",
    "smr": "shm",
    "sm2": "sm2",
    "rxm": "rxm",
    "rxd": "rxd",
    "mrail": "mrail",
    "lnx": "lnx",
    "cxip": "cxi",
    "gnix": "gni",
    "usdf": "usnic",
    "ucx": "ucx",
}
"""The name of each libfabric provider (the driver for one kind of network), by the prefix of its function
names (ofiwg/libfabric:prov).

toolkit finds function names in stripped libraries, too, because log messages contain these names.
"""
_OWN = ("opt/mpi/libfabric/lib", "libfabric/lib", "libfabric", "lib/libfabric", "lib")
"""The folders of Intel MPI's own libfabric, in the order in which mpi4py searches them (mpi4py/_mpiabi.py).

Intel MPI's env/vars.sh uses only the folders opt/mpi/libfabric/lib and libfabric/lib.
"""
_SURE = 5
"""A library contains a libfabric provider if it contains at least five names of the provider's functions."""
_PLUGIN_NAMES = {"psmx2": "psm2", "psmx3": "psm3", "psmx": "psm"}


@dataclass(frozen=True, slots=True)
class Parts:
    """A list of transports, providers or drivers, and its source.

    ``line`` is the source as a text for users. If ``names`` is None, ``line`` is the reason for the missing
    list. ``known`` is then true if the image certainly lacks the library, and false if toolkit cannot read
    the list.
    """

    names: tuple[str, ...] | None
    line: str
    known: bool = True


_SEARCHED = re.compile(
    rb"Search for providers in specific path.{0,400}?\(default: (/[^)]{1,200})\)", re.DOTALL
)
"""A pattern for libfabric's help text on FI_PROVIDER_PATH. This text contains libfabric's default folder for
plugins, which is set at build time."""


def ucx(finder: Finder) -> PackageVersion | UnknownVersion | None:
    """Return the version of UCX from its main library, libucp."""
    path = finder.anywhere("libucp.so.0")
    return finder.version(path, ("libucx0", "libucx0t64"), rb"1\.\d{1,3}\.\d{1,3}")


def ucx_transports(finder: Finder) -> Parts:
    """Return the transports of UCX, which are built into libuct or are modules beside libuct."""
    path = finder.anywhere("libuct.so.0")
    if path is None:
        return Parts(None, "libuct.so.0: not in the image")
    built_in = {m.decode() for m in _UCT_BUILT_IN.findall(finder.loader.texts(path))}
    folder = posixpath.join(finder.folder(path), "ucx")
    modules, broken = finder.split_plugins(folder, _UCT)
    names = tuple(sorted(built_in | modules.keys()))
    line = f"{path}: {' '.join(sorted(built_in))}; {folder}: {' '.join(sorted(modules)) or 'none'}"
    return Parts(names, f"{line}{_describe_missing(broken)}")


def libfabric(finder: Finder, prefix: str | None) -> str | None:
    """Return the path of the libfabric that programs of the image load, or None.

    If ld.so finds no libfabric, toolkit looks for Intel MPI's own libfabric in ``prefix``, the installation
    prefix of the image's MPI. Programs load Intel MPI's libfabric in two cases. First, Intel MPI's mpirun
    adds the library's folder to LD_LIBRARY_PATH, unless I_MPI_ROOT is set (env/vars.sh). Second, an mpi4py
    that supports several MPIs opens the library by its path.
    """
    if loaded := finder.find_reachable("libfabric.so.1"):
        return loaded
    if prefix is None:
        return None
    tree, own = finder.loader.tree, [f"{prefix}/{below}/libfabric.so.1" for below in _OWN]
    sites = (site for site in finder.places.sites if site.startswith(f"{prefix}/lib/"))
    if not any(files.is_file(tree, f"{site}/mpi4py/_mpiabi.py") for site in sites):
        needs_script = (
            files.is_file(tree, f"{prefix}/env/vars.sh") and "I_MPI_ROOT" not in finder.loader.environment
        )
        own = own[:2] if needs_script else []
    return next((path for path in own if files.is_file(tree, path)), None)


def libfabric_version(finder: Finder, path: str | None) -> PackageVersion | UnknownVersion | None:
    """Return the version of the libfabric at ``path``, or None if ``path`` is None."""
    return finder.version(path, ("libfabric1",) if path else (), rb"[12]\.\d{1,3}\.\d{1,3}")


def carries_libfabric(mpi: ImageMpi) -> bool:
    """Return whether an MPICH contains its own libfabric: it has the network module ``ofi``, but is not
    linked with libfabric.

    Source: pmodels/mpich:src/mpid/ch4/netmod/ofi/subconfigure.m4, option --with-libfabric=embedded.
    """
    needed = (plain(soname).partition(".so")[0] for soname in (*mpi.needs, *mpi.lacks))
    over = (mpi.device or "").partition(":")[2].split(",")
    return mpi.implementation == "mpich" and "ofi" in over and "libfabric" not in set(needed)


def providers(finder: Finder, path: str | None, mpi: ImageMpi | None) -> Parts:
    """Return the providers of libfabric: providers inside the library, and plugins in separate files.

    ``path`` is the path of libfabric. toolkit ignores ``path`` if ``mpi`` contains its own libfabric.
    """
    if mpi is not None and carries_libfabric(mpi):
        names = tuple(sorted(_built_in(finder, mpi.library)))
        if not names:
            why = f"{mpi.library} contains libfabric, but toolkit cannot find out with which providers"
            return Parts(None, why, known=False)
        return Parts(names, f"{mpi.library}: libfabric with {' '.join(names)} built in")
    if path is None:
        return Parts(None, "libfabric.so.1: not in the image")
    built_in = _built_in(finder, path)
    plugins: dict[str, str] = {}
    broken: dict[str, str] = {}
    for folder in dict.fromkeys((*_plugin_folders(finder, path), *sorted(_named_folders(finder)))):
        good, bad = finder.split_plugins(folder, _PROVIDER)
        plugins, broken = {**good, **plugins}, {**bad, **broken}
    own = {_PLUGIN_NAMES.get(name, name) for name in plugins}
    line = f"{path}: {' '.join(sorted(built_in)) or 'none'} built in, {' '.join(sorted(own)) or 'no'} plugins"
    return Parts(tuple(sorted(built_in | own)), f"{line}{_describe_missing(broken)}")


def unsearched_folder(finder: Finder, path: str | None) -> str | None:
    """Return the folder with libfabric's plugins if libfabric does not search this folder.

    The result is empty if libfabric has built-in providers, searches the folder, or has no plugins. It is
    None if the image has no libfabric, or if toolkit does not know which folders libfabric searches.

    libfabric searches the folders in FI_PROVIDER_PATH or, by default, its compiled-in folder. The library
    contains the path of this folder as text (ofiwg/libfabric:src/fabric.c, fi_ini).
    """
    if path is None:
        return None
    match = _SEARCHED.search(finder.loader.texts(path))
    if match is None:
        return None
    folders = _named_folders(finder, match[1].decode())
    provider_folders = [
        folder for folder in _plugin_folders(finder, path) if finder.split_plugins(folder, _PROVIDER)[0]
    ]
    if _built_in(finder, path) or folders & set(provider_folders):
        return ""
    return next(iter(provider_folders), "")


def _plugin_folders(finder: Finder, path: str) -> list[str]:
    """Return the folders in which packages put libfabric's plugins: the library's folder, its subfolders
    ``libfabric`` and ``prov``, and the folder ``libfabric`` beside the library's folder.
    """
    folder = finder.folder(path)
    return [
        posixpath.normpath(posixpath.join(folder, below))
        for below in ("libfabric", "prov", "../libfabric", ".")
    ]


def _named_folders(finder: Finder, default: str = "") -> set[str]:
    """Return the folders in FI_PROVIDER_PATH; if the variable is not set, return the folder ``default``."""
    named = finder.loader.environment.get("FI_PROVIDER_PATH", default)
    return {posixpath.normpath(folder) for folder in named.lstrip("@").split(":") if folder}


def _built_in(finder: Finder, path: str) -> set[str]:
    """Return the names of the libfabric providers that are built into a library. toolkit recognizes each
    provider by the names of its functions.
    """
    counted: dict[str, set[bytes]] = {}
    for match in _FUNCTION.finditer(finder.loader.texts(path)):
        if name := _PREFIXES.get(match[1].decode()):
            counted.setdefault(name, set()).add(match[0])
    return {name for name, functions in counted.items() if len(functions) >= _SURE}


def verbs(finder: Finder) -> Parts:
    """Return the loadable drivers of libibverbs, from the folder ``libibverbs`` beside the library."""
    path = finder.anywhere("libibverbs.so.1")
    if path is None:
        return Parts(None, "libibverbs.so.1: not in the image")
    folder = posixpath.join(finder.folder(path), "libibverbs")
    good, broken = finder.split_plugins(folder, _VERBS)
    line = f"{folder}: {' '.join(sorted(good)) or 'no drivers'}"
    return Parts(tuple(sorted(good)), f"{line}{_describe_missing(broken)}")


def nccl_ofi(finder: Finder) -> PackageVersion | None:
    """Return NCCL's plugin for libfabric (aws-ofi-nccl), with its path in place of a version, or None.

    toolkit also checks the content of the file, because plugins for other networks, such as HPC-X's plugin
    for InfiniBand, have the same file name.
    """
    loader = finder.loader
    for folder in dict.fromkeys((*loader.library_path, *loader.default_folders, *finder.places.libraries)):
        for name in files.names(loader.tree, folder):
            path = posixpath.join(folder, name)
            if not _NCCL_NET.match(name) or not files.is_file(loader.tree, path):
                continue
            elf = loader.elf(path)
            if (elf and "libfabric.so.1" in elf.needed) or b"NET/OFI" in loader.texts(path):
                return PackageVersion(path, f"{path}: the plugin sends through libfabric")
    return None


def nccl_ofi_found(finder: Finder) -> bool | None:
    """Return whether ld.so finds NCCL's plugin for libfabric by its name; None if the image lacks this
    plugin.
    """
    plugin = nccl_ofi(finder)
    folders = {*finder.loader.library_path, *finder.loader.default_folders}
    return posixpath.dirname(plugin.version) in folders if plugin else None


def hwloc(finder: Finder, components: tuple[str, ...]) -> PackageVersion | UnknownVersion | None:
    """Return the version of the hwloc that programs load. If they load none, return the version of the hwloc
    in Open MPI; ``components`` names Open MPI's components, such as ``hwloc201``.
    """
    path = finder.find_reachable("libhwloc.so.15") or finder.find_reachable("libhwloc.so.5")
    version = finder.version(path, ("libhwloc15", "libhwloc15t64", "libhwloc5"), rb"[12]\.\d{1,3}\.\d{1,3}")
    if version is None:
        for name in components:
            if number := re.fullmatch(r"hwloc(\d)(\d{1,2}?)(\d)", name):
                return PackageVersion(
                    ".".join(number.groups()), f"Open MPI has hwloc as its component {name}"
                )
    return version


def _describe_missing(missing_libraries: dict[str, str]) -> str:
    shown = [f"{name} lacks {why}" for name, why in sorted(missing_libraries.items())]
    return f"; not loadable: {', '.join(shown)}"[:400] if shown else ""
