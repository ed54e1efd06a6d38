"""What is loaded in a container over whose MPI the host's is mounted; pure."""

import posixpath

import msgspec

from toolkit.engine.case import Case
from toolkit.engine.plans import host_launcher
from toolkit.folders import is_system
from toolkit.model.facts import HostFacts, HostMpi, ImageFacts, ImageMpi
from toolkit.model.prediction import Plan
from toolkit.versions import within

_TRANSPORTS = {"libucp.so.0": "ucx_transports", "libfabric.so.1": "libfabric_providers"}
_TWO_LIBRARIES = ">=6.0.0rc1"


def replaces(host: HostMpi | None, image: ImageFacts) -> bool | None:
    """Tell whether a program in the image would load the host's library; ``None`` if that is not known.

    The loader goes by the soname alone: ``libmpich.so.12`` is not ``libmpi.so.12``.
    """
    if host is None or image.mpi is None:
        return False
    if host.soname is None or image.mpi.soname is None:
        return None
    return host.soname == image.mpi.soname


def halves(case: Case) -> bool:
    """Tell whether half of the image's MPI meets half of the host's.

    Programs of Open MPI 6 need a second library, libopen_mpi.so.40, which earlier releases do not have
    (open-mpi/ompi:docs 6.0).
    """
    host, inside = host_launcher(case.host), case.original.mpi
    if host is None or inside is None or not replaces(host, case.original):
        return False
    if inside.implementation != "openmpi" or not within(inside.version or "", _TWO_LIBRARIES):
        return False
    return not within(host.version or "", _TWO_LIBRARIES)


def carried(provider: HostMpi) -> frozenset[str]:
    """Return the libraries that come with the host's MPI: its own, and what it and its components load."""
    besides = (provider.components_need or {}).values()
    own = (provider.soname,) if provider.soname else ()
    return frozenset((*own, *(provider.needs or ()), *(name for names in besides for name in names)))


def mounted(provider: HostMpi | None, plan: Plan) -> frozenset[str]:
    """Return those of them that are in the container; of facts without places those below its prefix."""
    if provider is None or not plan.binds:
        return frozenset()
    if provider.places is None:
        return carried(provider) - set(provider.outside or ())
    targets = [(bind.split(":") * 2)[1] for bind in plan.binds]
    return frozenset(
        name
        for name, folder in _places(provider).items()
        if any(f"{folder}/".startswith(f"{target.rstrip('/')}/") for target in targets)
    )


def first(provider: HostMpi | None, plan: Plan) -> frozenset[str]:
    """Return those of them that the loader takes before the image's: LD_LIBRARY_PATH names their folder."""
    if provider is None or provider.places is None:
        return mounted(provider, plan)
    searched = plan.env.get("LD_LIBRARY_PATH", "").split(":")
    return frozenset(n for n in mounted(provider, plan) if _places(provider).get(n) in searched)


def _places(provider: HostMpi) -> dict[str, str]:
    own = (
        {provider.soname: posixpath.dirname(provider.library)} if provider.soname and provider.library else {}
    )
    return {**(provider.places or {}), **own}


def loaded(host: HostFacts, image: ImageFacts, plan: Plan) -> ImageFacts:
    """Return the image as its programs find it with the host's MPI mounted in."""
    provider = host_launcher(host)
    if not replaces(provider, image) or provider is None or image.mpi is None:
        return image
    line = f"host: {provider.library or provider.launcher}, mounted over {image.mpi.library}"
    told = dict.fromkeys(("mpi", "mpi.version", "mpi.interfaces", "mpi.plugins"), line)
    absent: dict[str, str] = {}
    pmix, ucx, components = provider.pmix, provider.ucx, {}
    if _of_image("libpmix.so.2", provider, image, plan):
        pmix, components = image.pmix, image.pmix_components
    else:
        told |= {"pmix": line}
        absent |= {"pmix_components": f"{line}: those of its PMIx were not asked"}
    if provider.pmix is None and pmix is None:
        absent["pmix"] = f"{line}: it has no PMIx client that could be told"
    if _of_image("libucp.so.0", provider, image, plan):
        ucx = image.ucx
    listed = "libfabric.so.1" in (image.libraries or ())
    libfabric = image.libfabric if listed or is_system(image.libfabric or "") else None
    if libfabric is None and image.libfabric:
        # What the image's own MPI finds by its run path, another library does not find.
        absent["libfabric"] = f"image: {image.libfabric}, out of reach for {line}"
    unknown = {k: v for k, v in image.unknown.items() if k not in told and k not in absent}
    brought = [fact for soname, fact in _TRANSPORTS.items() if soname in mounted(provider, plan)]
    unknown |= dict.fromkeys(brought, f"{line}: what its own library can send through was not asked")
    if provider.interfaces is None:
        unknown["mpi.interfaces"] = f"{line}: which interfaces it speaks could not be told"
    return msgspec.structs.replace(
        image,
        mpi=_mpi(provider, image, plan),
        pmix=pmix,
        pmix_components=components,
        ucx=ucx,
        libfabric=libfabric,
        **dict.fromkeys(brought),
        evidence={**image.evidence, **told},
        absent={**{k: v for k, v in image.absent.items() if k not in told}, **absent},
        unknown=unknown,
    )


def _mpi(provider: HostMpi, image: ImageFacts, plan: Plan) -> ImageMpi:
    return ImageMpi(
        implementation=provider.implementation,
        version=provider.version,
        library=provider.library or provider.launcher,
        interfaces=provider.interfaces,
        plugins=bool(provider.plugins),
        soname=provider.soname,
        device=provider.device,
        needs=provider.needs or (),
        components=_components(provider, image, plan),
    )


def _components(provider: HostMpi, image: ImageFacts, plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the components that can be loaded: Open MPI passes by one whose library is not there."""
    there = None if image.libraries is None else {*image.libraries, *mounted(provider, plan)}
    found: dict[str, tuple[str, ...]] = {}
    for framework, names in (provider.components or {}).items():
        needs = {name: set((provider.components_need or {}).get(f"{framework}_{name}", ())) for name in names}
        found[framework] = tuple(n for n in names if there is None or needs[n] <= there)
    return found


def _of_image(soname: str, provider: HostMpi, image: ImageFacts, plan: Plan) -> bool:
    """Tell whether the host's MPI loads this library of the image: it needs it, and did not bring it."""
    return soname in carried(provider) - mounted(provider, plan) and soname in (image.libraries or ())
