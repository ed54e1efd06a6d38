"""Time three builds of a recipe's image: from nothing, after a change in a trainer, and without any
change.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from toolkit.errors import CheckFailed

_SECONDS = 7200.0
_PARTS = ("toolkit", "containers", "recipes", "slurm")
_TRAINER = "toolkit/trainers/mnist.py"


class Builds(msgspec.Struct, frozen=True, kw_only=True):
    """Wall-clock seconds of ``toolkit image build``.

    ``cold`` downloads, compiles and builds everything with an empty cache; ``None`` if not measured.
    ``edited`` is the time from a change in one trainer to the new SIF. ``warm`` is a build without changes.
    """

    cold: float | None
    edited: float
    warm: float


def builds(root: Path, recipe: str, folder: Path, *, cold: bool) -> Builds:
    """Time the builds of the checkout ``root``, and of a copy in ``folder`` with a changed trainer.

    Then build ``root`` again, so that the recipe's tag in the Docker engine names its image.
    """
    fetching = {"TOOLKIT_CACHE_DIR": str(folder / "cache")}
    try:
        _toolkit(root, "build", recipe)
        changed = _edited(root, folder / "edited")
        anew = _toolkit(changed, "build", recipe)
        anew += _toolkit(changed, "sif", recipe, "--output", str(folder / "edited.sif"))
        from_nothing = _toolkit(root, "build", "--fresh", recipe, env=fetching) if cold else None
    finally:
        _toolkit(root, "build", recipe)
    return Builds(cold=from_nothing, edited=anew, warm=_toolkit(root, "build", recipe))


def _edited(root: Path, copy: Path) -> Path:
    for part in _PARTS:
        shutil.copytree(root / part, copy / part)
    trainer = copy / _TRAINER
    trainer.write_text(f"{trainer.read_text('utf-8')}\n# Changed at {time.time_ns()}.\n", "utf-8")
    return copy


def _toolkit(root: Path, *words: str, env: Mapping[str, str] | None = None) -> float:
    command = [sys.executable, "-m", "toolkit", "--quiet", "image", *words]
    began = time.monotonic()
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise CheckFailed(f"toolkit image {' '.join(words)} failed", detail=done.stderr.splitlines()[-8:])
    return time.monotonic() - began
