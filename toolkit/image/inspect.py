"""Look into an image without starting it: no root, no container runtime, nothing is written."""

from io import BufferedReader
from pathlib import Path

from toolkit.errors import BadInput, CheckFailed
from toolkit.image.bounded import Budget
from toolkit.image.describe import describe
from toolkit.image.digest import check_digest, sha256
from toolkit.image.folder import FolderTree
from toolkit.image.siffile import is_sif, read_sif
from toolkit.image.squash import SquashTree
from toolkit.model.facts import ImageFacts

_SQUASHFS = b"hsqs"
_HASHED_UNASKED = 1 << 30
"""Bytes of an image whose digest is taken though nothing says what it should be; about a second's work."""


def inspect(path: Path) -> ImageFacts:
    """Read what is in a SIF, a squashfs or a sandbox folder.

    If ``FILE.sha256`` lies beside it, the file is held against it first.

    Raises:
        BadInput: if ``path`` is no image.
        CheckFailed: if the image is damaged, cut short or not the one that its digest names.
    """
    if path.is_dir():
        return _sandbox(path)
    try:
        with path.open("rb") as file:
            return _file(file, path)
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror}", fix="give the path of a SIF file or a sandbox folder"
        ) from error


def _sandbox(path: Path) -> ImageFacts:
    tree = FolderTree(path)
    try:
        system = any(tree.kind(p) for p in ("/bin", "/usr", "/etc"))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", fix="make it readable for you") from error
    if not system:
        raise BadInput(f"{path}: a folder, but no sandbox: it has neither /bin nor /usr nor /etc")
    return describe(tree, path, "sandbox", architecture=None, digest=None, budget=Budget(str(path)))


def _file(file: BufferedReader, path: Path) -> ImageFacts:
    head = file.read(64)
    if not head:
        raise CheckFailed(f"{path}: the file is empty", fix="copy or build it again")
    if not is_sif(head) and not head.startswith(_SQUASHFS):
        raise BadInput(
            f"{path}: neither a SIF, a squashfs nor a sandbox folder",
            fix="convert it first: toolkit image sif, or apptainer build",
        )
    digest, budget = _digest(path), Budget(str(path))
    if not is_sif(head):
        tree = SquashTree(file, 0, str(path), budget)
        return describe(tree, path, "squashfs", architecture=None, digest=digest, budget=budget)
    sif = read_sif(file, path)
    tree = SquashTree(file, sif.root.offset, str(path), budget)
    return describe(tree, path, "sif", architecture=sif.architecture, digest=digest, budget=budget)


def _digest(path: Path) -> str | None:
    """Return the digest of the file, after holding it against the one that lies beside it."""
    noted = check_digest(path)
    if not noted and path.stat().st_size > _HASHED_UNASKED:
        return None
    return f"sha256:{noted or sha256(path)}"
