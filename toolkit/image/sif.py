"""Turn an image of the Docker engine into one SIF file, which gets its name once it is seen to be whole."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image import workspace
from toolkit.image.digest import check_digest, digest_file, sha256
from toolkit.image.emit import CREATED
from toolkit.image.layout import write_layout
from toolkit.image.siffile import read_sif
from toolkit.image.trial import prevented, read_through
from toolkit.model.progress import Tell
from toolkit.model.stack import STACK_PATH
from toolkit.run.builder import contained
from toolkit.run.engine import find_image, saved
from toolkit.run.folders import writable
from toolkit.run.singularity import SifMaker, find

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_LEVEL = 6
"""Of zstd. Measured on 1.5 GB of TensorFlow and 2 cores: gzip 459 MB in 64 s; zstd 1: 489 MB in 4 s,
3: 467 MB in 3 s, 6: 441 MB in 7 s, 9: 437 MB in 9 s. mksquashfs takes 15 where nothing is said."""
_LEAST_SHARE = 8
"""No training image gets smaller than an eighth; less room than that is refused before any work."""
_FULL = "no space left on device"
_KEPT_LINES = 12


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """A SIF that was made, or that was there and is from the same image.

    ``untried`` says why it could not be started on this machine; empty text if it was.
    """

    schema: str = "toolkit.sif/1"
    path: str
    image: str
    bytes: int
    sha256: str
    maker: str
    reused: bool
    untried: str = ""


def convert(
    client: "DockerClient", image: str, target: Path, tell: Tell, *, fresh: bool = False
) -> Converted:
    """Write the image as ``target``, and its checksum beside it, unless they are there already.

    Raises:
        CheckFailed: if the conversion fails, the disk is full or the result is not whole; nothing is left.
        BadInput: if there is no file to be written at ``target``.
        Missing: if the engine does not have the image.
    """
    source = find_image(client, image)
    if source is None:
        raise Missing(f"{image} is not in the Docker engine", fix="toolkit image build RECIPE")
    if target.is_dir():
        raise BadInput(f"{target} is a folder; name the file to write, as in {target / 'image.sif'}")
    created = (source.labels or {}).get(CREATED, "")
    if not fresh and created and (kept := reusable(target, created)):
        tell.step(f"{target} is from this image already")
        return Converted(
            path=str(target), image=source.id, bytes=target.stat().st_size, sha256=kept, maker="", reused=True
        )
    writable(target.parent, "-o")
    maker: SifMaker = find() or contained(client, tell)
    with workspace.beside(target) as part, full_disks(target.parent):
        _make(client, source, part, maker, tell)
        tell.step("Checking the SIF: its table, its labels, a command inside")
        untried = verify(part, maker, created)
        digest = sha256(part)
        _publish(part, target, digest)
    return Converted(
        path=str(target),
        image=source.id,
        bytes=target.stat().st_size,
        sha256=digest,
        maker=maker.described,
        reused=False,
        untried=untried,
    )


def verify(sif: Path, maker: SifMaker, created: str = "") -> str:
    """Check a SIF; return why it could not be started here, empty text if it was.

    Raises:
        CheckFailed: if it is cut short, damaged, from another image, or does not start.
    """
    read_through(sif, (STACK_PATH,) if created else ())
    labels = maker.labels(sif)
    if created and labels.get(CREATED) != created:
        raise CheckFailed(f"{sif.name}: this is not the image that was converted")
    done = maker.execute(
        sif, ("sh", "-c", "test ! -x /opt/toolkit/venv/bin/python || python -c 'import zlib'")
    )
    if done.status == 0:
        return ""
    last = done.said.strip().splitlines()[-_KEPT_LINES:]
    # The cause is looked for and not read from what the runtime says: it says "mount" of a broken image too.
    if why := prevented():
        return why
    raise CheckFailed("the SIF was made but no command runs in it", detail=last)


def reusable(target: Path, created: str) -> str:
    """Return the checksum of ``target`` if it is whole and from the image of that date, else empty text."""
    try:
        digest = check_digest(target)
        return digest if digest and created.encode() in _metadata(target) else ""
    except (CheckFailed, BadInput, OSError):
        return ""


@contextlib.contextmanager
def full_disks(where: Path) -> Iterator[None]:
    """Say of a full disk that it is full, and which."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise _full(error.filename or str(where)) from error


def build_options(maker: SifMaker) -> tuple[str, ...]:
    """Return the options of ``apptainer build`` that compress well and soon."""
    if not maker.compresses:
        return ()
    return ("--mksquashfs-args", f"-comp zstd -Xcompression-level {_LEVEL} -mem 1G")


def _make(client: "DockerClient", source: "Image", part: Path, maker: SifMaker, tell: Tell) -> None:
    size, name = int(source.attrs.get("Size", 0)), next(iter(source.tags), source.id)
    workspace.require_space(
        part.parent, size // _LEAST_SHARE, "the SIF", "make room there, or write it elsewhere with -o"
    )
    with workspace.folder() as work:
        fix = "make room there, or set TMPDIR (or APPTAINER_TMPDIR) to a larger place"
        workspace.require_space(work, size * maker.copies, "the conversion", fix)
        layout = work / "layout"
        tell.step(f"Taking {name} out of the Docker engine ({size >> 20} MiB)")
        write_layout(saved(client, source.id), layout, tell)
        tell.step(f"Converting it with {maker.described}")
        done = maker.make(layout, part, build_options(maker), tell)
    if not done.ok:
        if _FULL in done.errors.lower() or _FULL in done.text.lower():
            raise _full(f"{part.parent} or {workspace.temporary_root()}")
        done.require(f"converting {name}")
    if not part.is_file():
        raise CheckFailed(
            f"{maker.described} ended well, but {part.parent} has no new file",
            fix="is the Docker engine on another machine? It has to see this folder",
        )


def _publish(part: Path, target: Path, digest: str) -> None:
    """Give the SIF its name and then its checksum; between the two it has none, never a wrong one."""
    noted = digest_file(target)
    noted.unlink(missing_ok=True)
    part.chmod(0o755)
    part.replace(target)
    with workspace.beside(noted) as line:
        line.write_text(f"{digest}  {target.name}\n", "utf-8")
        line.replace(noted)


def _metadata(sif: Path) -> bytes:
    """Return all that a SIF holds besides its file systems: definition, labels, signatures."""
    with sif.open("rb") as file:
        found = read_sif(file, sif)
        parts = []
        for descriptor in found.descriptors:
            if descriptor != found.root:
                file.seek(descriptor.offset)
                parts.append(file.read(min(descriptor.size, 1 << 20)))
    return b"".join(parts)


def _full(where: str) -> CheckFailed:
    return CheckFailed(
        f"the disk is full: {where}", fix="make room there, or set TMPDIR to a larger place; nothing was left"
    )
