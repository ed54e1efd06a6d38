"""Build the images of the matrix with Docker as SIF files; skip an image whose input is unchanged.

python -m tests.matrix.build [--archive] [NAME…]
"""

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.matrix import ubuntu
from tests.matrix.images import UBUNTU, ImageSpec, context, program_specs, specs
from toolkit.errors import CheckFailed, ToolkitError
from toolkit.files import hash_file
from toolkit.image.files import workspace
from toolkit.image.files.digest import digest_file
from toolkit.image.sifs.packing import Packing
from toolkit.image.sifs.sif import write
from toolkit.model.progress import Tell
from toolkit.report.progress import Progress
from toolkit.run.docker.base import BaseImage, ensure_base
from toolkit.run.docker.engine import (
    BuildOptions,
    build_image,
    connect,
    find_image,
    forget_image,
    stream_archive,
)
from toolkit.run.docker.surroundings import certificates, pip_settings, proxies

if TYPE_CHECKING:
    from docker import DockerClient

FOLDER = Path(__file__).parents[2] / "build" / "matrix"
_MKSQUASHFS = {
    "gzip": ("-comp", "gzip"),
    "zstd": ("-comp", "zstd", "-Xcompression-level", "6"),
    "lz4": ("-comp", "lz4"),
    "xz": ("-comp", "xz"),
}
_SECONDS = 3600.0
_MEMORY = 4 << 30


def sif(name: str) -> Path:
    return FOLDER / f"{name}.sif"


def archive(name: str) -> Path:
    """Return the path of an image's docker-archive, for runtimes that cannot read SIF files."""
    return FOLDER / f"{name}.tar"


def ensure_archive(client: "DockerClient", spec: ImageSpec, tell: Tell) -> Path:
    """Return an image's docker-archive, and build it if it is missing."""
    target = archive(spec.name)
    if not target.is_file():
        FOLDER.mkdir(parents=True, exist_ok=True)
        image = _built(client, spec, _files(client, spec, tell), tell)
        part = target.with_suffix(".part")
        try:
            with part.open("wb") as file:
                file.writelines(stream_archive(client, image))
            part.replace(target)
        finally:
            forget_image(client, image)
    return target


def ensure(client: "DockerClient", spec: ImageSpec, tell: Tell) -> Path:
    """Return the SIF of an image, and build the SIF unless a SIF with the same input exists."""
    target, noted = sif(spec.name), FOLDER / f"{spec.name}.source"
    files = _files(client, spec, tell)
    source = digest(spec, files)
    if target.is_file() and noted.is_file() and noted.read_text() == source:
        return target
    image = _built(client, spec, files, tell)
    try:
        _convert(client, image, target, spec, tell)
    finally:
        forget_image(client, image)
    noted.write_text(source)
    return target


def _files(client: "DockerClient", spec: ImageSpec, tell: Tell) -> dict[str, bytes]:
    base = _base(client, spec.release, tell)
    return context(spec, base.reference, certificates(os.environ) or b"")


def _built(client: "DockerClient", spec: ImageSpec, files: dict[str, bytes], tell: Tell) -> str:
    tell.step(f"Building the matrix image {spec.name}")
    arguments = {**pip_settings(os.environ), **proxies(os.environ)}
    options = BuildOptions(memory=_MEMORY, timeout=_SECONDS, arguments=arguments)
    return build_image(client, files, spec.name, tell, options)


def _base(client: "DockerClient", release: str, tell: Tell) -> BaseImage:
    if release not in UBUNTU:
        return ensure_base(client, release, f"debian:{release}-slim", tell)
    ubuntu.ensure(client, release)
    return ensure_base(client, release, f"ubuntu:{release}", tell)


def _convert(client: "DockerClient", image: str, target: Path, spec: ImageSpec, tell: Tell) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    source = find_image(client, image)
    if source is None:
        raise CheckFailed(f"{spec.name}: the engine built this image and does not have it")
    packing = Packing(spec.compression, "", _MKSQUASHFS[spec.compression])
    with workspace.beside(target) as part:
        write(client, spec.name, source, part, tell, packing=packing)
        part.chmod(0o755)
        part.replace(target)
    digest_file(target).write_text(f"{hash_file(target)}  {target.name}\n")


def digest(spec: ImageSpec, files: dict[str, bytes]) -> str:
    """Return a digest of the files from which Docker builds the image.

    The certificates do not count. ``fetch_source`` counts only if the build script of the image calls it.
    """
    unused = {"certificates.crt", *(() if "fetch_source" in spec.build else ("fetch_source",))}
    parts = [spec.compression.encode()]
    parts += [path.encode() + b"\0" + files[path] for path in sorted(files.keys() - unused)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def main(names: list[str]) -> int:
    """Build the named images, or all images; if one fails, continue, and report the failure at the end.

    If the first name is ``--archive``, also write the docker-archives of the images.
    """
    tell, failed = Progress(verbose=False, quiet=False), []
    client = connect()
    archives, names = names[:1] == ["--archive"], [name for name in names if name != "--archive"]
    known = specs() | program_specs()
    for name in names or known:
        try:
            ensure(client, known[name], tell)
            if archives:
                ensure_archive(client, known[name], tell)
        except ToolkitError as error:
            failed.append(name)
            print(f"{name}: {error}", *getattr(error, "detail", ()), sep="\n  ", file=sys.stderr)
    client.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
