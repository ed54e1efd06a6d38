"""What is loaded in a container over whose MPI the host's is mounted; pure."""

import msgspec

from toolkit.engine.plans import host_launcher
from toolkit.model.facts import HostFacts, HostMpi, ImageFacts, ImageMpi


def replaces(host: HostMpi | None, image: ImageFacts) -> bool | None:
    """Tell whether a program in the image would load the host's library; ``None`` if that is not known.

    The loader goes by the soname alone: ``libmpich.so.12`` is not ``libmpi.so.12``.
    """
    if host is None or image.mpi is None:
        return False
    if host.soname is None or image.mpi.soname is None:
        return None
    return host.soname == image.mpi.soname


def loaded(host: HostFacts, image: ImageFacts) -> ImageFacts:
    """Return the image as its programs find it with the host's MPI mounted in."""
    provider = host_launcher(host)
    if not replaces(provider, image) or provider is None or image.mpi is None:
        return image
    line = f"host: {provider.library or provider.launcher}, mounted over {image.mpi.library}"
    mpi = ImageMpi(
        implementation=provider.implementation,
        version=provider.version,
        library=provider.library or provider.launcher,
        interfaces=provider.interfaces,
        plugins=bool(provider.plugins),
        soname=provider.soname,
        needs=provider.needs or (),
    )
    told = dict.fromkeys(("mpi", "mpi.version", "mpi.interfaces", "mpi.plugins", "pmix"), line)
    unknown = {k: v for k, v in image.unknown.items() if k not in told}
    absent = {k: v for k, v in image.absent.items() if k not in told}
    if provider.pmix is None:
        absent["pmix"] = f"{line}: it has no PMIx client that could be told"
    libfabric = image.libfabric if (image.libfabric or "").startswith(("/usr/lib", "/lib")) else None
    if libfabric is None and image.libfabric:
        # What the image's own MPI finds by its run path, another library does not find.
        absent["libfabric"] = f"image: {image.libfabric}, out of reach for {line}"
    if provider.interfaces is None:
        unknown["mpi.interfaces"] = f"{line}: which interfaces it speaks could not be told"
    return msgspec.structs.replace(
        image,
        mpi=mpi,
        pmix=provider.pmix,
        ucx=provider.ucx,
        libfabric=libfabric,
        evidence={**image.evidence, **told},
        absent=absent,
        unknown=unknown,
    )
