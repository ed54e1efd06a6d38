"""Convert the MPIs that :mod:`.mpi` found to facts of the image. Record the evidence of these facts."""

import msgspec

from toolkit.image.software.evidence_log import ImageEvidence
from toolkit.image.software.mpi import MpiFound
from toolkit.image.software.packages import PackageVersion
from toolkit.model.mpifacts import ImageMpi

_COMPONENTS = ("pmix_components", "pmix_plugins")


def programs(libraries: dict[str, str], log: ImageEvidence) -> dict[str, str]:
    if libraries:
        shown = [f"{path} loads {library or 'a missing MPI library'}" for path, library in libraries.items()]
        more = f", and {len(shown) - 5} more" if len(shown) > 5 else ""
        log.evidence["programs"] = f"{', '.join(shown[:5])}{more}"
    else:
        log.absent["programs"] = (
            "no Python package needs an MPI, and no program outside system folders such as /usr/bin needs an "
            "MPI"
        )
    return libraries


def describe_mpi(mpi_entry: MpiFound | None, log: ImageEvidence) -> ImageMpi | None:
    if mpi_entry is None:
        log.absent["mpi"] = (
            "toolkit found no MPI library, such as libmpi, on the loader's path or in folders such as /opt"
        )
        return None
    log.evidence.update(mpi_entry.evidence)
    log.absent.update(mpi_entry.absent)
    log.unknown.update(mpi_entry.unknown)
    return mpi_entry.mpi


def other_mpis(mpis: tuple[MpiFound, ...], log: ImageEvidence) -> tuple[ImageMpi, ...]:
    for number, mpi in enumerate(mpis[1:]):
        for name, line in mpi.evidence.items():
            log.evidence[name.replace("mpi", f"other_mpis.{number}", 1)] = line
        for name, line in mpi.unknown.items():
            log.unknown[name.replace("mpi", f"other_mpis.{number}", 1)] = line
    return tuple(_with_client(mpi) for mpi in mpis[1:])


def _with_client(mpi_entry: MpiFound) -> ImageMpi:
    client = mpi_entry.pmix.version if mpi_entry.pmix else None
    return msgspec.structs.replace(
        mpi_entry.mpi, pmix=client.version if isinstance(client, PackageVersion) else None
    )


def pmix(mpi_entry: MpiFound | None, log: ImageEvidence) -> str | None:
    if mpi_entry is not None and mpi_entry.mpi.interfaces is None:
        log.unknown["pmix"] = mpi_entry.unknown["mpi.interfaces"]
        return None
    client = mpi_entry.pmix if mpi_entry else None
    if (
        mpi_entry is not None
        and "pmix" in (mpi_entry.mpi.interfaces or ())
        and (client is None or client.version is None)
    ):
        log.unknown["pmix"] = f"{mpi_entry.mpi.library} uses PMIx of an unknown release"
        return None
    return log.take("pmix", client.version if client else None, "the MPI in the image has no PMIx client")


def pmix_components(mpi_entry: MpiFound | None, log: ImageEvidence) -> dict[str, tuple[str, ...]]:
    client = mpi_entry.pmix if mpi_entry else None
    if mpi_entry is None or client is None:
        log.absent |= dict.fromkeys(_COMPONENTS, "the MPI in the image has no PMIx client")
        return {}
    where = client.library or mpi_entry.mpi.library
    if not client.components:
        log.unknown |= dict.fromkeys(_COMPONENTS, f"{where} describes no components")
        return {}
    shown = "; ".join(f"{k} {' '.join(v)}" for k, v in client.components.items())
    log.evidence["pmix_components"] = f"{where} and plugins beside it: {shown}"
    needed = (
        "the PMIx client needs components in separate files"
        if client.plugins
        else "the library contains all components that the PMIx client needs"
    )
    log.evidence["pmix_plugins"] = f"{where}: {needed}"
    return client.components


def pmix_plugins(mpi_entry: MpiFound | None) -> bool | None:
    """Return whether an MPI's PMIx client needs plugins. Return None if the MPI has no PMIx client, or if its
    components are unknown. :func:`pmix_components` records the evidence.
    """
    client = mpi_entry.pmix if mpi_entry else None
    return client.plugins if client and client.components else None
