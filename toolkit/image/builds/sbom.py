"""Write the software bill of materials (SBOM) of an image as CycloneDX 1.6 JSON, from the image's lock.

- ``documents.documents`` puts the SBOM into the image, at SBOM_PATH.
- ``attachments.attach`` adds a copy of the image's SBOM to the SIF, as an object of type SBOM.
- ``toolkit image sbom`` prints the SBOM of an image.

The package lists of dpkg and Python in an image contain only Debian packages and wheels. The SBOM also names
the components that were compiled from a source archive, such as an MPI, PMIx or UCX. For Horovod, the SBOM
lists the frameworks and operations for which Horovod was built. With the same version of toolkit, equal locks
give equal bytes: the serial number depends only on the lock's hash, and the time is the lock's epoch.
"""

import datetime as dt
import uuid
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from toolkit import DISTRIBUTION, __version__
from toolkit.image.builds.purl import debian, generic, image_purl, pypi
from toolkit.knowledge.licences import OWN_LICENCE, REFERENCE
from toolkit.model.lock import Lock, LockedFile, lock_sha256
from toolkit.model.solution import Chosen, Component

SBOM_PATH = "/opt/toolkit/sbom.cdx.json"
"""The path of the SBOM in an image that toolkit built."""

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_OID, "toolkit.sbom")
_SHOWN_BY: dict[Component, tuple[str, ...]] = {
    "python": ("python3.13", "python3.12", "python3.11", "python3.10", "python3.9", "python3"),
    "openmpi": ("openmpi", "openmpi-bin", "libopenmpi40", "libopenmpi3t64", "libopenmpi3"),
    "mpich": ("mpich", "libmpich12t64", "libmpich12"),
    "pmix": ("pmix", "openpmix", "libpmix2t64", "libpmix2"),
    "ucx": ("ucx", "libucx0"),
    "mpi4py": ("mpi4py",),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
    "torch": ("torch",),
    "jax": ("jax",),
    "keras": ("keras", "tf-keras"),
    "lightning": ("lightning",),
    "accelerate": ("accelerate",),
    "horovod": ("horovod",),
    "cuda": ("nvidia-cuda-runtime-cu11", "nvidia-cuda-runtime-cu12", "libcudart11.0", "libcudart12"),
    "cudnn": ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12"),
    "nccl": ("nccl", "nvidia-nccl-cu11", "nvidia-nccl-cu12", "libnccl2"),
}
"""For each component, the names of the packages, wheels or archives that may contain it, in order of
preference. toolkit adds the details of the component to one SBOM entry: the entry for the first of these
names that the lock lists.
"""

_NEEDS: dict[Component, tuple[Component, ...]] = {
    "python": ("base",),
    "openmpi": ("pmix", "ucx", "base"),
    "mpich": ("pmix", "ucx", "base"),
    "pmix": ("base",),
    "ucx": ("base",),
    "mpi4py": ("python", "openmpi", "mpich"),
    "tensorflow": ("python", "keras", "cuda", "cudnn", "nccl"),
    "torch": ("python", "cuda", "cudnn", "nccl"),
    "jax": ("python", "cuda", "cudnn", "nccl"),
    "keras": ("python",),
    "lightning": ("python", "torch"),
    "accelerate": ("python", "torch"),
    "horovod": ("python", "tensorflow", "torch", "openmpi", "mpich", "nccl"),
    "cudnn": ("cuda",),
    "nccl": ("cuda",),
}
"""For each component, the other components that the component loads, or that are needed to build it."""

_ONLY_FOR_BUILD = ("cuda",)
"""The names of archives that only provide a compiler for the build; the image contains none of their files.
"""

_UNREAD = "Debian packages of the published base"
"""The packages that the SBOM lacks if the base image is published. The lock does not list the packages of a
published base image.
"""

_Item = dict[str, object]

TOOL: _Item = {
    "type": "application",
    "name": DISTRIBUTION,
    "version": __version__,
    "licenses": [{"license": {"id": OWN_LICENCE}}],
}
"""The SBOM's entry for toolkit, the program that writes the SBOM."""


def sbom(lock: Lock) -> bytes:
    """Return the SBOM of a lock as JSON."""
    items = _files(lock)
    refs: dict[Component, str] = {}
    for chosen in lock.solution.chosen:
        refs[chosen.component] = _mark(items, chosen, lock)
    root = f"image:{lock.recipe}"
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, lock_sha256(lock))}",
        "version": 1,
        "metadata": {
            "timestamp": dt.datetime.fromtimestamp(lock.epoch, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lifecycles": [{"phase": "build"}],
            "tools": {"components": [TOOL]},
            "component": {
                "type": "container",
                "bom-ref": root,
                "name": lock.recipe,
                "version": lock_sha256(lock)[:12],
                "properties": _properties(
                    {
                        "toolkit:lock": lock_sha256(lock),
                        "toolkit:recipe": lock.recipe_sha256,
                        **({} if lock.base.packages else {"toolkit:not-read": _UNREAD}),
                    }
                ),
            },
        },
        "components": [items[ref] for ref in sorted(items)],
        "dependencies": _dependencies(root, items, refs),
        **_gaps(lock, root, refs),
    }
    return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=2) + b"\n"


def _files(lock: Lock) -> dict[str, _Item]:
    """Return the SBOM entries of the lock's files, by package URL."""
    items: dict[str, _Item] = {}
    for file in (*lock.base.packages, *lock.run.debian):
        items.setdefault(*_component(file, debian(file, lock.base.name), "application"))
    for file in lock.run.wheels:
        items.setdefault(*_component(file, pypi(file), "library"))
    # The image does not contain source archives, but it contains the components that were compiled from them.
    providers = {chosen.component: chosen.provider for chosen in lock.solution.chosen}
    for file in (f for f in (*lock.run.sources, *lock.build.sources) if f.name not in _ONLY_FOR_BUILD):
        wheel = providers.get(file.name) == "pypi"
        properties = {"toolkit:compiled": "yes", "toolkit:in-package-lists": "yes" if wheel else "no"}
        items.setdefault(*_component(file, pypi(file) if wheel else generic(file), "library", properties))
    return items


def _component(
    file: LockedFile, purl: str, kind: str, properties: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, _Item]:
    item: _Item = {
        "type": kind,
        "bom-ref": purl,
        "name": file.name,
        "version": file.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": file.sha256}],
    }
    item["properties"] = _properties(
        {"toolkit:file": file.file, "toolkit:compiled": "no", "toolkit:in-package-lists": "yes", **properties}
    )
    return purl, item


def _built_with(component: Component, lock: Lock) -> tuple[str, ...]:
    """Return the configure options of a compiled component. For Horovod, return environment variables such
    as ``HOROVOD_WITH_MPI=1``. The result is empty if the build does not compile the component.
    """
    words = next((step.words for step in lock.steps if step.component == component), ())
    return tuple(f"HOROVOD_WITH_{word.upper()}=1" for word in words) if component == "horovod" else words


def _mark(items: dict[str, _Item], choice: Chosen, lock: Lock) -> str:
    """Add the licence, version and provider of a component to the SBOM entry of the file that contains the
    component. If no entry fits, add a new entry. Return the reference of the entry.
    """
    ref = _shown_by(items, choice.component)
    if not ref:
        ref, item = _unseen(choice, lock)
        items[ref] = item
    item = items[ref]
    if licence := lock.licences.get(choice.component):
        name = licence.removeprefix(REFERENCE)
        item["licenses"] = [
            {"license": {"id": name} if name == licence else {"name": name.replace("-", " ")}}
        ]
    words = _built_with(choice.component, lock)
    properties = {
        "toolkit:component": choice.component,
        "toolkit:version": choice.version,
        "toolkit:provider": choice.provider,
        **({"toolkit:built-with": " ".join(words)} if words else {}),
    }
    item["properties"] = sorted(
        (*_properties(properties), *msgspec.convert(item.get("properties", []), list[dict[str, str]])),
        key=lambda entry: entry["name"],
    )
    return ref


def _shown_by(items: Mapping[str, _Item], component: Component) -> str:
    for name in _SHOWN_BY.get(component, ()):
        for ref in sorted(items):
            if items[ref]["name"] == name:
                return ref
    return ""


def _unseen(choice: Chosen, lock: Lock) -> tuple[str, _Item]:
    """Return the reference and the SBOM entry of a component that is in no package, wheel or archive of the
    lock, for example the base image.
    """
    if choice.component == "base":
        distribution, _, release = lock.base.name.partition(":")
        purl = image_purl(lock.base.published)
        item: _Item = {
            "type": "operating-system",
            "bom-ref": f"base:{lock.base.name}",
            "name": distribution,
            "version": release or lock.base.release,
            **({"purl": purl} if purl else {}),
        }
        return f"base:{lock.base.name}", item
    ref = f"pkg:generic/{choice.component}@{choice.version}"
    return ref, {
        "type": "library",
        "bom-ref": ref,
        "name": choice.component,
        "version": choice.version,
        "purl": ref,
    }


def _dependencies(
    root: str, items: Mapping[str, _Item], refs: Mapping[Component, str]
) -> list[dict[str, object]]:
    needs = {
        ref: sorted({refs[need] for need in _NEEDS.get(component, ()) if need in refs} - {ref})
        for component, ref in refs.items()
    }
    needed = {ref for refs_needed in needs.values() for ref in refs_needed}
    edges = {root: sorted(set(items) - needed), **needs}
    return [{"ref": ref, "dependsOn": edges[ref]} for ref in sorted(edges)]


def _gaps(lock: Lock, root: str, refs: Mapping[Component, str]) -> dict[str, object]:
    """Return the SBOM field which says that the SBOM is incomplete, or an empty table if the lock lists the
    base image's packages.
    """
    if lock.base.packages:
        return {}
    lacking = [root, *(refs[component] for component in refs if component == "base")]
    return {"compositions": [{"aggregate": "incomplete", "assemblies": lacking}]}


def _properties(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": values[name]} for name in sorted(values)]
