"""Find shared images and data on a cluster and compare their digests, so that toolkit need not copy them."""

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.files import hash_file
from toolkit.image.files.filelock import identity
from toolkit.image.files.reference import sif_command
from toolkit.image.software.contents import Contents, contents_of
from toolkit.image.startable import STARTABLE_FORMATS
from toolkit.job.request.locations import ON_CLUSTER, data_folder, expand_variables, find_image
from toolkit.model.facts import ImageFacts
from toolkit.model.progress import Tell
from toolkit.model.rank import WHOLE_IMAGE, RankView
from toolkit.model.site import Site
from toolkit.run.command import Command, Runner
from toolkit.run.stage import Parcel, remote_hashes
from toolkit.runtime import formats, runtime_of_name

FACTS = ".facts.json"
"""The suffix of the file beside a shared image that holds the facts about the image."""

_LIKE = {"image": "images/my.sif", "data": "data/mnist"}
"""Examples of paths in the shared folder of a site."""

_LOOK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class OnCluster:
    """An image or data on the cluster; ``path`` may start with a variable of the cluster, as ``$WORK``."""

    path: str

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class StartableImage:
    """An image that a job can start from: its facts, its SHA-256, and its paths.

    ``here`` is the file on this machine. ``there`` is the path on the cluster, empty if toolkit has to copy
    the image to the cluster.
    """

    name: str
    facts: ImageFacts
    digest: str
    here: Path | None
    there: str
    seen: tuple[int, ...] = ()
    """The :func:`toolkit.image.files.filelock.identity` of ``here`` before toolkit read the file."""
    offers: Contents | None = None
    """The commands and modules of an image on this machine."""


def image_of(given: str, site: Site | None) -> Path | OnCluster:
    """Return the image that ``--image`` names: a local file, ``cluster:/PATH``, or the site's
    ``cluster:NAME``.

    Raises:
        BadInput: if the text has another form.
        Missing: if the name is a recipe whose image was not built.
    """
    if not given.startswith(ON_CLUSTER):
        return find_image(given)
    found = _on_cluster("image", given, site)
    return found if found.name.endswith(".sif") or _is_path(given) else OnCluster(f"{found}.sif")


def data_of(given: str | None, dataset: str, site: Site | None) -> Path | OnCluster:
    """Return the data that ``--data`` names: a local folder, ``cluster:/PATH``, or the site's
    ``cluster:NAME``.

    Raises:
        BadInput: if the text has another form.
        Missing: if the data set was not downloaded.
    """
    if given is None or not given.startswith(ON_CLUSTER):
        return data_folder(given, dataset)
    return _on_cluster("data", given, site)


def inspect_input(
    runner: Runner,
    wanted: Path | OnCluster,
    site: Site | None,
    tell: Tell,
    *,
    remote: bool,
    view: RankView = WHOLE_IMAGE,
) -> StartableImage:
    """Return an image with its facts, and with its path on the cluster if a copy is already there.

    toolkit reads an image of this machine. For an image on the cluster, toolkit reads the facts file beside
    it.

    Args:
        runner: runs commands on the cluster.
        wanted: the image.
        site: the profile of the cluster, whose shared folder may hold the image.
        tell: gets a line about each step.
        remote: whether the cluster is another machine.
        view: the files of the image that a rank sees.

    Raises:
        BadInput: if the image is not a SIF, or its facts file cannot be read.
        CheckFailed: if the image does not match the digest in its facts file.
        Missing: if the image or its facts file does not exist.
    """
    from toolkit.image.inspect import open_image  # slow: after toolkit has connected to the cluster

    if isinstance(wanted, OnCluster):
        path = expand_variables(runner, wanted.path)
        if remote:
            facts = _facts_there(runner, path)
            return StartableImage(wanted.name, facts, _bare(facts), None, path)
        wanted = find_image(path)
    seen = identity(wanted)
    with open_image(wanted, tell=tell, view=view) as (tree, facts):
        offers = contents_of(tree, facts)
    # The digest of an archive names its manifest. toolkit copies and records the file, so it needs the file's
    # digest.
    digest = (_bare(facts) if facts.format in STARTABLE_FORMATS else "") or hash_file(wanted)
    if not remote:
        return StartableImage(wanted.name, facts, digest, wanted, str(wanted), seen, offers)
    there = _equal_image(runner, wanted, digest, site)
    if there:
        tell.step(f"{wanted.name} is already on {runner.place}: {there}")
    return StartableImage(wanted.name, facts, digest, wanted, there, seen, offers)


def find_startable(image: StartableImage, command: str = "") -> StartableImage:
    """Return the image if the container runtime ``command`` can start it; an empty ``command`` means any
    runtime.

    Raises:
        BadInput: if the image has another format.
    """
    form, name = image.facts.format, image.here or image.there
    able = runtime_of_name(command).FORMATS if command else formats()
    if form in able:
        return image
    sif = f"make one: `{sif_command(image.facts)}`"
    if able & STARTABLE_FORMATS:
        raise BadInput(f"--image {name}: the file is a {form}; toolkit launch needs a SIF file", fix=sif)
    program = posixpath.basename(command)
    raise BadInput(
        f"--image {name}: the file is a {form}; {program} needs a {' or '.join(sorted(able))}",
        fix="give the archive that the image was made from: `docker save -o my.tar IMAGE`",
    )


def folder_there(runner: Runner, data: OnCluster) -> str:
    """Return the path of a data folder on the cluster.

    Raises:
        Missing: if you cannot read such a folder.
    """
    path = expand_variables(runner, data.path)
    if not runner.run(Command.of("test", "-d", path, "-a", "-r", path, timeout=_LOOK_SECONDS)).ok:
        raise Missing(f"{runner.place}: {path} is not a folder that you can read")
    return path


def data_there(runner: Runner, site: Site | None, name: str, own: str, parcels: Sequence[Parcel]) -> str:
    """Return the site's shared folder if it has all files of a data set with equal digests, else an empty
    text.

    ``own`` is the folder to which ``parcels`` would copy the files.
    """
    if site is None or not site.shared or not parcels:
        return ""
    folder = posixpath.join(expand_variables(runner, site.shared), "data", name)
    wanted = {posixpath.join(folder, posixpath.relpath(p.target, own)): p.sha256 for p in parcels}
    return folder if remote_hashes(runner, list(wanted)) == wanted else ""


def facts_beside(image: Path, digest: str, tell: Tell) -> bytes:
    """Return the content of the facts file of an image, for users without a copy of the image.

    Raises:
        BadInput: if ``image`` is not an image.
    """
    from toolkit.image.inspect import inspect

    facts = msgspec.structs.replace(inspect(image, tell=tell), path=image.name, digest=f"sha256:{digest}")
    return msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n"


def _is_path(given: str) -> bool:
    return given.startswith(f"{ON_CLUSTER}/")


def _on_cluster(option: str, given: str, site: Site | None) -> OnCluster:
    """Return the path after ``cluster:``, or the path of that name in the site's shared folder."""
    word = given.removeprefix(ON_CLUSTER)
    if _is_path(given) and word.isprintable():
        return OnCluster(posixpath.normpath(word))
    if "/" in word or not word.strip(".") or not word.isprintable():
        raise BadInput(
            f"--{option} {given}: the path on the cluster is not absolute",
            fix=f"give the full path, as in {ON_CLUSTER}/work/shared/{_LIKE[option]}",
        )
    if site is None or not site.shared:
        raise BadInput(
            f"--{option} {given}: the site profile names no shared folder",
            fix=f"give `--site` with a profile that has the key shared, or {ON_CLUSTER} and the full path",
        )
    return OnCluster(posixpath.join(site.shared, posixpath.dirname(_LIKE[option]), word))


def _equal_image(runner: Runner, image: Path, digest: str, site: Site | None) -> str:
    """Return the path of an equal image in the site's shared folder, or an empty text.

    On the cluster the image may have its own name, or the name of a copy, which contains the digest.
    """
    if site is None or not site.shared:
        return ""
    folder = posixpath.join(expand_variables(runner, site.shared), "images")
    names: Iterable[str] = (image.name, f"{image.stem}-{digest[:12]}{image.suffix}")
    found = remote_hashes(runner, [posixpath.join(folder, name) for name in names])
    return next((path for path, sha in found.items() if sha == digest), "")


def _facts_there(runner: Runner, path: str) -> ImageFacts:
    digest = remote_hashes(runner, [path]).get(path)
    if digest is None:
        raise Missing(f"{runner.place}: {path} is not an image that you can read")
    again = f"ask the owner of the image to run `toolkit image push {posixpath.basename(path)} --facts`"
    written = runner.read(f"{path}{FACTS}")
    if not written:
        raise Missing(f"{runner.place}: {path} has no facts file ({path}{FACTS})", fix=again)
    try:
        facts = msgspec.json.decode(written, type=ImageFacts)
    except DECODE_ERRORS as error:
        raise BadInput(f"{runner.place}: {path}{FACTS}: {error}", fix=again) from error
    if facts.digest != f"sha256:{digest}":
        raise CheckFailed(f"{runner.place}: {path} does not match the digest in {path}{FACTS}", fix=again)
    return facts


def _bare(facts: ImageFacts) -> str:
    return (facts.digest or "").removeprefix("sha256:")
