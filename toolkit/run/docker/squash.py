"""Pack the files of an image as squashfs.

mksquashfs runs in a container that toolkit creates from the image, so toolkit does not copy the image's files
out of the Docker engine. toolkit mounts mksquashfs, its loader and its libraries from a second image,
toolkit's builder image. mksquashfs therefore works even if the image to pack has no C library.
"""

import io
import re
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import CheckFailed
from toolkit.model.progress import Tell
from toolkit.run.docker.builder import ensure_builder
from toolkit.run.docker.containers import Box, RunResult, mount_image_folder, remove_stale, run_once

if TYPE_CHECKING:
    from docker import DockerClient

_PLACE = ".toolkit-sif"
"""The folder in the container that contains mksquashfs. The squashfs does not contain this folder."""
_TOOLS = f"/{_PLACE}/tools"
_ADDED = f"/{_PLACE}/added"
_TARGET = f"/{_PLACE}/target"
_LEFT_OUT = (_PLACE, ".dockerenv")
_HARMLESS = re.compile(r"Pseudo file .* exists in source filesystem|Ignoring, exclude it|Unrecognised xattr")
_XATTRS = r"^(user\.|security\.capability$)"
"""A pattern for the extended attributes to keep in the squashfs. toolkit leaves out SELinux labels, because
each host sets its own labels according to its SELinux policy.
"""
_WORK_MEMORY = 1 << 30
_PERCENT = re.compile(r"\d{1,3}")


@dataclass(frozen=True, slots=True)
class Squash:
    """The image to pack as squashfs, the target file, and the options. ``name`` is the image's name in
    messages.

    ``target`` is an existing file, in which the squashfs starts at byte ``offset``. ``pseudo_files`` defines
    files to add to the image's files, in the format of mksquashfs's pseudo files. ``exclusions`` lists the
    image's files that toolkit leaves out. ``epoch`` is in seconds since 1970. If a file's modification time
    is later than ``epoch``, mksquashfs changes it to ``epoch``. ``options`` are further arguments of
    mksquashfs, such as the compression. ``memory`` is the container's memory limit in bytes. ``timeout`` is
    in seconds.
    """

    image: str
    name: str
    target: Path
    offset: int
    pseudo_files: bytes
    exclusions: tuple[str, ...]
    epoch: int
    options: tuple[str, ...]
    memory: int
    timeout: float = 3600.0


def pack(client: "DockerClient", work: Squash, tell: Tell) -> None:
    """Write the files of an image as a squashfs.

    Raises:
        CheckFailed: if mksquashfs fails, prints a warning, or exceeds its limit of memory or time.
    """
    remove_stale(client)
    builder = ensure_builder(client, tell)
    with mount_image_folder(client, builder, _TOOLS) as tools:
        box = Box(
            work.image,
            binds={str(work.target.resolve()): _TARGET},
            env=_environment(work.epoch),
            memory=work.memory,
            timeout=work.timeout,
            user="0:0",
            init=False,
            volumes_from=(f"{tools}:ro",),
            root_archive=_packed({_ADDED: work.pseudo_files}),
        )
        lines: list[str] = []
        ran = run_once(client, box, _words(work), lambda line: _read_line(line, lines, tell))
    _require(ran, lines, work)


def _words(work: Squash) -> tuple[str, ...]:
    run = (f"{_TOOLS}/ld.so", "--library-path", _TOOLS, f"{_TOOLS}/mksquashfs", "/", _TARGET)
    fixed = ("-noappend", "-offset", str(work.offset), "-quiet", "-percentage", "-wildcards")
    memory = min(_WORK_MEMORY, work.memory // 2)
    return (
        *run,
        *fixed,
        *("-mem", f"{memory >> 20}M", "-xattrs-include", _XATTRS, "-pf", _ADDED),
        *("-root-mode", "755", "-root-uid", "0", "-root-gid", "0"),
        *work.options,
        *("-e", *_LEFT_OUT, *work.exclusions),
    )


def _environment(epoch: int) -> Mapping[str, str]:
    # NVIDIA_VISIBLE_DEVICES=void keeps Docker from mounting the host's GPU drivers in the container.
    return {"SOURCE_DATE_EPOCH": str(epoch), "NVIDIA_VISIBLE_DEVICES": "void"}


def _read_line(line: str, lines: list[str], tell: Tell) -> None:
    text = line.strip()
    if _PERCENT.fullmatch(text):
        tell.detail(f"{text} %")
    elif text and not _HARMLESS.search(text):
        lines.append(text)


def _require(result: RunResult, lines: Sequence[str], work: Squash) -> None:
    """Raise an error if mksquashfs failed or printed a warning.

    A warning counts as a failure for this reason: if mksquashfs cannot read a file, it stores an empty file,
    prints a warning and continues.
    """
    if result.ok and not lines and work.target.stat().st_size > work.offset:
        return
    what = f"packing {work.name}"
    if result.timed_out:
        raise CheckFailed(f"{what}: mksquashfs took longer than {work.timeout:.0f} s", detail=lines[-12:])
    if result.status == 137:
        raise CheckFailed(
            f"{what}: mksquashfs was killed, most likely by the memory limit of {work.memory >> 20} MiB",
            fix="set TOOLKIT_BUILD_MEMORY to a larger value",
            detail=lines[-12:],
        )
    if result.ok and not lines:
        raise CheckFailed(
            f"{what}: mksquashfs succeeded, but {work.target} is still empty",
            fix="check that the Docker engine runs on this machine and can write to this file",
        )
    raise CheckFailed(
        f"{what}: mksquashfs failed or printed a warning (exit status {result.status})", detail=lines[-12:]
    )


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
