"""Inspect an image without root, without starting the image and without unpacking the image to disk."""

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from toolkit.errors import BadInput, Damaged
from toolkit.files import open_given
from toolkit.image.envs.lockfile import lock_in
from toolkit.image.files import dockersave, oci
from toolkit.image.files.assemble import HASHED_UNASKED, StoredImage, assemble
from toolkit.image.files.blobs import ArchiveBlobs, Blobs, FolderBlobs
from toolkit.image.files.bounded import BoundedTree, Budget
from toolkit.image.files.config import ImageConfig, architecture
from toolkit.image.files.daemon import open_engine_image
from toolkit.image.files.digest import check_digest, known_sha256
from toolkit.image.files.folder import FolderTree
from toolkit.image.files.inflate import is_packed
from toolkit.image.files.mounted import MountedTree
from toolkit.image.files.reference import Reference, refer
from toolkit.image.files.sif.siffile import is_sif, read_sif
from toolkit.image.files.sif.squash import SquashTree
from toolkit.image.files.source import FileSource
from toolkit.image.files.tar import is_tar
from toolkit.image.files.tree import FileTree
from toolkit.image.loader.scripts import environment
from toolkit.image.remembered import facts_of
from toolkit.model.facts import ImageFacts
from toolkit.model.progress import Silent, Tell
from toolkit.model.rank import WHOLE_IMAGE, RankView
from toolkit.model.stack import ENV_MOUNT

SQUASHFS = b"hsqs"
_HEAD = 512
_WHOLE_FILES = frozenset(("sif", "squashfs"))
"""The image formats whose digest is the SHA-256 of the whole file."""
_SETS = "/.singularity.d/env/98-toolkit-env.sh"
"""The script that sets the variables for a mounted environment (``--env-image``). Apptainer sources this
script after the image's own scripts.
"""


@dataclass(frozen=True, slots=True)
class _Opened:
    tree: FileTree
    form: str
    digest: str | None = None
    architecture: str | None = None
    config: ImageConfig | None = None


def inspect(
    image: str | Path, *, platform: str = "", tell: Tell | None = None, view: RankView = WHOLE_IMAGE
) -> ImageFacts:
    """Return the facts of an image; :func:`open_image` describes the arguments and errors."""
    with open_image(image, platform=platform, tell=tell, view=view) as (_, facts):
        return facts


@contextmanager
def open_image(
    image: str | Path, *, platform: str = "", tell: Tell | None = None, view: RankView = WHOLE_IMAGE
) -> Iterator[tuple[FileTree, ImageFacts]]:
    """Open an image; yield its files and the facts that toolkit reads from these files.

    The image is a SIF, a squashfs, a sandbox, a docker-archive, an OCI layout or an OCI archive.

    ``image`` is the path of the image, or the name of an image in the Docker engine. Both may start with a
    transport prefix such as ``oci:`` (:mod:`toolkit.image.files.reference`). ``platform``, for example
    ``linux/arm64``, selects one image of a multi-platform index. If the image has no multi-platform index,
    toolkit checks that the image is for ``platform``. If the file ``IMAGE.sha256`` is in the folder of the
    image file, toolkit compares the image with this checksum before it reads the image. ``view`` contains
    the command of a rank, and the image's folders over which the runtime mounts host folders. The facts
    apply to the program in this command.

    Raises:
        BadInput: if toolkit cannot read the file, the file is not an image, or the image is not for
            ``platform``. Also if the file contains several images, and neither ``image`` nor ``platform``
            selects one image.
        CheckFailed: if the image is damaged or truncated, or differs from its checksum.
        Missing: if the Docker engine is needed and does not respond.
    """
    reference = refer(image)
    budget = Budget(reference.label)
    with ExitStack() as stack:
        try:
            opened_image = _open(reference, platform, tell or Silent(), budget, stack)
            tree = (
                _with_env(opened_image.tree, Path(view.env), budget, stack) if view.env else opened_image.tree
            )
            facts = _facts(opened_image, tree, reference.label, budget, view)
        except OSError as error:
            raise BadInput(
                f"{reference.label}: {error.strerror}", fix="give the path of an image that you can read"
            ) from error
        _check_platform(facts, platform)
        yield tree, _with_compression(facts, opened_image.tree)


def _facts(opened_image: _Opened, tree: FileTree, path: str, budget: Budget, view: RankView) -> ImageFacts:
    def read() -> ImageFacts:
        # Import `describe` here, because the import is slow, and toolkit does not need it for cached facts.
        from toolkit.image.software.describe import describe

        return describe(
            tree,
            path,
            opened_image.form,
            architecture=opened_image.architecture,
            digest=opened_image.digest,
            budget=budget,
            config=opened_image.config,
            view=view,
        )

    if opened_image.digest is None or opened_image.form not in _WHOLE_FILES:
        return read()
    return facts_of(opened_image.digest, opened_image.form, path, view, read)


def _with_env(tree: FileTree, env: Path, budget: Budget, stack: ExitStack) -> FileTree:
    """Return the image's files, with the environment ``env`` (a squashfs file with Python packages) mounted
    at ``ENV_MOUNT``. The result contains a script that adds the environment's folders to PATH and PYTHONPATH.
    """
    over = SquashTree(stack.enter_context(open_given(env, label="--env-image")), 0, str(env), budget)
    lock = lock_in(over, f"--env-image {env}")
    own = environment(BoundedTree(tree, budget)).values.get("PYTHONPATH", "")
    modules = ":".join(filter(None, (f"{ENV_MOUNT}{lock.site}", own)))
    text = f'export PATH="{ENV_MOUNT}/bin:$PATH"\nexport PYTHONPATH={shlex.quote(modules)}\n'
    return MountedTree(tree, over, ENV_MOUNT, {_SETS: text})


def _open(ref: Reference, platform: str, tell: Tell, budget: Budget, stack: ExitStack) -> _Opened:
    if ref.transport == "docker-daemon":
        file = stack.enter_context(open_engine_image(ref.tag, tell))
        size = file.seek(0, 2)
        blobs = ArchiveBlobs(FileSource(file), size, ref.label, budget)
        return _open_layers(blobs, dockersave.choose(blobs, ""), "docker-daemon", budget)
    if ref.path.is_dir():
        if ref.transport == "oci" or (ref.transport is None and (ref.path / oci.MARK).is_file()):
            folder = FolderBlobs(ref.path, ref.label, budget, stack)
            return _open_layers(folder, oci.choose(folder, ref.tag, platform), "oci-layout", budget)
        if ref.transport is not None:
            raise BadInput(f"{ref.label}: this is a folder, but {ref.transport} needs a file")
        return _Opened(_sandbox(ref.path), "sandbox")
    if ref.transport == "oci":
        raise BadInput(
            f"{ref.label}: this is a file, but oci: needs a folder",
            fix="if the file is an OCI archive, write `oci-archive:FILE`",
        )
    fix = "give the path of an image that you can read"
    return _file(stack.enter_context(open_given(ref.path, fix=fix)), ref, platform, budget)


def _sandbox(path: Path) -> FolderTree:
    tree = FolderTree(path)
    try:
        system = any(tree.kind(p) for p in ("/bin", "/usr", "/etc"))
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror}", fix="get permission to read this folder from its owner"
        ) from error
    if not system:
        raise BadInput(f"{path}: this folder is not a sandbox: it has neither /bin nor /usr nor /etc")
    return tree


def _file(file: BinaryIO, ref: Reference, platform: str, budget: Budget) -> _Opened:
    head = file.read(_HEAD)
    if not head:
        raise Damaged(f"{ref.label}: the file is empty", fix="copy or build the image again")
    if ref.transport or is_tar(head) or is_packed(head):
        check_digest(ref.path)
        return _archive(file, ref, platform, budget)
    if not is_sif(head) and not head.startswith(SQUASHFS):
        raise BadInput(
            f"{ref.label}: not an image; toolkit reads SIF and squashfs files, sandboxes, "
            "Docker and OCI archives",
            fix="make a SIF file with `apptainer build`, or from a Docker image with `toolkit image sif`",
        )
    digest = _digest(ref.path)
    if not is_sif(head):
        return _Opened(SquashTree(file, 0, ref.label, budget), "squashfs", digest)
    sif = read_sif(file, ref.path)
    return _Opened(SquashTree(file, sif.root.offset, ref.label, budget), "sif", digest, sif.architecture)


def _archive(file: BinaryIO, ref: Reference, platform: str, budget: Budget) -> _Opened:
    blobs = ArchiveBlobs(FileSource(file), ref.path.stat().st_size, ref.label, budget)
    # Since Docker 25, `docker save` writes OCI archives that also contain manifest.json.
    if ref.transport == "docker-archive" or (ref.transport is None and blobs.part(dockersave.MANIFEST)):
        return _open_layers(blobs, dockersave.choose(blobs, ref.tag), "docker-archive", budget)
    if ref.transport is None and not blobs.part(oci.INDEX):
        raise BadInput(
            f"{ref.label}: this tar archive is not an image: it contains neither {dockersave.MANIFEST} nor "
            f"{oci.INDEX}",
            fix="write the archive with `docker save`: `docker export` leaves out the settings of the image",
        )
    return _open_layers(blobs, oci.choose(blobs, ref.tag, platform), "oci-archive", budget)


def _open_layers(blobs: Blobs, image: StoredImage, form: str, budget: Budget) -> _Opened:
    tree = assemble(blobs, image, budget)
    return _Opened(tree, form, image.digest, config=image.config)


def _digest(path: Path) -> str | None:
    """Compare an image file with its checksum file ``IMAGE.sha256``, and return the digest of the image.

    If there is no checksum file, return None for an image larger than ``HASHED_UNASKED``, because hashing
    takes long.
    """
    noted = check_digest(path)
    if not noted and path.stat().st_size > HASHED_UNASKED:
        return None
    return f"sha256:{noted or known_sha256(path)}"


def _with_compression(facts: ImageFacts, tree: FileTree) -> ImageFacts:
    if isinstance(tree, SquashTree):
        evidence = {**facts.evidence, "compression": f"the superblock of its squashfs: {tree.compression}"}
        return msgspec.structs.replace(facts, compression=tree.compression, evidence=evidence)
    evidence = {
        **facts.absent,
        "compression": f"{facts.format}: not a squashfs, so the kernel cannot mount it",
    }
    return msgspec.structs.replace(facts, absent=evidence)


def _check_platform(facts: ImageFacts, platform: str) -> None:
    if not platform:
        return
    wanted = architecture(platform.removeprefix("linux/").partition("/")[0])
    if facts.architecture not in {None, wanted}:
        raise BadInput(f"--platform {platform}: {facts.path} is an image for {facts.architecture}")
