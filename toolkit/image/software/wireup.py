"""Convert the MPIs that :mod:`.mpi` found to image facts, and record their evidence."""

import msgspec

from toolkit.image.software.evidence_log import ImageEvidence
from toolkit.image.software.mpi import MpiFound
from toolkit.image.software.packages import PackageVersion
from toolkit.model.mpifacts import ImageMpi

_COMPONENTS = ("pmix_components", "pmix_plugins")


def programs(found: dict[str, str], book: ImageEvidence) -> dict[str, str]:
    if found:
        shown = [f"{path} loads {library or 'a missing MPI library'}" for path, library in found.items()]
        more = f", and {len(shown) - 5} more" if len(shown) > 5 else ""
        book.evidence["programs"] = f"{', '.join(shown[:5])}{more}"
    else:
        book.absent["programs"] = "no program outside the system's folders, and no mpi4py, needs an MPI"
    return found


def describe_mpi(found: MpiFound | None, book: ImageEvidence) -> ImageMpi | None:
    if found is None:
        book.absent["mpi"] = "libmpi, libmpich: neither on the loader's path nor in the usual places"
        return None
    book.evidence.update(found.evidence)
    book.absent.update(found.absent)
    book.unknown.update(found.unknown)
    return found.mpi


def others(found: tuple[MpiFound, ...], book: ImageEvidence) -> tuple[ImageMpi, ...]:
    for number, mpi in enumerate(found[1:]):
        for name, line in mpi.evidence.items():
            book.evidence[name.replace("mpi", f"other_mpis.{number}", 1)] = line
        for name, line in mpi.unknown.items():
            book.unknown[name.replace("mpi", f"other_mpis.{number}", 1)] = line
    return tuple(_with_client(mpi) for mpi in found[1:])


def _with_client(found: MpiFound) -> ImageMpi:
    client = found.pmix.found if found.pmix else None
    return msgspec.structs.replace(
        found.mpi, pmix=client.version if isinstance(client, PackageVersion) else None
    )


def pmix(found: MpiFound | None, book: ImageEvidence) -> str | None:
    if found is not None and found.mpi.interfaces is None:
        book.unknown["pmix"] = found.unknown["mpi.interfaces"]
        return None
    client = found.pmix if found else None
    if (
        found is not None
        and "pmix" in (found.mpi.interfaces or ())
        and (client is None or client.found is None)
    ):
        book.unknown["pmix"] = f"{found.mpi.library} uses PMIx of an unknown release"
        return None
    return book.take("pmix", client.found if client else None, "the MPI in the image has no PMIx client")


def pmix_components(found: MpiFound | None, book: ImageEvidence) -> dict[str, tuple[str, ...]]:
    client = found.pmix if found else None
    if found is None or client is None:
        book.absent |= dict.fromkeys(_COMPONENTS, "the MPI in the image has no PMIx client")
        return {}
    where = client.library or found.mpi.library
    if not client.components:
        book.unknown |= dict.fromkeys(_COMPONENTS, f"{where} describes no components")
        return {}
    shown = "; ".join(f"{k} {' '.join(v)}" for k, v in client.components.items())
    book.evidence["pmix_components"] = f"{where} and plugins beside it: {shown}"
    needed = (
        "some required components are separate files"
        if client.plugins
        else "all required components are built in"
    )
    book.evidence["pmix_plugins"] = f"{where}: {needed}"
    return client.components


def pmix_plugins(found: MpiFound | None) -> bool | None:
    """Return whether the PMIx client needs plugins; :func:`pmix_components` records the evidence."""
    client = found.pmix if found else None
    return client.plugins if client and client.components else None
