"""Find the PMIx client of an MPI (the PMIx library of its ranks), the client's version and its components."""

import posixpath
import re
from dataclasses import dataclass

from toolkit import knowledge
from toolkit.image.files import tree as files
from toolkit.image.loader import mca
from toolkit.image.loader.loader import Loader
from toolkit.image.software.packages import PackageVersion

_FRAMEWORKS = ("psec", "gds", "ptl", "pcompress", "bfrops")
"""The PMIx frameworks (kinds of component), such as security and transport, in which client and server must
be compatible.
"""
_VITAL = frozenset({"psec", "gds", "ptl", "bfrops"})
"""The frameworks without which a PMIx client does not start."""
_PLUGIN = re.compile(r".*/(?:pmix_)?mca_([a-z]+)_(\w+)\.so\Z")
_MOST = 100
_MOST_PLUGINS = 10
"""Maximum number of plugins from which toolkit reads the release; all plugins of one build have the same
release."""
_NUMBER = re.compile(r"\A(\d+\.\d+\.\d+)(?:a|b|rc)\d+\Z")


@dataclass(frozen=True, slots=True)
class Pmix:
    """A PMIx client; ``library`` is empty if the MPI contains the client.

    ``plugins`` is true if components that the client needs are in separate files.
    """

    version: PackageVersion | None
    library: str
    components: dict[str, tuple[str, ...]]
    plugins: bool


def of_library(loader: Loader, library: str, packages: dict[str, str]) -> Pmix:
    """Return the facts of a libpmix and of the plugins beside the library."""
    real = files.resolve(loader.tree, library) or library
    content = loader.texts(real)
    built_in = mca.components(content)
    components = _components(loader, real, built_in)
    return Pmix(
        _version(real, content, built_in, packages), real, components, _needs_plugins(components, built_in)
    )


def built_in(
    loader: Loader, mpi: str, where: str, release: str | None, components_of_mpi: tuple[mca.McaComponent, ...]
) -> Pmix:
    """Return the facts of the PMIx client inside an Open MPI; the plugins of this client are in ``lib/pmix``.

    toolkit assumes that a pre-release of Open MPI such as 4.1.7a1 contains the PMIx of the final release,
    unless the PMIx components name another release.
    """
    real = files.resolve(loader.tree, where) or where
    if release := release or _of_plugins(loader, real):
        own_release: PackageVersion | None = PackageVersion(
            release, f"{where}: PMIx {release} is built in, by its components"
        )
    elif bundled := knowledge.bundled_pmix(_NUMBER.sub(r"\1", mpi)):
        own_release = PackageVersion(bundled, f"{where}: Open MPI {mpi} contains PMIx {bundled}")
    else:
        own_release = None
    components = _components(loader, real, components_of_mpi)
    return Pmix(own_release, "", components, _needs_plugins(components, components_of_mpi))


def _needs_plugins(components: dict[str, tuple[str, ...]], built_in: tuple[mca.McaComponent, ...]) -> bool:
    inside = mca.by_framework(built_in, *_VITAL)
    return any(framework not in inside for framework in components if framework in _VITAL)


def _of_plugins(loader: Loader, real: str) -> str | None:
    """Return the PMIx release that the plugins beside an Open MPI library contain, or None."""
    listed = _plugins(loader, real)[:_MOST_PLUGINS]
    return mca.release(tuple(c for file in listed for c in mca.components(loader.texts(file))), "pmix")


def _plugins(loader: Loader, real: str) -> list[str]:
    return list(files.glob(loader.tree, f"{posixpath.dirname(real)}/pmix*/*mca_*.so"))


def _version(
    real: str, content: bytes, all_components: tuple[mca.McaComponent, ...], packages: dict[str, str]
) -> PackageVersion | None:
    match = re.search(rb"OpenPMIx (\d{1,3}(?:\.\d{1,3}){1,3}[0-9a-z]{0,8})", content)
    by_itself = (
        PackageVersion(match[1].decode(), f"{real} says OpenPMIx {match[1].decode()}") if match else None
    )
    # A distribution's libpmix may name a release candidate, although it has the code of the final release.
    if by_itself and not real.startswith("/usr/lib/"):
        return by_itself
    if by_name := knowledge.pmix_of_file(real):
        return PackageVersion(by_name, f"{real} is PMIx {by_name}, by its file name")
    if real.startswith("/usr/lib/") and (package := packages.get("libpmix2") or packages.get("libpmix2t64")):
        return PackageVersion(package, f"{real}: dpkg has libpmix2 {package}")
    if by_itself:
        return by_itself
    release = mca.release(all_components, "pmix")
    return PackageVersion(release, f"{real}: its components are of PMIx {release}") if release else None


def _components(
    loader: Loader, real: str, all_components: tuple[mca.McaComponent, ...]
) -> dict[str, tuple[str, ...]]:
    """Return the names of the components by framework, without plugins that need a missing library."""
    names = {framework: set(own) for framework, own in mca.by_framework(all_components, *_FRAMEWORKS).items()}
    for file in _plugins(loader, real)[:_MOST]:
        named = _PLUGIN.match(file)
        if named and named[1] in _FRAMEWORKS and None not in loader.closure(file)[0].values():
            names.setdefault(named[1], set()).add(named[2])
    return {framework: tuple(sorted(own)) for framework, own in sorted(names.items())}
