"""Images and data that lie on a cluster for everybody: found there, held against their digest, not copied."""

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.decoding import UNDECODABLE
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image.files.filelock import identity
from toolkit.image.files.reference import sif_command
from toolkit.image.inspect import inspect, opened
from toolkit.image.software.contents import Contents, contents_of
from toolkit.image.startable import STARTABLE
from toolkit.job.request.locations import ON_CLUSTER, data_folder, expanded, find_image
from toolkit.model.facts import ImageFacts
from toolkit.model.progress import Tell
from toolkit.model.rank import WHOLE, RankView
from toolkit.model.site import Site
from toolkit.run.command import Command, Runner
from toolkit.run.stage import Parcel, remote_hashes, sha256
from toolkit.runtime import formats, named

FACTS = ".facts.json"
"""Ends the name of the file beside such an image that says what is in it."""

_LIKE = {"image": "images/my.sif", "data": "data/mnist"}
"""How the folder for everybody is laid out."""

_LOOK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class OnCluster:
    """An image or data on the cluster; ``path`` may begin with a variable there, as in a site profile."""

    path: str

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class StartableImage:
    """An image that a job can start from: what is in it, its SHA-256, and where it is.

    ``here`` is the file of this machine, ``there`` the path on the cluster, empty where it has to be copied.
    """

    name: str
    facts: ImageFacts
    digest: str
    here: Path | None
    there: str
    seen: tuple[int, ...] = ()
    """What :func:`toolkit.image.files.filelock.identity` said of ``here`` before it was read."""
    offers: Contents | None = None
    """The commands and modules of an image that is read here."""


def image_of(given: str, site: Site | None) -> Path | OnCluster:
    """Return what a person calls an image: a file here, ``cluster:/PATH``, or ``cluster:NAME`` of the site.

    Raises:
        BadInput: if it is none of them.
        Missing: if it is the name of a recipe whose image was not made yet.
    """
    if not given.startswith(ON_CLUSTER):
        return find_image(given)
    found = _on_cluster("image", given, site)
    return found if found.name.endswith(".sif") or _is_path(given) else OnCluster(f"{found}.sif")


def data_of(given: str | None, dataset: str, site: Site | None) -> Path | OnCluster:
    """Return what a person calls data: a folder here, ``cluster:/PATH``, or ``cluster:NAME`` of the site.

    Raises:
        BadInput: if it is none of them.
        Missing: if the data set was not fetched.
    """
    if given is None or not given.startswith(ON_CLUSTER):
        return data_folder(given, dataset)
    return _on_cluster("data", given, site)


def look(
    runner: Runner,
    wanted: Path | OnCluster,
    site: Site | None,
    tell: Tell,
    *,
    remote: bool,
    view: RankView = WHOLE,
) -> StartableImage:
    """Read what is in an image, here or from what lies beside it there, and see whether it has to be copied.

    ``remote`` says that the runner's place is another machine. ``view`` is what a rank sees of an image that
    is read here.

    Raises:
        BadInput: if it is in another form than a SIF, or what lies beside it cannot be read.
        CheckFailed: if it has other bytes than are written beside it.
        Missing: if there is no such image, or nothing says what is in it.
    """
    if isinstance(wanted, OnCluster):
        path = expanded(runner, wanted.path)
        if remote:
            facts = _facts_there(runner, path)
            return StartableImage(wanted.name, facts, _bare(facts), None, path)
        wanted = find_image(path)
    seen = identity(wanted)
    with opened(wanted, tell=tell, view=view) as (tree, facts):
        offers = contents_of(tree, facts)
    # An archive names its configuration or its manifest; what is copied and recorded is the file.
    digest = (_bare(facts) if facts.format in STARTABLE else "") or sha256(wanted)
    if not remote:
        return StartableImage(wanted.name, facts, digest, wanted, str(wanted), seen, offers)
    there = _same(runner, wanted, digest, site)
    if there:
        tell.step(f"{wanted.name} is on {runner.place} for everybody, with the same bytes: {there}")
    return StartableImage(wanted.name, facts, digest, wanted, there, seen, offers)


def startable(image: StartableImage, command: str = "") -> StartableImage:
    """Return an image if a job can start from it with a container runtime, with any if none is named.

    Raises:
        BadInput: if it is in another form.
    """
    form, name = image.facts.format, image.here or image.there
    able = named(command).FORMATS if command else formats()
    if form in able:
        return image
    sif = f"make one: {sif_command(image.facts)}"
    if able & STARTABLE:
        raise BadInput(f"--image {name}: a job starts from a SIF, and this is {form}", fix=sif)
    program = posixpath.basename(command)
    raise BadInput(
        f"--image {name}: {program} starts {' or '.join(sorted(able))}, and this is {form}",
        fix="give the archive that the image was made from: docker save -o my.tar IMAGE",
    )


def folder_there(runner: Runner, data: OnCluster) -> str:
    """Return the folder of data that are on the cluster.

    Raises:
        Missing: if there is none.
    """
    path = expanded(runner, data.path)
    if not runner.run(Command.of("test", "-d", path, "-a", "-r", path, timeout=_LOOK_SECONDS)).ok:
        raise Missing(f"{runner.place}: there is no folder {path} that you may read")
    return path


def data_there(runner: Runner, site: Site | None, name: str, own: str, parcels: Sequence[Parcel]) -> str:
    """Return the folder for everybody that has all files of a data set, byte for byte; empty if none has.

    ``own`` is the folder that ``parcels`` would bring them to.
    """
    if site is None or not site.shared or not parcels:
        return ""
    folder = posixpath.join(expanded(runner, site.shared), "data", name)
    wanted = {posixpath.join(folder, posixpath.relpath(p.target, own)): p.sha256 for p in parcels}
    return folder if remote_hashes(runner, list(wanted)) == wanted else ""


def facts_beside(image: Path, digest: str, tell: Tell) -> bytes:
    """Return what is written beside an image, for those who have no copy of it.

    Raises:
        BadInput: if it is none.
    """
    facts = msgspec.structs.replace(inspect(image, tell=tell), path=image.name, digest=f"sha256:{digest}")
    return msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n"


def _is_path(given: str) -> bool:
    return given.startswith(f"{ON_CLUSTER}/")


def _on_cluster(option: str, given: str, site: Site | None) -> OnCluster:
    """Return the path behind ``cluster:``, or what the site has under that name for everybody."""
    word = given.removeprefix(ON_CLUSTER)
    if _is_path(given) and word.isprintable():
        return OnCluster(posixpath.normpath(word))
    if "/" in word or not word.strip(".") or not word.isprintable():
        raise BadInput(
            f"--{option} {given}: give the full path there, as in {ON_CLUSTER}/work/shared/{_LIKE[option]}"
        )
    if site is None or not site.shared:
        raise BadInput(
            f"--{option} {given}: no site profile says what lies there for everybody",
            fix=f"give --site with one that has the key shared, or {ON_CLUSTER} and the full path",
        )
    return OnCluster(posixpath.join(site.shared, posixpath.dirname(_LIKE[option]), word))


def _same(runner: Runner, image: Path, digest: str, site: Site | None) -> str:
    """Return where an image of these bytes lies for everybody, by its own name or by that of its copies."""
    if site is None or not site.shared:
        return ""
    folder = posixpath.join(expanded(runner, site.shared), "images")
    names: Iterable[str] = (image.name, f"{image.stem}-{digest[:12]}{image.suffix}")
    found = remote_hashes(runner, [posixpath.join(folder, name) for name in names])
    return next((path for path, sha in found.items() if sha == digest), "")


def _facts_there(runner: Runner, path: str) -> ImageFacts:
    digest = remote_hashes(runner, [path]).get(path)
    if digest is None:
        raise Missing(f"{runner.place}: there is no image {path} that you may read")
    again = f"toolkit image push {posixpath.basename(path)} --facts, by whoever put it there"
    written = runner.read(f"{path}{FACTS}")
    if not written:
        raise Missing(f"{runner.place}: nothing says what is in {path}: no {path}{FACTS}", fix=again)
    try:
        facts = msgspec.json.decode(written, type=ImageFacts)
    except UNDECODABLE as error:
        raise BadInput(f"{runner.place}: {path}{FACTS}: {error}", fix=again) from error
    if facts.digest != f"sha256:{digest}":
        raise CheckFailed(
            f"{runner.place}: {path} has other bytes than {path}{FACTS} was written for", fix=again
        )
    return facts


def _bare(facts: ImageFacts) -> str:
    return (facts.digest or "").removeprefix("sha256:")
