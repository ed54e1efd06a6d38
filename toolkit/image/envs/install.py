"""Install packages and their programs into a folder, which toolkit then packs into the environment file."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from toolkit.image.envs.interpreter import ImagePython
from toolkit.image.envs.lockfile import EnvPackage, site_of
from toolkit.image.envs.resolve import empty_question
from toolkit.model.progress import Tell
from toolkit.run.packages.environment import install

_SHELL = re.compile(rb"#!/bin/sh\n'''exec' .*\n' '''\n")
_PYTHON = re.compile(rb"#![^\n]*python[^\n]*\n")
_LINE = b"#!/usr/bin/env python3\n"
_STARTER = "sitecustomize.py"
_STARTS = """# Python ignores .pth files in PYTHONPATH, so read them here. Then run the next sitecustomize.

import importlib.machinery
import importlib.util
import os
import site
import sys

_here = os.path.dirname(os.path.abspath(__file__))
site.addsitedir(_here)
_next = importlib.machinery.PathFinder.find_spec(
    "sitecustomize", [one for one in sys.path if os.path.abspath(one or ".") != _here]
)
if _next is not None and _next.loader is not None:
    _module = importlib.util.module_from_spec(_next)
    sys.modules["sitecustomize"] = _module
    _next.loader.exec_module(_module)
"""


def lay_out(
    root: Path,
    packages: Sequence[EnvPackage],
    own_wheels: Sequence[Path],
    python: ImagePython,
    options: tuple[str, ...],
    tell: Tell,
) -> tuple[str, ...]:
    """Install packages into ``root``, and return the names of their command-line programs.

    ``own_wheels`` are the paths of the wheels that toolkit built itself. ``options`` are options for uv.

    Raises:
        CheckFailed: under the same conditions as :func:`toolkit.run.packages.environment.install`.
    """
    wheels = [package for package in packages if not package.built]
    tell.step(f"Installing {len(packages)} packages")
    lines = tuple(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}" for wheel in wheels)
    site = root / site_of(python.minor).lstrip("/")
    site.parent.mkdir(parents=True)
    install(replace(empty_question(python, options), requirements=lines), own_wheels, site)
    if any(site.glob("*.pth")) and not (site / _STARTER).exists():
        (site / _STARTER).write_text(_STARTS)
    if (site / "bin").is_dir():
        (site / "bin").rename(root / "bin")
    return _scripts(root / "bin")


def _scripts(folder: Path) -> tuple[str, ...]:
    """Change the first line of each Python script in ``folder``, so that the first Python on PATH runs the
    script. Return the names of all programs in ``folder``.
    """
    if not folder.is_dir():
        return ()
    for script in folder.iterdir():
        if script.is_file() and not script.is_symlink():
            content = script.read_bytes()
            start = _SHELL.match(content) or _PYTHON.match(content)
            if start:
                script.unlink()  # unlink first, because the file may be a hard link to uv's cache
                script.write_bytes(_LINE + content[start.end() :])
                script.chmod(0o755)
    return tuple(sorted(entry.name for entry in folder.iterdir()))
