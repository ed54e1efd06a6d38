"""Compile the Python modules of an environment to bytecode, and cache the result for each wheel."""

import csv
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from packaging.utils import canonicalize_name

from toolkit.image.envs.inside import WORK, InsideImage
from toolkit.image.envs.interpreter import ImagePython
from toolkit.image.envs.lockfile import EnvPackage, site_of
from toolkit.image.files import workspace
from toolkit.model.progress import Tell
from toolkit.model.stack import ENV_MOUNT
from toolkit.run.command import Command
from toolkit.run.folders import in_cache
from toolkit.run.local import LocalRunner

_COMPILE = ("-B", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash")
_SECONDS = 3600.0
_LIST = "toolkit-modules.txt"


def compile_modules(
    root: Path,
    packages: Sequence[EnvPackage],
    python: ImagePython,
    find_container: Callable[[], InsideImage | None],
    tell: Tell,
) -> str:
    """Compile the modules in ``root``, and return the minor release of Python that compiled them. If this
    machine lacks the image's minor release of Python and cannot start the image, return an empty text.

    ``compileall`` skips a module with a syntax error; for example, the test files of a compiler package may
    contain invalid code.

    Args:
        root: the folder of the environment.
        packages: the installed packages.
        python: the Python of the image.
        find_container: a function that returns an object for starting commands in the image, or None if this
            machine cannot start the image. toolkit calls the function only if this machine lacks the image's
            minor release of Python.
        tell: receives progress messages.
    """
    site, store = root / site_of(python.minor).lstrip("/"), in_cache("env")
    todo = list[tuple[Path, list[str]]]()
    for old in list(site.rglob("__pycache__")):
        shutil.rmtree(old)  # this bytecode may be for another Python, or contain outdated file times
    records = dict(_records(site))
    for package in packages:
        modules = [name for name in records.get(package.name, ()) if name.endswith(".py")]
        cache_file = store / f"{package.sha256}-cp{python.minor}.zip"
        if package.built or not _take_from_cache(cache_file, site):
            todo.append((Path() if package.built else cache_file, modules))
    listed = [module for _, modules in todo for module in modules]
    if listed and not _compiled(root, listed, python, find_container, tell):
        return ""
    for cache_file, modules in todo:
        if cache_file.name:
            _keep(cache_file, site, modules)
    return python.minor


def _records(site: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each package in the package folder ``site``, and the paths of its files relative to
    ``site``.
    """
    for record in site.glob("*.dist-info/RECORD"):
        name = canonicalize_name(record.parent.name.rpartition(".")[0].partition("-")[0])
        with record.open(encoding="utf-8", newline="") as file:
            paths = (row[0] for row in csv.reader(file) if row)
            yield name, [path for path in paths if not path.startswith(("/", "../"))]


def _take_from_cache(cache_file: Path, site: Path) -> bool:
    """Unpack the cached bytecode of a wheel into the package folder. Return False if the bytecode is not in
    the cache, or toolkit cannot unpack it.
    """
    try:
        with zipfile.ZipFile(cache_file) as archive:
            archive.extractall(site)
    except (OSError, zipfile.BadZipFile):
        return False
    return True


def _keep(cache_file: Path, site: Path, modules: Sequence[str]) -> None:
    with workspace.beside(cache_file) as part:
        with zipfile.ZipFile(part, "w") as archive:
            for module in modules:
                head, _, name = module.rpartition("/")
                for file in (site / head / "__pycache__").glob(f"{name.removesuffix('.py')}.cpython-*.pyc"):
                    archive.write(file, file.relative_to(site))
        part.replace(cache_file)


def _compiled(
    root: Path,
    modules: Sequence[str],
    python: ImagePython,
    find_container: Callable[[], InsideImage | None],
    tell: Tell,
) -> bool:
    """Compile ``modules``, which are paths relative to the package folder. Return False if this
    machine lacks the image's minor release of Python and cannot start the image.
    """
    tell.step(f"Compiling {len(modules)} modules for Python {python.minor}")
    names, site = root.parent / _LIST, site_of(python.minor)
    if executable := _interpreter(python.minor):
        names.write_text("".join(f"{root}{site}/{name}\n" for name in modules))
        words = (executable, *_COMPILE, "-s", str(root), "-p", ENV_MOUNT, "-i", str(names))
        LocalRunner().run(Command(words, env={"PYTHONDONTWRITEBYTECODE": ""}, timeout=_SECONDS))
        return True
    inside = find_container()
    if inside is None:
        return False
    names.write_text("".join(f"{WORK}/{root.name}{site}/{name}\n" for name in modules))
    words = (
        python.base.command,
        *_COMPILE,
        "-s",
        f"{WORK}/{root.name}",
        "-p",
        ENV_MOUNT,
        "-i",
        f"{WORK}/{_LIST}",
    )
    inside.run(root.parent, words, {"PYTHONDONTWRITEBYTECODE": ""})
    return True


def _interpreter(minor: str) -> str:
    """Return the path of a Python of the minor release ``minor`` on this machine, or an empty text.

    All Python interpreters of the same minor release compile a module to the same bytes.
    """
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == minor:
        return sys.executable
    path = shutil.which(f"python{minor}")
    return path if path and os.access(path, os.X_OK) else ""
