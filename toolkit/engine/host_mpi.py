"""Find the facts of an image that apply to its programs after a launch mounts the host's MPI over the image's
MPI.
"""

import posixpath
import re
from typing import Any

import msgspec

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.traits import bind_target, host_launcher, mounted_mpi
from toolkit.folders import is_below, is_system
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import Plan

_TRANSPORTS = {"libucp.so.0": "ucx_transports", "libfabric.so.1": "libfabric_providers"}
SPEAKERS = {
    "pmix": re.compile(r"(ext\d|pmix\d)x\Z"),
    "pmi1": re.compile(r"s1\Z"),
    "pmi2": re.compile(r"s2\Z"),
}
"""Launch interface → pattern of the Open MPI components that use this interface to find peers
(open-mpi/ompi:opal/mca/pmix at v4.1).
"""


def is_replaced(host: HostMpi | None, image: ImageFacts, plan: Plan) -> bool | None:
    """Return whether programs in the image load the host's MPI library; ``None`` if unknown.

    The loader compares only sonames, so a library with the soname ``libmpich.so.12`` does not replace
    ``libmpi.so.12``. The loader loads the host's library if the sonames are equal, the launch mounts the
    host's library, and LD_LIBRARY_PATH names the folder of the host's library. If all MPI programs find the
    image's library through DT_RPATH, which the loader searches first, the result is False.
    """
    if host is None:
        return False
    if image.mpi is None:
        return bool(_served(host, image) & first_of(host, plan)) if "mpi" in image.absent else None
    if host.soname is None or image.mpi.soname is None:
        return None
    if finds_own_mpi(image):
        return False
    return host.soname == image.mpi.soname and host.soname in first_of(host, plan)


def _served(host: HostMpi, image: ImageFacts) -> frozenset[str]:
    """For an image without MPI, return the sonames (library names) of the host's MPI that the image's
    programs need. If the facts do not show what the programs need, return all sonames of the host's MPI.
    """
    named = image.program.needs if image.program else ""
    needed = {named} if named else set(image.programs_need.values())
    return frozenset(_sonames(host)) & needed if needed else frozenset(_sonames(host))


def _sonames(host: HostMpi) -> tuple[str, ...]:
    """Return the sonames under which programs can load the host's MPI."""
    own = (host.soname,) if host.soname else ()
    return (*own, *(row.library for row in knowledge.mpi().standard_abi if row.of(host)))


def finds_own_mpi(image: ImageFacts) -> bool:
    """Return whether all programs that use the image's MPI find this MPI through DT_RPATH. DT_RPATH is a
    library path in a program's file, which the loader searches before LD_LIBRARY_PATH.
    """
    users = {path for path, library in image.programs.items() if image.mpi and library == image.mpi.library}
    return bool(users) and users <= set(image.programs_fixed)


def provider_of(case: Case) -> HostMpi | None:
    """Return the host's MPI that this launch mounts, or that the launch mode ``bind`` would mount."""
    return mounted_mpi(case.host_facts, case.original_facts)


def provider_guarded(case: Case) -> HostMpi | None:
    """Return the host's MPI that this launch mounts, or that the launch mode ``bind`` would mount. If this
    MPI's mpirun is first on PATH, reading an unknown field of the MPI raises :class:`Undecided`.
    """
    found = provider_of(case)
    return host_launcher(case.host) if found == host_launcher(case.host_facts) else found


def mounted_loads(case: Case) -> bool | None:
    """Return whether programs load the host's MPI instead of the image's MPI; ``None`` if unknown."""
    return is_replaced(provider_of(case), case.original_facts, case.plan)


def mounted_first(case: Case) -> frozenset[str]:
    """Return the sonames of the mounted MPI libraries that the loader finds before the image's libraries."""
    return first_of(provider_of(case), case.plan)


def mounted_libraries(case: Case) -> frozenset[str]:
    """Return the sonames of the host's MPI libraries that the launch mounts into the container."""
    return mounted_of(provider_of(case), case.plan)


def is_split(case: Case) -> bool:
    """Return whether programs load one MPI library from the host and a second MPI library from the image.

    Programs built with Open MPI 6 need a second library, libopen_mpi.so.40, which earlier releases lack
    (open-mpi/ompi:docs 6.0).
    """
    host, inside = provider_of(case), case.original_facts.mpi
    if host is None or inside is None or not mounted_loads(case):
        return False
    two = knowledge.mpi().release.two_libraries
    return two.of(inside) and not two.of(host)


def libraries_of(provider: HostMpi) -> frozenset[str]:
    """Return the sonames of the host's MPI library, and of all libraries that this library and its components
    need.
    """
    besides = (provider.components_need or {}).values()
    return frozenset(
        (*_sonames(provider), *(provider.needs or ()), *(name for names in besides for name in names))
    )


def mounted_of(provider: HostMpi | None, plan: Plan) -> frozenset[str]:
    """Return the sonames of the host's MPI libraries that the launch mounts into the container.

    If the facts do not name the libraries' folders, assume that the libraries are below the MPI's prefix.
    """
    if provider is None:
        return frozenset()
    targets = targets_of(plan)
    if provider.places is None:
        prefix = provider.prefix or ""
        there = any(is_below(t, prefix) or is_below(prefix, t) for t in targets)
        return libraries_of(provider) - set(provider.outside or ()) if there else frozenset()
    return frozenset(
        name
        for name, folder in _places(provider).items()
        if any(is_below(folder, target) for target in targets)
    )


def targets_of(plan: Plan) -> tuple[str, ...]:
    """Return the folders in the container where the launch mounts folders of the host."""
    return tuple(map(bind_target, plan.binds))


def first_of(provider: HostMpi | None, plan: Plan) -> frozenset[str]:
    """Return the sonames of the mounted libraries that the loader finds before the image's libraries, because
    LD_LIBRARY_PATH names their folder. If toolkit does not know the folders, return all mounted libraries.
    """
    if provider is None or provider.places is None:
        return mounted_of(provider, plan)
    searched = plan.env.get("LD_LIBRARY_PATH", "").split(":")
    return frozenset(n for n in mounted_of(provider, plan) if _places(provider).get(n) in searched)


def _places(provider: HostMpi) -> dict[str, str]:
    folder = posixpath.dirname(provider.library or "")
    return {**(provider.places or {}), **(dict.fromkeys(_sonames(provider), folder) if folder else {})}


def apply_host_mpi(host: HostFacts, image: ImageFacts, plan: Plan) -> ImageFacts:
    """Return the facts of the image for programs that start after the launch mounts the host's MPI. If the
    programs do not load the host's MPI, the result is ``image``.
    """
    provider = mounted_mpi(host, image)
    if not is_replaced(provider, image, plan) or provider is None:
        return image
    over = f"mounted over {image.mpi.library}" if image.mpi else "mounted into the image, which has no MPI"
    line = f"host: {provider.library or provider.launcher}, {over}"
    mpi = _mpi(provider, image, plan)
    told = dict.fromkeys(("mpi", "mpi.version", "mpi.interfaces", "mpi.plugins"), line)
    client, absent, unknown = _client(provider, image, plan, line)
    own_ucx = provider.ucx if "libucp.so.0" in mounted_of(provider, plan) else None
    ucx = image.ucx if _of_image("libucp.so.0", provider, image, plan) else own_ucx
    listed = "libfabric.so.1" in (image.libraries or ())
    libfabric = image.libfabric if listed or is_system(image.libfabric or "") else None
    if libfabric is None and image.libfabric:
        # The image's MPI finds this libfabric through the run path in the image's MPI library.
        # The host's MPI does not search the run path of the image's MPI library.
        absent["libfabric"] = f"image: {image.libfabric}, which the host's MPI does not find ({line})"
    own = {fact: soname for soname, fact in _TRANSPORTS.items() if soname in mounted_of(provider, plan)}
    unknown |= {k: f"{line}: the transports of the host's {soname} are unknown" for k, soname in own.items()}
    if provider.interfaces is None:
        unknown["mpi.interfaces"] = f"{line}: the PMI and PMIx interfaces of the mounted library are unknown"
    kept = [_without_mpi(book, {*client, *absent, *unknown}) for book in (image.absent, image.unknown)]
    return msgspec.structs.replace(
        image,
        mpi=mpi,
        **client,
        ucx=ucx,
        libfabric=libfabric,
        **dict.fromkeys(own),
        evidence={**_without_mpi(image.evidence, set()), **told, **({"pmix": line} if client else {})},
        absent={**kept[0], **absent},
        unknown={**kept[1], **unknown},
    )


def _without_mpi(book: dict[str, str], names: set[str]) -> dict[str, str]:
    """Return ``book``, a table of facts and their evidence, without the facts in ``names``. The result also
    lacks all facts about the image's MPI, because programs do not load the image's MPI.
    """
    return {k: v for k, v in book.items() if k.partition(".")[0] != "mpi" and k not in names}


def _client(
    provider: HostMpi, image: ImageFacts, plan: Plan, line: str
) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """Return three tables about the PMIx client that programs load: known facts, absent facts and unknown
    facts about this client.

    If the host's MPI loads the image's libpmix, the facts about the PMIx client do not change, and all three
    tables are empty.
    """
    if _of_image("libpmix.so.2", provider, image, plan):
        return {}, {}, {}
    client: dict[str, Any] = {"pmix": provider.pmix, "pmix_components": {}, "pmix_plugins": None}
    unasked = f"{line}: the components of the mounted library's PMIx are unknown"
    unknown = dict.fromkeys(("pmix_components", "pmix_plugins"), unasked)
    if provider.pmix is not None:
        return client, {}, unknown
    if provider.interfaces is None or "pmix" in provider.interfaces:
        return (
            client,
            {},
            {**unknown, "pmix": f"{line}: the release of the mounted library's PMIx is unknown"},
        )
    return client, {"pmix": f"{line}: the mounted library has no PMIx client"}, unknown


def _mpi(provider: HostMpi, image: ImageFacts, plan: Plan) -> ImageMpi:
    components = _components(provider, image, plan)
    return ImageMpi(
        implementation=provider.implementation,
        version=provider.version,
        library=provider.library or provider.launcher,
        interfaces=_interfaces(provider, components),
        plugins=bool(provider.plugins),
        soname=provider.soname,
        device=provider.device,
        own_shm=provider.own_shm,
        needs=provider.needs or (),
        components=components,
    )


def _interfaces(provider: HostMpi, components: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the launch interfaces that the loadable components of the host's Open MPI support."""
    if provider.interfaces is None or "libpmix.so.2" in (provider.needs or ()):
        return provider.interfaces
    lost = {
        face
        for face, speaks in SPEAKERS.items()
        if any(map(speaks.match, (provider.components or {}).get("pmix", ())))
        and not any(map(speaks.match, components.get("pmix", ())))
    }
    return tuple(face for face in provider.interfaces if face not in lost)


def _components(provider: HostMpi, image: ImageFacts, plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return a table: MCA framework → components that the host's Open MPI can load. Open MPI skips a
    component if a library of the component is missing.
    """
    there = None if image.libraries is None else {*image.libraries, *mounted_of(provider, plan)}
    found: dict[str, tuple[str, ...]] = {}
    for framework, names in (provider.components or {}).items():
        needs = {name: set((provider.components_need or {}).get(f"{framework}_{name}", ())) for name in names}
        found[framework] = tuple(n for n in names if there is None or needs[n] <= there)
    return found


def _of_image(soname: str, provider: HostMpi, image: ImageFacts, plan: Plan) -> bool:
    """Return whether the host's MPI loads the library ``soname`` of the image. The result is True if the MPI
    needs this library, the launch does not mount it, and the image has it.
    """
    return soname in libraries_of(provider) - mounted_of(provider, plan) and soname in (image.libraries or ())
