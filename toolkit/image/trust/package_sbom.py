"""Create an SBOM for an image that contains no SBOM, from the image's package lists and libraries.

toolkit reads the package lists of Debian and Python. toolkit also finds libraries that belong to no package,
such as an MPI library that was compiled from source. toolkit cannot read some package lists, such as RPM's
list. The SBOM names these lists, but does not contain their packages.
"""

import hashlib
import posixpath
import re
import uuid
from collections.abc import Iterator

import msgspec

from toolkit.image.builds.purl import deb, wheel
from toolkit.image.builds.sbom import TOOL
from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree
from toolkit.image.software.packages import debian
from toolkit.model.facts import ImageFacts

_UNREAD = {
    "/var/lib/rpm": "packages of RPM",
    "/usr/lib/sysimage/rpm": "packages of RPM",
    "/lib/apk/db/installed": "packages of apk",
    "/opt/conda/conda-meta": "packages of conda",
}
_SITES = (
    "/usr/lib/python3*/*-packages",
    "/usr/local/lib/python3*/*-packages",
    "/opt/*/lib/python3*/site-packages",
    "/opt/*/*/lib/python3*/site-packages",
)
_SHORT = 200

_Item = dict[str, object]


def package_sbom(tree: FileTree, facts: ImageFacts) -> bytes:
    """Return the SBOM of an image as JSON; equal images give equal bytes."""
    distribution, release = _distribution(facts)
    found = {str(item["bom-ref"]): item for item in _items(tree, facts, distribution, release)}
    unread = sorted({what for path, what in _UNREAD.items() if files.resolve(tree, path)})
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "post-build"}],
            "tools": {"components": [TOOL]},
            "component": {
                "type": "container",
                "bom-ref": "image",
                "name": posixpath.basename(facts.path) or facts.path,
                "properties": [{"name": "toolkit:not-read", "value": what} for what in unread],
            },
        },
        "components": [found[ref] for ref in sorted(found)],
        "dependencies": [{"ref": "image", "dependsOn": sorted(found)}],
    }
    digest = hashlib.sha256(msgspec.json.encode(document, order="sorted")).digest()
    document["serialNumber"] = f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=5)}"
    return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=2) + b"\n"


def _items(tree: FileTree, facts: ImageFacts, distribution: str, release: str) -> Iterator[_Item]:
    if distribution:
        yield {"type": "operating-system", "bom-ref": "base", "name": distribution, "version": release}
    for name, version in debian(tree).items():
        yield _item(
            "application", name, version, deb(distribution or "debian", release, name, version), "dpkg"
        )
    for name, version, folder in _wheels(tree):
        yield _item("library", name, version, wheel(name, version), folder)
    for name, version, evidence in _libraries(facts):
        yield _item("library", name, version, f"pkg:generic/{name}@{version}", evidence)


def _item(kind: str, name: str, version: str, purl: str, evidence: str) -> _Item:
    return {
        "type": kind,
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "properties": [{"name": "toolkit:evidence", "value": evidence[:_SHORT]}],
    }


def _wheels(tree: FileTree) -> Iterator[tuple[str, str, str]]:
    """Yield the name, version and dist-info folder of each Python package."""
    for site in _SITES:
        for folder in files.glob(tree, f"{site}/*.dist-info"):
            stem = posixpath.basename(folder).removesuffix(".dist-info")
            name, _, version = stem.rpartition("-")
            if name and re.fullmatch(r"[0-9][0-9A-Za-z.+!_]{0,99}", version):
                yield name.replace("_", "-"), version, folder


def _libraries(facts: ImageFacts) -> Iterator[tuple[str, str, str]]:
    """Yield the name and version of MPI and other detected libraries, with evidence such as a file's path."""
    for mpi in (*([facts.mpi] if facts.mpi else []), *facts.other_mpis):
        if mpi.version:
            yield mpi.implementation, mpi.version, mpi.library
    for name in ("pmix", "ucx", "libfabric_version", "hwloc", "cuda", "cudnn", "nccl"):
        version = getattr(facts, name)
        if version:
            yield name.removesuffix("_version"), version, facts.cite(name)
    if facts.horovod:
        built = ", ".join(facts.horovod_built or ())
        yield "horovod", facts.horovod, f"built with {built}" if built else facts.cite("horovod")


def _distribution(facts: ImageFacts) -> tuple[str, str]:
    """Return the distribution's name and release, such as ``debian`` and ``12``, or empty texts."""
    name, _, rest = (facts.distribution or "").partition(" ")
    return name, rest.partition(" ")[0]
