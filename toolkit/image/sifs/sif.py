"""Convert an image of the Docker engine to a SIF, check the SIF, and rename it to its final name.

mksquashfs runs in a container of the image and writes the squashfs at its final position in the SIF. After
mksquashfs exits, toolkit writes the header and the metadata in front of the squashfs. The SIF does not depend
on the time, the host or the target folder. The same image, image name and compression always give the same
SIF.
"""

import contextlib
import errno
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolkit.errors import BadInput, CheckFailed, Damaged, Missing
from toolkit.files import hash_file
from toolkit.folders import behind_links
from toolkit.image.files import workspace
from toolkit.image.files.digest import check_digest, publish
from toolkit.image.files.sif.siffile import read_sif
from toolkit.image.files.sif.sifobjects import content
from toolkit.image.sifs import singularityd
from toolkit.image.sifs.ociconfig import OciConfig, epoch, read_config
from toolkit.image.sifs.packing import DEFAULT, Packing
from toolkit.image.sifs.pseudo import pseudo_file
from toolkit.image.sifs.sifwrite import metadata_objects, partition_offset, write_head
from toolkit.image.sifs.trial import read_through, start_obstacle
from toolkit.image.trust import attachments
from toolkit.model.progress import Tell
from toolkit.model.stack import STACK_PATH
from toolkit.run.docker import squash
from toolkit.run.docker.builder import contained_apptainer
from toolkit.run.docker.engine import build_memory, find_image
from toolkit.run.docker.engine_images import size_of
from toolkit.run.folders import check_file, make_writable
from toolkit.run.singularity import InstalledRuntime, find
from toolkit.units import format_size

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_LEAST_SHARE = 8
"""A SIF has at least one eighth of its image's size. Before toolkit writes a SIF, it checks that the disk has
space for this minimum size.
"""
_FULL = "no space left on device"
_KEPT_LINES = 12
_MOST_OF_AN_OBJECT = 1 << 20
_SOURCE = "toolkit.source"
"""The label with the hash of all build inputs; only images that toolkit built have this label."""


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """The SIF of an image.

    ``reused`` is true if the file ``path`` already contained this image with this compression. ``untried`` is
    the reason why toolkit could not start a container from a new SIF on this machine. It is empty if the
    container started, or if ``reused`` is true.
    """

    schema: str = "toolkit.sif/1"
    path: str
    image: str
    bytes: int
    sha256: str
    packing: str
    reused: bool
    untried: str = ""


def convert(
    client: "DockerClient",
    image: str,
    target: Path,
    tell: Tell,
    *,
    packing: Packing = DEFAULT,
    fresh: bool = False,
) -> Converted:
    """Write an image as the SIF ``target`` with a checksum file.

    If toolkit built the image, and ``target`` already contains the image with the compression ``packing``,
    toolkit writes a new SIF only if ``fresh`` is true. If another program built the image, toolkit always
    writes a new SIF.

    If ``target`` is a symbolic link, toolkit writes the file to which the link points. After an error,
    toolkit removes the incomplete file.

    Raises:
        CheckFailed: if the conversion fails, the disk is full or the result is incomplete.
        BadInput: if toolkit cannot write a file at ``target``.
        Missing: if the Docker engine does not have the image.
    """
    source = find_image(client, image)
    if source is None:
        raise Missing(
            f"{image} is not in the Docker engine", fix="build the image: `toolkit image build RECIPE`"
        )
    check_file(target, "-o", "image.sif")
    config, real = read_config(source), behind_links(target)
    if not fresh and (existing_hash := reusable_digest(real, config, packing)):
        tell.step(f"{target} already contains this image; toolkit does not convert the image again")
        return Converted(
            path=str(target),
            image=source.id,
            bytes=target.stat().st_size,
            sha256=existing_hash,
            packing=packing.name,
            reused=True,
        )
    make_writable(real.parent, "-o")
    began = time.time()
    with workspace.beside(real) as part, full_disks(real.parent):
        write(client, image, source, part, tell, packing=packing)
        tell.step("Checking the SIF: its folders, its labels, and a test command in a container")
        runtime: InstalledRuntime = find() or contained_apptainer(client, tell)
        untried = verify(part, runtime, config.Labels)
        digest = hash_file(part)
        part.chmod(0o755)
        publish(part, target, digest)
        versions = {"docker": str(client.version().get("Version", ""))}
        attachments.write_full_provenance(target, versions, began, time.time())
    return Converted(
        path=str(target),
        image=source.id,
        bytes=target.stat().st_size,
        sha256=digest,
        packing=packing.name,
        reused=False,
        untried=untried,
    )


def write(
    client: "DockerClient", name: str, source: "Image", part: Path, tell: Tell, *, packing: Packing = DEFAULT
) -> None:
    """Write an image of the Docker engine as the SIF ``part``, without a check of the new SIF.

    Raises:
        CheckFailed: if toolkit cannot pack the image; an incomplete file ``part`` may remain.
    """
    size = size_of(source)
    fix = "delete files on that disk, or write the SIF to another folder with -o"
    workspace.require_space(part.parent, size // _LEAST_SHARE, "the SIF", fix)
    config = read_config(source)
    when, architecture = epoch(source, config), str(source.attrs.get("Architecture") or "")
    definition = singularityd.definition(name)
    labels = singularityd.labels(config, name, architecture, when, packing.name)
    metadata = singularityd.metadata(config, labels, definition)
    objects = metadata_objects(definition, metadata, msgspec.json.encode(config))
    tell.step(f"Packing {name} ({format_size(size)})")
    part.touch(0o600)
    work = squash.Squash(
        image=source.id,
        name=name,
        target=part,
        offset=partition_offset(objects),
        pseudo_files=pseudo_file(singularityd.nodes(config, labels, definition), when),
        exclusions=(*singularityd.KERNEL_FOLDERS, *singularityd.EMPTY, singularityd.ROOT),
        epoch=when,
        options=packing.options,
        memory=build_memory(client),
    )
    try:
        squash.pack(client, work, tell)
    except CheckFailed as error:
        if any(_FULL in line.lower() for line in error.detail):
            raise _full(str(part.parent)) from error
        raise
    write_head(part, objects, architecture, when)
    attachments.attach(part)


def verify(sif: Path, runtime: InstalledRuntime, labels: Mapping[str, str]) -> str:
    """Check a new SIF; return the reason why this machine cannot start containers, or an empty text.

    Raises:
        CheckFailed: if the SIF is truncated or damaged, contains another image, or does not start.
    """
    try:
        read_through(sif, (STACK_PATH,) if _SOURCE in labels else ())
    except (BadInput, Damaged) as error:  # toolkit wrote the SIF, so the user's input is not at fault
        raise CheckFailed(error.message, fix=error.fix) from error
    actual = runtime.labels(sif)
    if any(actual.get(name) != value for name, value in labels.items()):
        raise CheckFailed(f"{sif.name}: the labels of the SIF differ from the labels of the Docker image")
    done = runtime.execute(
        sif, ("sh", "-c", "test ! -x /opt/toolkit/venv/bin/python || python -c 'import zlib'")
    )
    if done.status == 0:
        return ""
    last = done.output.strip().splitlines()[-_KEPT_LINES:]
    # The runtime's error is the same for a broken image and for a machine that forbids mounts, so check the
    # machine.
    if why := start_obstacle():
        return why
    raise CheckFailed("toolkit wrote the SIF, but a test command in the SIF failed", detail=last)


def reusable_digest(target: Path, config: OciConfig, packing: Packing) -> str:
    """Return the SHA-256 of the SIF ``target`` if it already contains this image with this compression. If
    not, return an empty text.

    toolkit reuses only SIF files of images that toolkit built, because the configuration of any other image
    does not identify the image's content.
    """
    if _SOURCE not in config.Labels:
        return ""
    wanted = (msgspec.json.encode(config), msgspec.json.encode({singularityd.PACKING: packing.name})[1:-1])
    try:
        digest = check_digest(target)
        metadata = _metadata(target) if digest else b""
    except (CheckFailed, BadInput, OSError):
        return ""
    return digest if all(text in metadata for text in wanted) else ""


@contextlib.contextmanager
def full_disks(path: Path) -> Iterator[None]:
    """Replace the operating system's error for a full disk or quota by an error message with the path.

    ``path`` is the path in the message if the operating system's error names no file.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise _full(error.filename or str(path)) from error


def _metadata(sif: Path) -> bytes:
    """Return the contents of a SIF's objects, such as the definition file, without the root file system."""
    with sif.open("rb") as file:
        sif_file = read_sif(file, sif)
        return b"".join(
            content(file, entry, _MOST_OF_AN_OBJECT)
            for entry in sif_file.table.used
            if entry != sif_file.root
        )


def _full(path: str) -> CheckFailed:
    return CheckFailed(
        f"the disk is full: {path}",
        fix="delete files on that disk, or use a larger disk: `-o` for the SIF, APPTAINER_TMPDIR for "
        "temporary files; toolkit removed its incomplete file",
    )
