"""Describe an image that toolkit did not build: its software, and software that a job needs but the image
lacks.
"""

import posixpath
import re
from collections.abc import Iterator

import msgspec

from toolkit.engine.predict import predict
from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree
from toolkit.image.loader.search import places
from toolkit.image.software import packages
from toolkit.knowledge.components import wantable_components
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import Severity
from toolkit.model.prediction import Mode, Request
from toolkit.model.recipe import OPERATIONS
from toolkit.versions import OLDEST_PYTHON, older

TRAINERS = "/opt/toolkit/lib/toolkit/trainers"
_MOST = 20_000
_RELEASE = re.compile(r"\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?")
_DIST_INFO = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._]*)-(?P<version>[0-9][0-9A-Za-z.+!_]*)\.dist-info")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """An installed Debian or Python package.

    ``kind`` is ``debian`` or ``python``. ``where`` is the path of the dpkg status file that lists the Debian
    package, or of the dist-info folder of the Python package.
    """

    name: str
    version: str
    kind: str
    where: str


class Lack(msgspec.Struct, frozen=True, kw_only=True):
    """Software that an image lacks, such as an MPI or mpi4py, or another obstacle to a launch.

    ``modes`` are the launch modes to which the entry applies; an empty tuple means all launch modes.
    """

    id: str
    severity: Severity
    title: str
    fix: str
    modes: tuple[str, ...] = ()


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """The description of an image that toolkit did not build.

    ``want`` maps the name of each component, as recipes write it, to the version in the image. ``operations``
    are the operations that the image's Horovod supports. ``evidence`` maps the names in ``want`` to the text
    in the image that shows the version. ``unknown`` maps a component to the reason why toolkit cannot find
    its version. ``packages`` are the installed Debian and Python packages. ``lacks`` lists software that the
    image lacks, and other obstacles to a launch. If the user gave the facts of a host, ``place`` is the
    host's name, and ``chosen`` is the launch mode that toolkit chooses for the host.
    """

    schema: str = "toolkit.adopted/1"
    image: str
    digest: str | None
    format: str
    architecture: str | None
    distribution: str | None
    glibc: str | None
    want: dict[str, str]
    operations: tuple[str, ...]
    evidence: dict[str, str]
    unknown: dict[str, str]
    packages: tuple[Part, ...]
    lacks: tuple[Lack, ...]
    place: str | None = None
    chosen: Mode | None = None


def adopt_image(tree: FileTree, facts: ImageFacts, image_name: str, host: HostFacts | None) -> Adopted:
    """Return the description of an image with the files ``tree`` and the facts ``facts``.

    ``image_name`` is the image's name in the description. If ``host`` is given, the description includes the
    errors and warnings that toolkit predicts for a launch of the image on this host.
    """
    versions = facts.component_versions()
    lacks = tuple(_lacks(tree, facts))
    chosen: Mode | None = None
    if host is not None:
        verdict = predict(host, facts, Request())
        chosen = verdict.chosen
        lacks += tuple(
            Lack(id=f.id, severity=f.severity, title=f.title, fix=f.fix, modes=f.modes)
            for f in verdict.findings
            if f.severity != "info"
        )
    names = {"openmpi": "mpi", "mpich": "mpi"}
    return Adopted(
        image=image_name,
        digest=facts.digest,
        format=facts.format,
        architecture=facts.architecture,
        distribution=facts.distribution,
        glibc=facts.glibc,
        want=versions,
        operations=tuple(o for o in OPERATIONS if o in (facts.horovod_built or ())),
        evidence={name: facts.cite(names.get(name, name)) for name in versions},
        unknown={name: why for name, why in facts.unknown.items() if name in (*wantable_components(), "mpi")},
        packages=tuple(list_packages(tree, facts)),
        lacks=lacks,
        place=host.place if host else None,
        chosen=chosen,
    )


def list_packages(tree: FileTree, facts: ImageFacts) -> Iterator[Part]:
    """Yield the packages that dpkg lists as installed, then the Python packages that have a dist-info folder
    in a package folder of the image.
    """
    for name, version in sorted(packages.debian(tree).items()):
        yield Part(name=name, version=version, kind="debian", where="/var/lib/dpkg/status")
    count = 0
    for site in sorted(places(tree, facts.environment).sites):
        for entry in sorted(files.names(tree, site)):
            if match := _DIST_INFO.fullmatch(entry):
                count += 1
                if count > _MOST:
                    return
                where = posixpath.join(site, entry)
                yield Part(name=match["name"], version=match["version"], kind="python", where=where)


def recipe_like(adopted: Adopted, title: str) -> dict[str, object]:
    """Return a recipe, as a table, with the component versions of an adopted image. toolkit does not build
    this recipe; users can edit it to get a recipe for a similar image.
    """
    recipe: dict[str, object] = {
        "schema": "toolkit.recipe/2",
        "title": title,
        "architecture": adopted.architecture or "x86_64",
        "unbuildable": f"this file describes {adopted.image}, which toolkit did not build",
        "want": {name: _wish(name, version) for name, version in adopted.want.items()},
    }
    if "horovod" in adopted.want and adopted.operations:
        recipe["horovod"] = {"operations": adopted.operations}
    return recipe


def _wish(name: str, version: str) -> str:
    """Return a component's version as recipes write it: ``4.1.4`` for the Debian version ``4.1.4-3``,
    ``3.11`` for Python 3.11.2, and ``*`` for a version that does not start with a number.
    """
    match = _RELEASE.match(version)
    if match is None:
        return "*"
    return ".".join(match[0].split(".")[:2]) if name == "python" else match[0]


def _lacks(tree: FileTree, facts: ImageFacts) -> Iterator[Lack]:
    """Yield the software that toolkit or a job of several ranks needs, but that the image lacks."""
    if facts.python is None:
        yield Lack(
            id="no-python",
            severity="error",
            title=f"toolkit found no Python in the image ({facts.cite('python')})",
            fix="to run toolkit's trainers, use an image with Python; your own program may not need Python",
        )
    if older(facts.python, OLDEST_PYTHON):
        yield Lack(
            id="old-python",
            severity="error",
            title=f"the image's Python {facts.python} is too old for toolkit's trainers "
            f"({facts.cite('python')})",
            fix=f"to run toolkit's trainers, use an image with Python {OLDEST_PYTHON} or later",
        )
    if facts.mpi is None:
        yield Lack(
            id="no-mpi",
            severity="error",
            title=f"toolkit found no MPI library that a program in the image loads ({facts.cite('mpi')})",
            fix="launch Horovod programs with Gloo, which needs no MPI: `toolkit launch --mode gloo`; or "
            "build an image with MPI from a recipe that `toolkit image list` shows: `toolkit image build "
            "RECIPE`",
        )
    if facts.mpi4py is None:
        yield Lack(
            id="no-mpi4py",
            severity="warning",
            title="the image does not contain mpi4py",
            fix="to let toolkit check the ranks before a job (preflight), build mpi4py in the image with the "
            "image's MPI: `pip install mpi4py`",
        )
    if tree.kind(TRAINERS) != "folder":
        yield Lack(
            id="no-trainers",
            severity="info",
            title="the image does not contain toolkit's trainers",
            fix="add the trainers to the image with `toolkit image adopt --layer`",
        )
