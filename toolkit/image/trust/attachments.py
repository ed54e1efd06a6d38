"""Add documents to a SIF as objects: the SBOM and the provenance of the image.

toolkit reads both documents from files in the image, so SIF files of equal images contain equal documents.
toolkit skips a document that the image does not contain. ``apptainer sif list`` shows the name and type of
each added object.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, CheckFailed
from toolkit.files import check_given, read_given, write_whole
from toolkit.image.builds import provenance
from toolkit.image.builds.sbom import SBOM_PATH
from toolkit.image.files import tree as files
from toolkit.image.files.sif.siffile import is_sif, read_sif
from toolkit.image.files.sif.sifobjects import (
    CYCLONEDX_JSON,
    JSON,
    SBOM,
    SIGNATURE,
    Object,
    add,
    content,
    pieces,
    read_table,
)
from toolkit.image.files.sif.squash import SquashTree
from toolkit.image.inspect import open_image
from toolkit.image.trust.package_sbom import package_sbom
from toolkit.model.progress import Tell
from toolkit.run.checkout import commit

SBOM_NAME = "sbom.cdx.json"
PROVENANCE_NAME = "provenance.intoto.json"
FULL_NAME = "provenance-full.intoto.json"
_MOST = 64 << 20


class _Subject(msgspec.Struct, frozen=True):
    digest: dict[str, str]


class _Statement(msgspec.Struct, frozen=True):
    subject: tuple[_Subject, ...]


def attach(sif: Path) -> tuple[str, ...]:
    """Add the SBOM and the provenance of the image to a new SIF, and return the names of the added objects.

    Raises:
        CheckFailed: if the SIF already has an SBOM or a signature. The new objects would make the
            signature invalid.
    """
    with sif.open("r+b") as file:
        sif_file = read_sif(file, sif)
        if any(entry.kind in {SBOM, SIGNATURE} for entry in sif_file.table.used):
            raise CheckFailed(f"{sif}: the SIF already has an SBOM or a signature", fix="build the SIF again")
        tree = SquashTree(file, sif_file.root.offset, str(sif))
        objects = []
        if package_sbom := files.read(tree, SBOM_PATH, _MOST):
            objects.append(Object(SBOM, package_sbom, SBOM_NAME, extra=CYCLONEDX_JSON))
        if predicate := files.read(tree, provenance.PROVENANCE_PATH, _MOST):
            text = provenance.statement(predicate, {"rootfs.squashfs": rootfs_sha256(file, sif)})
            objects.append(Object(JSON, text, PROVENANCE_NAME))
        add(file, sif, *objects)
    return tuple(thing.name for thing in objects)


def write_full_provenance(sif: Path, versions: Mapping[str, str], start: float, end: float) -> Path | None:
    """Write the full provenance of a SIF's image to a file beside the SIF, and return the file's path.

    The full provenance contains the image's provenance, and facts that differ between machines. These facts
    are the versions of the programs that wrote the SIF, toolkit's git commit, and the times of the SIF build.
    ``versions`` contains the version of each program, such as ``docker``, by name. ``start`` and ``end`` are
    in Unix seconds. If the image has no provenance, the function writes no file and returns None.
    """
    with sif.open("rb") as file:
        tree = SquashTree(file, read_sif(file, sif).root.offset, str(sif))
        predicate = files.read(tree, provenance.PROVENANCE_PATH, _MOST)
        if predicate is None:
            return None
        subjects = {"rootfs.squashfs": rootfs_sha256(file, sif)}
    text = provenance.full_provenance(
        predicate, subjects, versions=versions, commit=commit(), start=start, end=end
    )
    write_whole(full_file(sif), text)
    return full_file(sif)


def full_file(sif: Path) -> Path:
    """Return the path of the full provenance beside a SIF, ``NAME.provenance.json``."""
    return sif.with_name(f"{sif.name}.provenance.json")


def full_object(sif: Path) -> Object:
    """Check that the full provenance describes this SIF, and return the provenance as a SIF object.

    Raises:
        BadInput: if the file with the full provenance is missing or invalid, or describes another image.
    """
    path = full_file(sif)
    text = read_given(
        path,
        limit=_MOST,
        label="--provenance full:",
        fix="make the SIF again with `toolkit image sif --fresh`, which writes the file",
    )
    try:
        statement = msgspec.json.decode(text, type=_Statement)
    except DECODE_ERRORS as error:
        raise BadInput(f"--provenance full: {path}: not an in-toto provenance statement: {error}") from error
    with sif.open("rb") as file:
        digest = rootfs_sha256(file, sif)
    if digest not in {subject.digest.get("sha256") for subject in statement.subject}:
        raise BadInput(
            f"--provenance full: {path} describes an image other than {sif.name}",
            fix="make the SIF again: `toolkit image sif --fresh`",
        )
    return Object(JSON, text, FULL_NAME)


def rootfs_sha256(file: BinaryIO, sif: Path) -> str:
    """Return the SHA-256 of the SIF's root file system partition."""
    state = hashlib.sha256()
    for chunk in pieces(file, read_sif(file, sif).root):
        state.update(chunk)
    return state.hexdigest()


def sbom_of(image: str, tell: Tell) -> bytes:
    """Return the SBOM in an image of any format. If the image contains no SBOM, return a new SBOM, which
    toolkit creates from the image's package lists.

    Raises:
        BadInput, CheckFailed, Missing: if toolkit cannot read the image.
    """
    if Path(image).is_file():
        check_given(Path(image))
        if own := _sbom_object(Path(image)):
            return own
    with open_image(image, tell=tell) as (tree, facts):
        return files.read(tree, SBOM_PATH, _MOST) or package_sbom(tree, facts)


def _sbom_object(sif: Path) -> bytes | None:
    with sif.open("rb") as file:
        if not is_sif(file.read(64)):
            return None
        for entry in read_table(file, sif).used:
            if entry.kind == SBOM and entry.extra[:4] == CYCLONEDX_JSON:
                return content(file, entry, _MOST)
    return None
