"""Find Python interpreters on this machine that are too old for toolkit."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_NAMES = ("python2.7", *(f"python3.{minor}" for minor in range(4, 11)))
_ASK = "import sys; sys.exit(sys.version_info >= (3, 11))"


@cache
def old_pythons() -> tuple[str, ...]:
    """Return the paths of interpreters older than 3.11 on PATH and in pyenv's folder."""
    return tuple(path for path in _candidates() if _is_old(path))


def _candidates() -> Iterator[str]:
    yield from filter(None, map(shutil.which, _NAMES))
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(root.glob("versions/*/bin/python")))


def _is_old(path: str) -> bool:
    return subprocess.run([path, "-c", _ASK], capture_output=True, timeout=60).returncode == 0
