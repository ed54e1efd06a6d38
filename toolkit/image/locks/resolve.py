"""Make the lock of a recipe: find Debian packages and Python wheels for the versions that the solver chose.

apt finds the Debian packages; uv finds the wheels in the package index. ``run/docker/base.py`` pulls or
builds the base image.

toolkit does not install packages on this machine and does not run their code.
"""

import tarfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolkit.errors import CheckFailed
from toolkit.image.locks import pylock
from toolkit.image.locks.complete import complete
from toolkit.image.locks.fetch import fetch_files
from toolkit.image.locks.ingredients import Ingredients
from toolkit.image.locks.origins import hosts_of
from toolkit.image.locks.pylock import DatedFile
from toolkit.image.locks.recipe import NamedRecipe
from toolkit.model.lock import Lock, LockedBase, LockedFile, Stage
from toolkit.model.progress import Tell
from toolkit.model.solution import Component, Solution
from toolkit.run.docker.base import ensure_base
from toolkit.run.docker.engine import architecture
from toolkit.run.docker.mirrors import Mirrors, of_image
from toolkit.run.packages import wheels
from toolkit.run.packages.apt import ESSENTIAL_PACKAGES, PackageFiles, files_of

if TYPE_CHECKING:
    from docker import DockerClient

_UNUSED = ("libclang",)
"""Wheels that toolkit does not add to a lock, although other wheels require them. Only a build of TensorFlow
needs libclang.
"""
_SAME = {"tensorflow-cpu": ("tensorflow",)}
"""For each wheel, the wheels that toolkit omits from a lock with this wheel. For example, tf-keras requires
the GPU wheel ``tensorflow``, which is three times as large as ``tensorflow-cpu``. A lock with
``tensorflow-cpu`` does not need ``tensorflow``.
"""

_UV_GLIBC = (17, *range(28, 32), *range(32, 41))
"""The minor releases of glibc 2 for which uv has a platform name."""


def resolve(
    client: "DockerClient",
    named_recipe: NamedRecipe,
    solution: Solution,
    inputs: Ingredients,
    tell: Tell,
    *,
    newer_base: bool = False,
) -> Lock:
    """Return the lock of the recipe ``named_recipe`` for the versions in ``solution``.

    ``inputs`` lists the packages and archives that the build needs. If ``newer_base`` is true, toolkit looks
    up the newest base image in the registry. The image's architecture may differ from the architecture of
    this machine.

    Raises:
        CheckFailed: if a Debian package or a wheel is not available.
        Missing: if the Docker engine, the package index or the source of the base image does not respond.
    """
    base, debian = _debian(client, inputs, solution.architecture, tell, newer_base=newer_base)
    base_hashes = {file.sha256 for file in base.packages}
    run = tuple(file for file in debian.sets["run"] if file.sha256 not in base_hashes)
    build = tuple(file for file in debian.sets["build"] if file.sha256 not in base_hashes)
    tell.step(f"Asking the package index for the wheels of {named_recipe.name}")
    python = _Python(inputs, solution.architecture, run, named_recipe.name, tell)
    sdists = python.sdists()
    installed = python.wheels(
        (*inputs.wheels, *inputs.packages, *_build_requirements(sdists, python)), inputs.tools
    )
    tools = python.wheels(inputs.tools, tuple(f"{file.name}=={file.version}" for file, _ in installed))
    archives = tuple(_archive(inputs, component) for component in (*inputs.helpers, *inputs.compiled))
    sources = [f for f, _ in sdists] + [f for f in archives if f]
    mirrors = of_image(client, base.published) if base.published else {}

    def measured(files: Sequence[LockedFile]) -> tuple[LockedFile, ...]:
        return _with_sizes(files, tell, named_recipe.name, mirrors)

    return complete(
        named_recipe,
        solution,
        inputs,
        epoch=max([debian.date, *(date for _, date in (*sdists, *installed, *tools))]),
        base=base,
        build=Stage(debian=build, wheels=measured([f for f, _ in tools]), sources=measured(sources)),
        run=Stage(debian=run, wheels=measured([f for f, _ in installed])),
    )


def _debian(
    client: "DockerClient", inputs: Ingredients, target_architecture: str, tell: Tell, *, newer_base: bool
) -> tuple[LockedBase, PackageFiles]:
    row, foreign = inputs.base, target_architecture != architecture(client)
    base = ensure_base(client, row.release, row.image, tell, fresh=newer_base)
    tell.step(f"Asking the package manager of {row.name} for the Debian packages")
    # The Docker engine has base images only for this machine's architecture. For another architecture, the
    # lock lists all packages, as if the base image contained none of them.
    published = base.published and not foreign
    minimal = () if published else ESSENTIAL_PACKAGES
    sets = {"run": (*minimal, *inputs.debian_run), "build": (*minimal, *inputs.debian_build)}
    if not published:
        sets["base"] = minimal
    answer = files_of(
        client,
        base.reference,
        row.release,
        sets,
        tell,
        from_nothing=not published,
        architecture=target_architecture if foreign else "",
    )
    locked = LockedBase(
        name=row.name,
        release=row.release,
        image=row.image,
        published=base.reference if published else "",
        packages=answer.sets.get("base", ()),
    )
    return locked, answer


class _Python:
    """Queries the package index for packages that fit the Python and the glibc of an image."""

    def __init__(
        self, inputs: Ingredients, architecture: str, run_files: Sequence[LockedFile], name: str, tell: Tell
    ) -> None:
        self._needs, self._architecture, self._name, self._tell = inputs, architecture, name, tell
        self._glibc = inputs.base.glibc
        self.version = next(
            (f.version.partition("-")[0] for f in run_files if f.name == "python3"), f"{inputs.base.python}.0"
        )

    @property
    def _platform(self) -> str:
        wanted = int(self._glibc.split(".")[1])
        return f"{self._architecture}-manylinux_2_{max(n for n in _UV_GLIBC if n <= wanted)}"

    def wheels(self, requirements: Sequence[str], constraints: Sequence[str]) -> tuple[DatedFile, ...]:
        if not requirements:
            return ()
        text = wheels.lock_wheels(
            requirements,
            [line for line in constraints if not Requirement(line).extras],
            python=self._needs.base.python,
            platform=self._platform,
            label=f"the wheels of {self._name}",
            indexes=self._needs.indexes,
        )
        pairs = pylock.wheels_of(
            text,
            python=self.version,
            glibc=self._glibc,
            architecture=self._architecture,
            foreign_hosts=hosts_of(self._needs.indexes),
        )
        same = {name for file, _ in pairs for name in _SAME.get(file.name, ())}
        return tuple(dated for dated in pairs if dated[0].name not in {*_UNUSED, *same})

    def sdists(self) -> tuple[DatedFile, ...]:
        wanted = [f"{c}=={self._needs.rows[c].version}" for c in self._needs.sdists]
        if not wanted:
            return ()
        what = f"the source distributions of {self._name}"
        text = wheels.sources(wanted, python=self._needs.base.python, label=what)
        return pylock.sdists_of(text, python=self.version)

    def requirements_of(self, sdist: Path) -> tuple[str, ...]:
        """Return the requirements of a source distribution that apply to the image's Python."""
        target = pylock.environment(self.version, self._architecture)
        environment = {"extra": "", **{name: str(value) for name, value in target.items()}}
        requirements = ((text, Requirement(text).marker) for text in required_by(sdist))
        return tuple(text for text, marker in requirements if marker is None or marker.evaluate(environment))

    def fetch(self, files: Sequence[LockedFile]) -> dict[str, Path]:
        return fetch_files(files, self._tell, recipe=self._name)


def _build_requirements(sdists: Sequence[DatedFile], python: _Python) -> tuple[str, ...]:
    paths = python.fetch([file for file, _ in sdists])
    return tuple(text for file, _ in sdists for text in python.requirements_of(paths[file.sha256]))


def required_by(sdist: Path) -> tuple[str, ...]:
    """Return all requirements in a source distribution's metadata. An optional requirement has a marker such
    as ``extra == 'test'``.

    Old source distributions list their requirements in ``requires.txt``, not in PKG-INFO. ``requires.txt``
    starts with the requirements that are not optional; a section for each extra follows.

    Raises:
        CheckFailed: if the archive is not a valid source distribution.
    """
    try:
        with tarfile.open(sdist) as tar:
            names = tar.getnames()
            top = names[0].partition("/")[0]
            requirements = Parser().parsestr(_text(tar, f"{top}/PKG-INFO")).get_all("Requires-Dist", [])
            if requirements:
                return tuple(requirements)
            project = canonicalize_name(top.rpartition("-")[0]).replace("-", "_")
            old = f"{top}/{project}.egg-info/requires.txt"
            return _sections(_text(tar, old)) if old in names else ()
    except (tarfile.TarError, KeyError, IndexError, OSError) as error:
        raise CheckFailed(f"{sdist.name} cannot be read as a Python source distribution: {error}") from error


def _sections(text: str) -> tuple[str, ...]:
    lines, marker = [], ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("["):
            extra, _, condition = line.strip("[]").partition(":")
            marker = f"extra == '{extra}'" if extra else condition
        else:
            lines.append(f"{line} ; {marker}" if marker else line)
    return tuple(lines)


def _text(tar: tarfile.TarFile, name: str) -> str:
    member = tar.extractfile(name)
    return member.read().decode("utf-8", "replace") if member else ""


def _archive(inputs: Ingredients, component: Component) -> LockedFile | None:
    row = inputs.rows[component]
    if row.archive is None:
        return None
    return LockedFile(
        name=component,
        version=row.version,
        file=row.archive.file,
        origin=row.archive.origin,
        sha256=row.archive.sha256,
        size=0,
    )


def _with_sizes(
    files: Sequence[LockedFile], tell: Tell, name: str, mirrors: Mirrors
) -> tuple[LockedFile, ...]:
    """Return the files with their sizes; download each file whose size is 0 (unknown)."""
    paths = fetch_files([f for f in files if not f.size], tell, recipe=name, mirrors=mirrors)
    return tuple(
        f if f.size else msgspec.structs.replace(f, size=paths[f.sha256].stat().st_size) for f in files
    )
