"""Prepare the places from which the benchmark starts Python, such as a virtual environment and a SIF.

Usage: python -m tests.benchmarks.start.places SIF WORK.

SIF is an image with PyTorch. ``WORK/root`` is the image's operating system without Python packages, on the
local disk of a node. ``WORK/shared`` is on the shared file system, and has ``venv``, ``conda`` (with
interpreter and standard library), ``env.sqsh`` and ``image.sif``.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from toolkit.image.files.sif import squashwrite

SITE = "lib/python3.11/site-packages"
VENV = "opt/toolkit/venv"
MAGIC = b"hsqs"
_PACKED = ("toolkit_modules*", "__toolkit_modules.pth", "toolkit.pth", "__pycache__")


def offset_of(sif: Path) -> int:
    with sif.open("rb") as file:
        return file.read(1 << 20).index(MAGIC)


def make(sif: Path, work: Path) -> None:
    root, shared = work / "root", work / "shared"
    if root.exists():
        shutil.rmtree(root)
    _run("unsquashfs", "-q", "-n", "-o", str(offset_of(sif)), "-d", str(root), str(sif))
    shared.mkdir(exist_ok=True)
    shutil.copyfile(sif, shared / "image.sif")
    venv = shared / "venv"
    shutil.rmtree(venv, ignore_errors=True)
    (venv / SITE).parent.mkdir(parents=True)
    shutil.move(root / VENV / SITE, venv / SITE)
    for pattern in _PACKED:
        for path in (venv / SITE).glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in ("venv", "conda", "mnt"):
        (root / name).mkdir(exist_ok=True)
    packed = work / "packed"
    shutil.rmtree(packed, ignore_errors=True)
    shutil.copytree(venv, packed, symlinks=True)
    _compile(root, venv / SITE, "timestamp")
    # Compile like toolkit's environments; Python then does not look up source files.
    _compile(root, packed / SITE, "unchecked-hash")
    _pack(packed, shared / "env.sqsh")
    _pack(packed, shared / "sorted.sqsh", _opened(root, packed))
    conda = shared / "conda"
    shutil.rmtree(conda, ignore_errors=True)
    (conda / "bin").mkdir(parents=True)
    shutil.copy2(root / "usr/bin/python3.11", conda / "bin")
    shutil.copytree(root / "usr/lib/python3.11", conda / "lib/python3.11", symlinks=True)
    shutil.copytree(venv / SITE, conda / SITE, symlinks=True)
    _compile(root, conda / "lib/python3.11", "timestamp")


def _pack(folder: Path, target: Path, first: Sequence[str] = ()) -> None:
    """Write an environment file as toolkit does, but with the files ``first`` before all others."""
    usual = squashwrite._order
    places = {str(folder / name): place for place, name in enumerate(first)}

    def order(node: Any) -> tuple[int, int, str]:
        return (places.get(node.path, len(places)), *usual(node))

    with mock.patch.object(squashwrite, "_order", order), target.open("wb") as out:
        squashwrite.write_squashfs(folder, out, 0)


def _opened(root: Path, packed: Path) -> list[str]:
    trace = packed.parent / "opened"
    python = f"/usr/bin/env PYTHONPATH=/venv/{SITE} /usr/bin/python3.11 -c 'import torch'"
    traced = f"strace -f -qq -e trace=openat -o {trace} chroot {root} {python}"
    script = f"mount --bind /dev {root}/dev && mount --bind {packed} {root}/venv && {traced}"
    subprocess.run(["unshare", "-m", "sh", "-c", script], check=True)
    found = re.findall(r'"/venv/([^"]+)", O_RDONLY\|O_CLOEXEC(?:, [0-7]+)?\) = \d', trace.read_text())
    return [name for name in dict.fromkeys(found) if (packed / name).is_file()]


def _compile(root: Path, folder: Path, mode: str) -> None:
    script = (
        f"mount --bind {folder} {root}/mnt && chroot {root} /usr/bin/python3.11 -m compileall -q -f {{}} /mnt"
    )
    options = (
        f"-j 1 --invalidation-mode {mode} -d {'/conda/lib/python3.11' if 'conda' in str(folder) else '/venv'}"
    )
    # compileall fails for some packages, whose tests have syntax errors on purpose.
    subprocess.run(
        ["unshare", "-m", "sh", "-c", script.format(options)], check=False, stdout=subprocess.DEVNULL
    )


def _run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
