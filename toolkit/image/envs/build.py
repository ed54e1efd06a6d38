"""Build wheels from source distributions inside the image, with the image's Python and compiler."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from toolkit.errors import CheckFailed, Missing
from toolkit.files import hash_file
from toolkit.image.envs.inside import UV_INSIDE, WORK, InsideImage
from toolkit.image.envs.interpreter import ImagePython
from toolkit.image.envs.lockfile import EnvPackage
from toolkit.image.locks.fetch import fetch_files
from toolkit.model.lock import LockedFile
from toolkit.model.progress import Tell
from toolkit.run.packages.pip_config import pip_places
from toolkit.run.packages.wheels import uv_program, uv_settings

_TAIL = 12
_WAYS = "put the missing wheels into a folder DIR and add `--find-links DIR`"


def require_way(sources: Sequence[LockedFile], container: InsideImage | None, reason: str) -> None:
    """Raise an error if packages have no wheels, and toolkit cannot start the image to build the wheels.

    ``sources`` are the source distributions of the packages without wheels. ``container`` starts commands in
    the image. If this machine cannot start the image, ``container`` is None and ``reason`` says why.

    Raises:
        Missing: if ``container`` is None and ``sources`` is not empty; the message lists the packages.
    """
    if sources and container is None:
        named = ", ".join(f"{source.name} {source.version}" for source in sources)
        raise Missing(
            f"{named}: no wheel fits the image, and toolkit cannot build a wheel inside the image: {reason}",
            fix=f"run this command on a machine that can start the image, or {_WAYS}",
        )


def build(
    sources: Sequence[LockedFile],
    python: ImagePython,
    container: InsideImage,
    work: Path,
    options: Sequence[str],
    tell: Tell,
) -> tuple[tuple[EnvPackage, Path], ...]:
    """Build a wheel of each source distribution inside the image; return each package with its wheel's path.

    ``work`` is a folder for the builds. ``options`` are options for uv, each followed by its value.

    Raises:
        CheckFailed: if a build fails; the message contains the last lines of the build's output.
        Missing: if toolkit cannot download a source distribution.
    """
    built, pairs = [], zip(options[::2], options[1::2], strict=True)
    links = (*(value for name, value in pairs if name == "--find-links"), *pip_places().links)
    paths = _in_folders(sources, links)
    paths |= fetch_files(
        [source for source in sources if source.sha256 not in paths], tell, recipe="the environment"
    )
    for number, source in enumerate(sources):
        tell.step(f"Building {source.name} {source.version} inside {python.base.name}")
        folder = work / f"build{number}"
        folder.mkdir()
        shutil.copy2(paths[source.sha256], folder / source.file)
        wheel = _wheel(source, python, container, folder, links)
        package = EnvPackage(
            name=source.name, version=source.version, file=wheel.name, sha256=source.sha256, built=True
        )
        built.append((package, wheel))
    return tuple(built)


def _in_folders(sources: Sequence[LockedFile], links: Sequence[str]) -> dict[str, Path]:
    """Return the path of each source distribution that is in one of the folders ``links``. The keys are the
    SHA-256 of the source distributions.
    """
    paths = ((source, Path(link) / source.file) for source in sources for link in links)
    return {
        source.sha256: path for source, path in paths if path.is_file() and hash_file(path) == source.sha256
    }


def _wheel(
    source: LockedFile, python: ImagePython, container: InsideImage, folder: Path, links: Sequence[str]
) -> Path:
    numpy = python.packages.get("numpy")
    (folder / "bound.txt").write_text(f"numpy=={numpy.version}\n" if numpy else "")
    words = (
        *(UV_INSIDE, "build", "--wheel", "--no-config", "--python", python.base.command),
        *("--cache-dir", f"{WORK}/cache", "--build-constraint", f"{WORK}/bound.txt"),
        *(word for link in links for word in ("--find-links", link)),
        *("--out-dir", f"{WORK}/out", f"{WORK}/{source.file}"),
    )
    local = tuple(link for link in links if link.startswith("/"))
    done = container.run(folder, words, uv_settings(), uv_program(), local)
    wheels = sorted((folder / "out").glob("*.whl"))
    if done.ok and wheels:
        shutil.rmtree(folder / "cache", ignore_errors=True)
        return wheels[0]
    compiler = container.run(folder, ("sh", "-c", "command -v cc gcc clang"))
    lacks = "" if compiler.ok else "; the image has no C compiler"
    tail = (done.errors.strip() or done.text.strip()).splitlines()[-_TAIL:]
    raise CheckFailed(
        f"{source.name} {source.version}: the build inside {python.base.name} failed{lacks}",
        fix=f"choose a release of the package that has wheels, or {_WAYS}",
        detail=tail,
    )
