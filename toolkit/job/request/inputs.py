"""Find images and data that a cluster already has, so that toolkit does not copy them again."""

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
"""The suffix of the facts file that ``toolkit image push --facts`` writes beside a shared image."""

_LIKE = {"image": "images/my.sif", "data": "data/mnist"}
"""Examples of paths in the shared folder of a site."""

_LOOK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class OnCluster:
    """The path of an image or of data on the cluster. It may start with a variable, such as ``$WORK``."""

    path: str

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class StartableImage:
    """An image for a job: its facts, its SHA-256 digest in hexadecimal, and its paths.

    ``local_file`` is the file on this machine, or ``None`` if the image is only on the cluster.
    ``cluster_path`` is the path on the cluster; it is empty if toolkit must copy the image to the cluster.
    """

    name: str
    facts: ImageFacts
    digest: str
    local_file: Path | None
    cluster_path: str
    file_identity: tuple[int, ...] = ()
    """The device, inode, size and times of ``local_file`` (:func:`toolkit.image.files.filelock.identity`).
    toolkit records them before it reads the file, to detect later changes.
    """
    offers: Contents | None = None
    """The commands and modules in the image, or ``None`` if toolkit cannot read the image on this machine."""


def image_of(option: str, site: Site | None) -> Path | OnCluster:
    """Return the image that ``--image`` names.

    ``option`` is a file on this machine, a recipe's name, ``cluster:/PATH``, or ``cluster:NAME`` for an image
    in the site's shared folder.

    Raises:
        BadInput: if the path after ``cluster:`` is relative, or the site has no shared folder. toolkit also
            raises this error if the file on this machine does not exist, or is not an image.
        Missing: if toolkit finds no built image with the recipe's name.
    """
    if not option.startswith(ON_CLUSTER):
        return find_image(option)
    path = _on_cluster("image", option, site)
    return path if path.name.endswith(".sif") or _is_path(option) else OnCluster(f"{path}.sif")


def data_of(option: str | None, dataset: str, site: Site | None) -> Path | OnCluster:
    """Return the data that ``--data`` names.

    ``option`` is a folder on this machine, ``cluster:/PATH``, or ``cluster:NAME`` for data in the site's
    shared folder. If ``option`` is ``None``, the result is the folder to which toolkit downloaded
    ``dataset``.

    Raises:
        BadInput: if the folder on this machine does not exist, the path after ``cluster:`` is relative, or
            the site has no shared folder.
        Missing: if the user has not downloaded ``dataset``.
    """
    if option is None or not option.startswith(ON_CLUSTER):
        return data_folder(option, dataset)
    return _on_cluster("data", option, site)


def inspect_input(
    runner: Runner,
    file: Path | OnCluster,
    site: Site | None,
    tell: Tell,
    *,
    remote: bool,
    view: RankView = WHOLE_IMAGE,
) -> StartableImage:
    """Return an image with its facts, and with its path on the cluster if the cluster already has a copy.

    toolkit reads the image file if it is on this machine. For an image on another machine, toolkit reads the
    facts file beside the image.

    Args:
        runner: runs commands on the cluster.
        file: the image.
        site: the profile of the cluster. toolkit looks for a copy in the profile's shared folder.
        tell: a function that receives a line about each step.
        remote: whether the cluster is another machine.
        view: the command of a rank, and the image's folders over which the runtime mounts host folders.

    Raises:
        BadInput: if the file is not an image, or toolkit cannot decode the image's facts file.
        CheckFailed: if the image does not match the digest in its facts file.
        Missing: if the image does not exist, or an image on another machine has no facts file.
    """
    from toolkit.image.inspect import open_image  # slow import, which runs while toolkit connects to the host

    if isinstance(file, OnCluster):
        path = expand_variables(runner, file.path)
        if remote:
            facts = _facts_there(runner, path)
            return StartableImage(file.name, facts, _bare(facts), None, path)
        file = find_image(path)
    file_identity = identity(file)
    with open_image(file, tell=tell, view=view) as (tree, facts):
        offers = contents_of(tree, facts)
    # The digest in an archive's facts is the digest of the archive's manifest.
    # toolkit copies and records the whole file, so toolkit needs the digest of the file.
    digest = (_bare(facts) if facts.format in STARTABLE_FORMATS else "") or hash_file(file)
    if not remote:
        return StartableImage(file.name, facts, digest, file, str(file), file_identity, offers)
    cluster_path = _equal_image(runner, file, digest, site)
    if cluster_path:
        tell.step(f"{file.name} is already on {runner.place}: {cluster_path}")
    return StartableImage(file.name, facts, digest, file, cluster_path, file_identity, offers)


def find_startable(image: StartableImage, command: str = "") -> StartableImage:
    """Check that the container runtime can start the image's format, and return the image unchanged.

    ``command`` is the runtime's command, such as ``apptainer``. If ``command`` is empty, toolkit accepts
    each format that at least one supported runtime can start.

    Raises:
        BadInput: if the runtime cannot start the image's format.
    """
    form, name = image.facts.format, image.local_file or image.cluster_path
    able = runtime_of_name(command).FORMATS if command else formats()
    if form in able:
        return image
    sif = f"make a SIF: `{sif_command(image.facts)}`"
    if able & STARTABLE_FORMATS:
        raise BadInput(f"--image {name}: the file is a {form}; toolkit launch needs a SIF file", fix=sif)
    program = posixpath.basename(command)
    raise BadInput(
        f"--image {name}: the file is a {form}; {program} needs a {' or '.join(sorted(able))}",
        fix="give an archive of the image, such as an archive that `docker save -o my.tar IMAGE` writes",
    )


def folder_there(runner: Runner, data: OnCluster) -> str:
    """Return the path of a data folder on the cluster.

    Raises:
        Missing: if the path is not a folder, or the user cannot read it.
    """
    path = expand_variables(runner, data.path)
    if not runner.run(Command.of("test", "-d", path, "-a", "-r", path, timeout=_LOOK_SECONDS)).ok:
        raise Missing(f"{runner.place}: {path} is not a folder that you can read")
    return path


def data_there(
    runner: Runner, site: Site | None, name: str, copy_folder: str, parcels: Sequence[Parcel]
) -> str:
    """Return the path of the data set in the site's shared folder, or an empty string.

    The result is empty if the site has no shared folder. It is also empty if the shared folder lacks a file
    of the data set ``name``, or has a different version of a file. ``parcels`` are the data set's files on
    this machine. If the result is empty, the caller copies them to ``copy_folder`` on the cluster.
    """
    if site is None or not site.shared or not parcels:
        return ""
    folder = posixpath.join(expand_variables(runner, site.shared), "data", name)
    wanted = {posixpath.join(folder, posixpath.relpath(p.target, copy_folder)): p.sha256 for p in parcels}
    return folder if remote_hashes(runner, list(wanted)) == wanted else ""


def facts_beside(image: Path, digest: str, tell: Tell) -> bytes:
    """Return the content of the facts file that toolkit writes beside a shared image.

    With this file, users can launch the shared image without a copy on their own machines.

    Raises:
        BadInput: if ``image`` is not an image.
    """
    from toolkit.image.inspect import inspect

    facts = msgspec.structs.replace(inspect(image, tell=tell), path=image.name, digest=f"sha256:{digest}")
    return msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n"


def _is_path(option: str) -> bool:
    return option.startswith(f"{ON_CLUSTER}/")


def _on_cluster(option: str, value: str, site: Site | None) -> OnCluster:
    """Return the path after ``cluster:``. If only a name follows ``cluster:``, return the path of this name
    in the site's shared folder.
    """
    word = value.removeprefix(ON_CLUSTER)
    if _is_path(value) and word.isprintable():
        return OnCluster(posixpath.normpath(word))
    if "/" in word or not word.strip(".") or not word.isprintable():
        raise BadInput(
            f"--{option} {value}: expected an absolute path or a name after `{ON_CLUSTER}`",
            fix=f"give the full path, as in {ON_CLUSTER}/work/shared/{_LIKE[option]}",
        )
    if site is None or not site.shared:
        raise BadInput(
            f"--{option} {value}: the job has no site profile with a shared folder",
            fix=f"give `--site` with a profile that has the key `shared`, or the full path, as in "
            f"{ON_CLUSTER}/work/shared/{_LIKE[option]}",
        )
    return OnCluster(posixpath.join(site.shared, posixpath.dirname(_LIKE[option]), word))


def _equal_image(runner: Runner, image: Path, digest: str, site: Site | None) -> str:
    """Return the path of an identical image in the site's shared folder, or an empty string.

    toolkit looks for two file names: the name of the image file, and this name with the first 12 digits of
    the digest before the suffix. Copies that toolkit made have the second name.
    """
    if site is None or not site.shared:
        return ""
    folder = posixpath.join(expand_variables(runner, site.shared), "images")
    names: Iterable[str] = (image.name, f"{image.stem}-{digest[:12]}{image.suffix}")
    hashes = remote_hashes(runner, [posixpath.join(folder, name) for name in names])
    return next((path for path, sha in hashes.items() if sha == digest), "")


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
