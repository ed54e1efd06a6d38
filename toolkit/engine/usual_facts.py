"""Complete the facts of a support ticket. For each unknown fact, assume the value that most clusters or
images have, according to ``usual.toml``.
"""

import posixpath
from typing import Any, TypeVar

import msgspec

from toolkit import knowledge
from toolkit.engine.ticket_facts import named_mpi
from toolkit.engine.traits import HYDRA, runtime_of, sends_by_ucx
from toolkit.knowledge.usual import distribution_release, usual_properties
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import HostMpi
from toolkit.model.prediction import Mode
from toolkit.versions import older, within

_Facts = TypeVar("_Facts", HostFacts, ImageFacts)


def possible_images(host: HostFacts, image: ImageFacts, mode: Mode) -> tuple[ImageFacts, ...]:
    """Return the facts of the image. If the image's MPI is unknown, return one copy of the facts for each MPI
    that images usually have. The first copy has the most likely MPI.

    In the mode ``mpirun-host``, the most likely MPI is the host's Open MPI, MPICH, Intel MPI or MVAPICH2; in
    the mode ``bind``, it is the host's Open MPI. In other modes, or if the host has no such MPI,
    ``usual.toml`` names the most likely MPI. If ``usual.toml`` names no MPI for the mode, the first copy has
    an unknown MPI.
    """
    if image.mpi is not None or "mpi" in image.absent:
        return (image,)
    known = usual_properties()
    alike = {"mpirun-host": {"openmpi", *HYDRA}, "bind": {"openmpi"}}.get(mode, set())
    of_host = (
        f"{one.implementation} {one.version}" for one in host.mpis or () if one.implementation in alike
    )
    usual = next(of_host, known.mpi_of_mode.get(mode, ""))
    first = _with_named_mpi(image, usual) if usual else image
    return (first, *(_with_named_mpi(image, name) for name in known.image_mpis if name != usual))


def _with_named_mpi(image: ImageFacts, name: str) -> ImageFacts:
    if name == "none":
        return with_fact(image, "mpi", None)
    return with_fact(image, "mpi", named_mpi(*name.split()))


def fill(host: HostFacts, image: ImageFacts, mode: Mode | None = None) -> tuple[HostFacts, ImageFacts]:
    """Return the facts of host and image with usual values in place of unknown values.

    If the image has no MPI and the mode is ``bind``, unknown MPIs of the host stay unknown.
    """
    known, found = usual_properties(), host.runtime
    if found is not None and not found.version:
        release = known.runtime_releases.get(found.name, "")
        host = msgspec.structs.replace(host, runtime=msgspec.structs.replace(found, version=release))
    if not image.format:
        formats = runtime_of(host).FORMATS
        image = msgspec.structs.replace(image, format="sif" if "sif" in formats else min(formats))
    image = _fill_usual(image, {**known.image, **_usual_additions(host, image)}, known.absent.image)
    host = _fill_usual(host, {**known.host, **_of_host(host)}, known.absent.host)
    if (
        image.mpi is not None
        and image.mpi.interfaces is None
        and image.mpi.implementation in known.interfaces
    ):
        faces = known.interfaces[image.mpi.implementation]
        image = msgspec.structs.replace(image, mpi=msgspec.structs.replace(image.mpi, interfaces=faces))
    if host.pmix is None and "pmix" not in host.absent:
        host = with_fact(host, "pmix", _of_plugin(host))
    client = (
        image.mpi
        and image.mpi.implementation == "openmpi"
        and knowledge.bundled_pmix(image.mpi.version or "")
    )
    if client and image.pmix is None:
        external = image.mpi and any(name.startswith("ext") for name in image.mpi.components.get("pmix", ()))
        image = with_fact(image, "pmix", known.external_pmix if external else client)
    if mode == "bind" and "mpi" in image.absent and host.mpis is None and not host.folder_mpis:
        return _of_one_architecture(host, image)
    return _of_one_architecture(_with_mpi(host, image), image)


def _usual_additions(host: HostFacts, image: ImageFacts) -> dict[str, Any]:
    """Return usual facts about an image that follow from known facts about image and host. For example, an
    image with Ubuntu 22.04 has the glibc of this release.
    """
    known, mpi, found = usual_properties(), image.mpi, dict[str, Any]()
    if mpi is not None and (mpi.implementation == "intelmpi" or sends_by_ucx(mpi)):
        found |= known.beside["intelmpi" if mpi.implementation == "intelmpi" else "ucx"]
    if image.horovod:
        frameworks = [name for name in ("tensorflow", "pytorch") if getattr(image, name)]
        found |= {**known.beside["horovod"], "horovod_frameworks": frameworks}
    if release := distribution_release(image.distribution):
        found["glibc"] = release.glibc
    if host.kernel and older(host.kernel, known.old_kernel.kernel):
        found["glibc"] = known.old_kernel.glibc
    return found


def _of_host(host: HostFacts) -> dict[str, Any]:
    """Return usual facts about a host that follow from known facts about this host. For example, a host with
    Rocky Linux 8 has the kernel of this release.
    """
    known, found, runtime = usual_properties(), dict[str, Any](), host.runtime
    if release := distribution_release(host.distribution):
        found |= {name: getattr(release, name) for name in ("kernel", "glibc", "user_namespaces")}
    kernel = host.kernel or found.get("kernel", "")
    setuid = bool(kernel) and older(kernel, known.setuid_kernel)
    if runtime is not None:
        rows = (row for row in known.setuid if row.name == runtime.name)
        setuid = setuid or any(within(runtime.version, row.versions) for row in rows)
    return {**found, "runtime": {**known.host["runtime"], "setuid": setuid}}


def _with_mpi(host: HostFacts, image: ImageFacts) -> HostFacts:
    """Return the host's facts, with usual values in place of unknown facts about the host's MPI. If the
    host's MPI itself is unknown, assume that the host has a copy of the image's MPI.
    """
    mpi = image.mpi
    if host.mpis:
        return with_fact(host, "mpis", tuple(_usual_host_mpi(one, image) for one in host.mpis))
    if host.mpis is not None:
        return host
    if mpi is None:
        return with_fact(host, "mpis", ())
    copy = HostMpi(
        implementation=mpi.implementation,
        version=mpi.version,
        launcher="/opt/mpi/bin/mpirun",
        pmix=image.pmix,
        soname=mpi.soname,
        interfaces=mpi.interfaces,
        device=mpi.device,
    )
    return with_fact(host, "mpis", (_usual_host_mpi(copy, image),))


def _usual_host_mpi(mpi: HostMpi, image: ImageFacts) -> HostMpi:
    """Return a host MPI with usual values in place of unknown values.

    By default, toolkit assumes that the MPI is in one folder with all its dependencies, and that an Open MPI
    contains PMIx. If the image's MPI is of the same implementation, the host's MPI has the same components.
    """
    is_open = mpi.implementation == "openmpi"
    prefix = mpi.prefix or posixpath.dirname(posixpath.dirname(mpi.launcher))
    soname = mpi.soname or ("libmpi.so.40" if is_open else "libmpi.so.12")
    alike = image.mpi if image.mpi and image.mpi.implementation == mpi.implementation else None
    usually: dict[str, Any] = {
        "leaks": (),
        "pmix": knowledge.bundled_pmix(mpi.version or "") if is_open else None,
        "prefix": prefix,
        "library": f"{prefix}/lib/{soname}",
        "soname": soname,
        "interfaces": usual_properties().interfaces.get(mpi.implementation),
        "components": (alike.components or None) if alike else None,
        "components_need": {},
        "needs": (),
        "places": {},
        "folders": (f"{prefix}/lib",),
        "outside": (),
        "glibc_needed": "2.17",
    }
    unknown = {name: value for name, value in usually.items() if getattr(mpi, name) is None}
    return msgspec.structs.replace(mpi, **unknown)


def _of_plugin(host: HostFacts) -> str | None:
    """Return a PMIx release for the last numbered PMIx plugin in srun's list, such as ``4.2.9`` for
    ``pmix_v4``. If srun lists only ``pmix``, return ``5.0.7``; without a PMIx plugin, return ``None``.
    """
    types = (host.slurm.mpi_types if host.slurm else None) or ()
    newest = {"pmix_v2": "2.2.5", "pmix_v3": "3.2.3", "pmix_v4": "4.2.9", "pmix_v5": "5.0.7"}
    return next((newest[t] for t in reversed(types) if t in newest), "5.0.7" if "pmix" in types else None)


def _of_one_architecture(host: HostFacts, image: ImageFacts) -> tuple[HostFacts, ImageFacts]:
    if (
        host.architecture != image.architecture
        and image.architecture == usual_properties().image["architecture"]
    ):
        image = msgspec.structs.replace(image, architecture=host.architecture)
    elif host.architecture != image.architecture:
        host = msgspec.structs.replace(host, architecture=image.architecture)
    return host, image


def _fill_usual(facts: _Facts, usual_facts: dict[str, Any], absent_names: tuple[str, ...]) -> _Facts:
    given = msgspec.to_builtins(facts)
    merged = _merge_facts(given, usual_facts, {*facts.absent})
    lacking = {
        name: "not stated; toolkit assumes that this is absent"
        for name in absent_names
        if merged.get(name) is None
    }
    merged["absent"] = {**merged.get("absent", {}), **lacking}
    merged["unknown"] = {
        name: why for name, why in merged.get("unknown", {}).items() if _is_missing(name, merged)
    }
    kind: type[_Facts] = type(facts)
    return msgspec.convert(merged, kind)


def _merge_facts(
    facts: dict[str, Any], usual_facts: dict[str, Any], absent_names: set[str]
) -> dict[str, Any]:
    result = dict(facts)
    for name, value in usual_facts.items():
        if name in absent_names or (name == "place" and facts.get(name)):
            continue
        if isinstance(value, dict) and isinstance(facts.get(name), dict) and facts[name]:
            result[name] = _merge_facts(facts[name], value, set())
        elif facts.get(name) is None or facts.get(name) == {}:
            result[name] = value
    return result


def _is_missing(name: str, facts: dict[str, Any]) -> bool:
    value: Any = facts
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value is None and name not in facts["absent"]


def with_fact(facts: _Facts, name: str, value: object) -> _Facts:
    books = {"absent": dict(facts.absent), "unknown": dict(facts.unknown)}
    for book in books.values():
        book.pop(name, None)
    if value is None:
        books["absent"][name] = "toolkit assumes that this is absent"
    return msgspec.structs.replace(facts, **{name: value}, **books)
