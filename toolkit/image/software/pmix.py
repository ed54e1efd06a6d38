"""Find the version and the components of an MPI's PMIx client, the PMIx code that the MPI's ranks use."""

import posixpath
import re
from dataclasses import dataclass

from toolkit import knowledge
from toolkit.image.files import tree as files
from toolkit.image.loader import mca
from toolkit.image.loader.loader import Loader
from toolkit.image.software.packages import PackageVersion

_FRAMEWORKS = ("psec", "gds", "ptl", "pcompress", "bfrops")
"""The frameworks (kinds of component) of PMIx in which the client and the server need compatible components.
For example, ``psec`` is security, and ``ptl`` is transport.
"""
_VITAL = frozenset({"psec", "gds", "ptl", "bfrops"})
"""A PMIx client does not start if one of these frameworks has no component."""
_PLUGIN = re.compile(r".*/(?:pmix_)?mca_([a-z]+)_(\w+)\.so\Z")
_MOST = 100
_MOST_PLUGINS = 10
"""Maximum number of plugins from which toolkit reads the release; all plugins of one build have the same
release."""
_NUMBER = re.compile(r"\A(\d+\.\d+\.\d+)(?:a|b|rc)\d+\Z")


@dataclass(frozen=True, slots=True)
class Pmix:
    """A PMIx client.

    ``version`` is None if it is unknown. ``library`` is the path of libpmix; it is empty if the MPI's own
    library contains the client. ``components`` maps each framework to the names of its components.
    ``plugins`` is true if the client cannot start without plugins (components in separate files).
    """

    version: PackageVersion | None
    library: str
    components: dict[str, tuple[str, ...]]
    plugins: bool


def of_library(loader: Loader, library: str, packages: dict[str, str]) -> Pmix:
    """Return the facts of the PMIx client in a libpmix and in the plugins beside this libpmix.

    ``packages`` maps each Debian package to its version.
    """
    real = files.resolve(loader.tree, library) or library
    content = loader.texts(real)
    built_in = mca.components(content)
    components = _components(loader, real, built_in)
    return Pmix(
        _version(real, content, built_in, packages), real, components, _needs_plugins(components, built_in)
    )


def built_in(
    loader: Loader,
    mpi: str,
    library: str,
    release: str | None,
    components_of_mpi: tuple[mca.McaComponent, ...],
) -> Pmix:
    """Return the facts of the PMIx client inside an Open MPI.

    ``mpi`` is the version of Open MPI, and ``library`` is the path of its library. ``release`` is the release
    that the client's built-in components name, or None. If neither these components nor plugins name a
    release, toolkit looks up the PMIx release that this version of Open MPI contains. For a pre-release of
    Open MPI, such as 4.1.7a1, toolkit looks up the final release.
    """
    real = files.resolve(loader.tree, library) or library
    if release := release or _of_plugins(loader, real):
        own_release: PackageVersion | None = PackageVersion(
            release, f"{library} contains PMIx {release}: the PMIx components name this release"
        )
    elif bundled := knowledge.bundled_pmix(_NUMBER.sub(r"\1", mpi)):
        own_release = PackageVersion(bundled, f"{library}: Open MPI {mpi} contains PMIx {bundled}")
    else:
        own_release = None
    components = _components(loader, real, components_of_mpi)
    return Pmix(own_release, "", components, _needs_plugins(components, components_of_mpi))


def _needs_plugins(
    components: dict[str, tuple[str, ...]], static_components: tuple[mca.McaComponent, ...]
) -> bool:
    inside = mca.by_framework(static_components, *_VITAL)
    return any(framework not in inside for framework in components if framework in _VITAL)


def _of_plugins(loader: Loader, real_path: str) -> str | None:
    """Return the PMIx release that the plugins beside an Open MPI library contain, or None."""
    listed = _plugins(loader, real_path)[:_MOST_PLUGINS]
    return mca.release(tuple(c for file in listed for c in mca.components(loader.texts(file))), "pmix")


def _plugins(loader: Loader, real_path: str) -> list[str]:
    return list(files.glob(loader.tree, f"{posixpath.dirname(real_path)}/pmix*/*mca_*.so"))


def _version(
    real_path: str, content: bytes, all_components: tuple[mca.McaComponent, ...], packages: dict[str, str]
) -> PackageVersion | None:
    match = re.search(rb"OpenPMIx (\d{1,3}(?:\.\d{1,3}){1,3}[0-9a-z]{0,8})", content)
    by_itself = (
        PackageVersion(match[1].decode(), f"{real_path} says OpenPMIx {match[1].decode()}") if match else None
    )
    # The libpmix of a Linux distribution may say that it is a release candidate, although its code is the
    # final release. For libraries in /usr/lib, prefer the version of the package.
    if by_itself and not real_path.startswith("/usr/lib/"):
        return by_itself
    if by_name := knowledge.pmix_of_file(real_path):
        return PackageVersion(by_name, f"{real_path} is PMIx {by_name}, by its file name")
    if real_path.startswith("/usr/lib/") and (
        package := packages.get("libpmix2") or packages.get("libpmix2t64")
    ):
        return PackageVersion(package, f"{real_path}: dpkg has libpmix2 {package}")
    if by_itself:
        return by_itself
    release = mca.release(all_components, "pmix")
    return PackageVersion(release, f"{real_path}: its components name PMIx {release}") if release else None


def _components(
    loader: Loader, real_path: str, all_components: tuple[mca.McaComponent, ...]
) -> dict[str, tuple[str, ...]]:
    """Return the names of the PMIx components by framework, except plugins that need a missing library."""
    names = {framework: set(own) for framework, own in mca.by_framework(all_components, *_FRAMEWORKS).items()}
    for file in _plugins(loader, real_path)[:_MOST]:
        named = _PLUGIN.match(file)
        if named and named[1] in _FRAMEWORKS and None not in loader.closure(file)[0].values():
            names.setdefault(named[1], set()).add(named[2])
    return {framework: tuple(sorted(own)) for framework, own in sorted(names.items())}
