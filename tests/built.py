"""Build the wheel of this checkout, and run the installed programs outside the checkout."""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from toolkit import DISTRIBUTION

ROOT = Path(__file__).parents[1]
STEM = DISTRIBUTION.replace("-", "_")
"""Start of the file names of wheel and sdist (packaging.python.org: binary distribution format)."""
UV = str(Path(sys.executable).with_name("uv"))


def python(*words: str, folder: Path = ROOT, **env: str) -> str:
    return ran([sys.executable, *words], {**os.environ, **env}, folder).stdout


def wheel_of(source: Path, folder: Path) -> Path:
    python("-m", "pip", "wheel", str(source), "--no-deps", "--no-build-isolation", "-w", str(folder))
    (wheel,) = folder.glob(f"{STEM}-*.whl")
    return wheel


def ran(words: Sequence[str], env: dict[str, str], folder: Path) -> "subprocess.CompletedProcess[str]":
    done = tried(words, env, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def tried(words: Sequence[str], env: dict[str, str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(list(words), cwd=folder, env=env, capture_output=True, text=True, timeout=600)


def of_a_user(home: Path, path: str) -> dict[str, str]:
    """Return a user's environment: only HOME, PATH, and this machine's settings and caches of pip and uv."""
    kept = ("PIP_", "UV_", "SSL_", "HTTP", "http", "NO_PROXY", "no_proxy", "REQUESTS_")
    env = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    return env | _caches() | _index() | {"HOME": str(home), "PATH": path, "UV_PYTHON_DOWNLOADS": "never"}


@cache
def _caches() -> dict[str, str]:
    return {
        "PIP_CACHE_DIR": python("-m", "pip", "cache", "dir").strip(),
        "UV_CACHE_DIR": ran([UV, "cache", "dir"], dict(os.environ), ROOT).stdout.strip(),
    }


@cache
def _index() -> dict[str, str]:
    """Return uv's variable for pip's package index, because uv does not read pip's settings."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    said = tried(asked, dict(os.environ), ROOT).stdout.strip()
    index = os.environ.get("PIP_INDEX_URL", said)
    return {"UV_DEFAULT_INDEX": index} if index else {}
