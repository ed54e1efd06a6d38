"""Build the image of a recipe from nothing, after a change in a trainer, and without any change."""

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
    """Seconds by the clock of ``toolkit image build``.

    ``cold`` fetches, compiles and builds all from an empty cache, ``None`` if it was not requested;
    ``edited`` follows a change in one trainer up to the new SIF; ``warm`` finds nothing to do.
    """

    cold: float | None
    edited: float
    warm: float


def builds(root: Path, recipe: str, folder: Path, *, cold: bool) -> Builds:
    """Time the builds of a checkout, with copies in ``folder``.

    At the end, the recipe's tag in the engine is the image of this checkout.

    Raises:
        CheckFailed: if a build fails.
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
    """Run ``toolkit image`` of a checkout, and return its seconds."""
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
