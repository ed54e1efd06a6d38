"""Choose the packages that an environment needs in addition to the image's packages, or report a conflict."""

import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.pylock import PackageSdist, PackageWheel, Pylock
from packaging.utils import canonicalize_name

from toolkit.errors import CheckFailed
from toolkit.image.envs.interpreter import ImagePython, markers
from toolkit.image.envs.kept_packages import is_kept
from toolkit.image.envs.lockfile import EnvPackage
from toolkit.image.envs.requirements import EnvRequirements, parse_requirement
from toolkit.image.envs.stubs import write_stub
from toolkit.image.locks.origins import of_index
from toolkit.image.locks.pylock import environment, tags
from toolkit.model.lock import LockedFile
from toolkit.model.progress import Tell
from toolkit.run.packages.environment import Pin, PinRequest, UnresolvedPackages, lock_of, pin_requirements

_UV_GLIBC = (17, *range(28, 41))
"""The minor releases of glibc 2 for which uv has a platform name, such as ``manylinux_2_28`` for glibc
2.28."""
_CHANGE = "change the requirement, or hide the image's package: `--replace {}`"


@dataclass(frozen=True, slots=True)
class EnvSolution:
    """The wheels to install, and the source distributions from which toolkit must first build wheels."""

    packages: tuple[EnvPackage, ...]
    sources: tuple[LockedFile, ...]


def empty_question(python: ImagePython, options: tuple[str, ...] = ()) -> PinRequest:
    """Return a query for uv with the Python release, glibc and architecture of an image. The query has no
    requirements; callers add them.
    """
    wanted = int(python.base.glibc.split(".")[1])
    glibc = max((number for number in _UV_GLIBC if number <= wanted), default=_UV_GLIBC[0])
    return PinRequest((), (), python.minor, f"{python.base.architecture}-manylinux_2_{glibc}", {}, options)


def solve(
    request: EnvRequirements,
    python: ImagePython,
    replaceable: frozenset[str],
    earlier_versions: Mapping[str, str],
    tell: Tell,
) -> EnvSolution:
    """Return the packages that the environment needs in addition to the image's packages.

    Args:
        request: the requirements of the user.
        python: the image's Python and its packages.
        replaceable: the image's packages that the environment may hide.
        earlier_versions: package name → version in the environment file that the new file replaces. toolkit
            keeps these versions if possible.
        tell: receives progress messages.

    Raises:
        CheckFailed: if a requirement contradicts the image, or no set of packages satisfies all requirements.
    """
    _check_direct(request, python, replaceable)
    tell.step(f"Resolving {len(request.requirements)} requirements over {python.base.name}")
    with tempfile.TemporaryDirectory(prefix="toolkit-env.") as work:
        chosen, build = _chosen(_Search(request, python, replaceable, earlier_versions, Path(work)))
    news = [pin for pin in chosen if _is_new(pin, python, replaceable)]
    return _files(news, request, python, build=build) if news else EnvSolution((), ())


def _is_new(pin: Pin, python: ImagePython, replaceable: frozenset[str]) -> bool:
    name = canonicalize_name(pin.name)
    package = python.packages.get(name)
    return bool(pin.version) and (package is None or name in replaceable or package.version != pin.version)


def _check_direct(request: EnvRequirements, python: ImagePython, replaceable: frozenset[str]) -> None:
    faults = {}
    for line in (*request.requirements, *request.constraints):
        requirement = parse_requirement(line, "-f")
        name = canonicalize_name(requirement.name)
        package = python.packages.get(name)
        if package is None or name in replaceable or not is_kept(name):
            continue
        if requirement.marker is not None and not requirement.marker.evaluate(markers(python.base)):
            continue
        if requirement.url or not requirement.specifier.contains(package.version, prereleases=True):
            faults[name] = f"{name}: the image has {package.version}, but a requirement is {requirement}"
    if faults:
        first, *more = faults.values()
        raise CheckFailed(first, detail=more, fix=_CHANGE.format(" --replace ".join(faults)))


class _Search:
    """The queries to uv for an environment. The queries differ in which of the image's packages must keep
    their versions.
    """

    def __init__(
        self,
        request: EnvRequirements,
        python: ImagePython,
        replaceable: frozenset[str],
        earlier_versions: Mapping[str, str],
        folder: Path,
    ) -> None:
        self.request, self.python, self.replaceable, self.earlier_versions = (
            request,
            python,
            replaceable,
            earlier_versions,
        )
        self.stays = {name: package for name, package in python.packages.items() if name not in replaceable}
        self._stubs = {name: write_stub(folder, package) for name, package in self.stays.items()}
        self._base = empty_question(python, (*request.options, "--find-links", str(folder)))

    def all_fixed(self) -> PinRequest:
        """Return the query that fixes the versions of the image's packages, except replaceable packages."""
        return self._question(self._dependents(), self.stays, {})

    def held_fixed(self) -> PinRequest:
        """Return the query that fixes only the versions of kept packages: packages such as NumPy and mpi4py,
        which an environment may replace only with ``--replace``.
        """
        versions = {name: package.version for name, package in self.stays.items()}
        return self._question(tuple(self.stays), filter(is_kept, self.stays), versions)

    def free(self) -> PinRequest:
        """Return the query that fixes no versions. Its solution shows which of the image's packages
        contradict the requirements.
        """
        return self._question((), (), {name: package.version for name, package in self.stays.items()})

    def _question(
        self, roots: tuple[str, ...], fixed_names: Iterable[str], versions: Mapping[str, str]
    ) -> PinRequest:
        lines = [f"{name} @ file://{self._stubs[name]}" for name in fixed_names]
        return replace(
            self._base,
            requirements=(*self.request.requirements, *roots),
            constraints=(*self.request.constraints, *lines),
            preferences={**versions, **self.earlier_versions},
        )

    def _dependents(self) -> tuple[str, ...]:
        """Return the image's packages that depend on a package that the environment may hide."""
        names = []
        for name, package in self.stays.items():
            needs = {
                canonicalize_name(parse_requirement(line, name).name)
                for line in package.requirements
                if "extra" not in line
            }
            if needs & self.replaceable:
                names.append(name)
        return tuple(names)


def _chosen(search: _Search) -> tuple[tuple[Pin, ...], bool]:
    """Return the packages that satisfy the requirements, and whether uv was allowed to choose packages
    without wheels.
    """
    failed = None
    for build in (False, True):
        for fixed in (search.all_fixed(), search.held_fixed()):
            try:
                return pin_requirements(fixed, build=build), build
            except UnresolvedPackages as error:
                failed = failed or error
        if not build:
            _explain(search)
    raise failed or UnresolvedPackages("no set of packages satisfies the requirements")


def _explain(search: _Search) -> None:
    """Raise an error if the requirements contradict kept packages of the image; the message names these
    packages. Do nothing if toolkit finds no contradiction.
    """
    try:
        pins = pin_requirements(search.free(), build=False)
    except UnresolvedPackages:
        return
    moved = list(_conflicting_pins(pins, search))
    if moved:
        names = " --replace ".join(name for name, _ in moved)
        raise CheckFailed(moved[0][1], detail=[line for _, line in moved[1:]], fix=_CHANGE.format(names))


def _conflicting_pins(pins: tuple[Pin, ...], search: _Search) -> Iterator[tuple[str, str]]:
    for pin in pins:
        name = canonicalize_name(pin.name)
        package = search.stays.get(name)
        if package is not None and is_kept(name) and pin.version and pin.version != package.version:
            user = f" because of {', '.join(pin.via)}" if pin.via else ""
            yield name, f"{name}: the image has {package.version}; the environment needs {pin.version}{user}"


def _files(new_pins: list[Pin], request: EnvRequirements, python: ImagePython, *, build: bool) -> EnvSolution:
    """Return the file of each new package: the best wheel for the image, or the source distribution if no
    wheel fits the image.
    """
    base = empty_question(python, request.options)
    pins = tuple(f"{pin.name}=={pin.version}" for pin in new_pins)
    text = lock_of(replace(base, requirements=pins), build=build)
    version = python.base.python if python.base.python.count(".") > 1 else f"{python.base.python}.0"
    target = environment(version, python.base.architecture)
    fitting = tags(version, python.base.glibc, python.base.architecture)
    via = {str(canonicalize_name(pin.name)): pin.via for pin in new_pins}
    packages, sources = list[EnvPackage](), list[LockedFile]()
    lock = Pylock.from_dict(tomllib.loads(text.decode()))
    for package, file in lock.select(environment=target, tags=fitting):
        if not isinstance(file, PackageWheel | PackageSdist):
            raise CheckFailed(
                f"{package.name} {package.version}: the package index has neither a wheel nor a source "
                f"distribution"
            )
        sha256 = _check_hash(str(package.name), file.hashes["sha256"], request)
        name, number = str(package.name), str(package.version)
        if isinstance(file, PackageSdist):
            sources.append(
                LockedFile(
                    name=name,
                    version=number,
                    file=file.filename,
                    origin=of_index(python.minor),
                    sha256=sha256,
                    size=file.size or 0,
                )
            )
        else:
            env_package = EnvPackage(
                name=name, version=number, file=file.filename, sha256=sha256, via=via.get(name, ())
            )
            packages.append(env_package)
    return EnvSolution(tuple(packages), tuple(sources))


def _check_hash(name: str, sha256: str, request: EnvRequirements) -> str:
    demanded = request.hashes.get(name)
    if demanded and f"sha256:{sha256}" not in demanded:
        raise CheckFailed(f"{name}: the file in the package index has none of the hashes in the requirements")
    return sha256
