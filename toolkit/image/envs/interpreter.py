"""Find the Python that a job in an image uses, its package folders and its installed distributions."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from email.parser import Parser
from pathlib import Path

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import InvalidVersion, Version

from toolkit.errors import BadInput
from toolkit.files import hash_file
from toolkit.image.envs.lockfile import EnvBase
from toolkit.image.files import tree as files
from toolkit.image.files.config import BEGINNING
from toolkit.image.files.tree import FileTree
from toolkit.image.inspect import open_image
from toolkit.image.locks.pylock import environment
from toolkit.image.software.contents import linked_folders
from toolkit.image.software.python import has_system_packages
from toolkit.model.facts import ImageFacts
from toolkit.model.progress import Tell

_MOST = 1 << 20
_DIGESTED = ("sif", "squashfs")
_MINOR = re.compile(r"3\.\d{1,3}")
_INFO = re.compile(r".+\.(?:dist|egg)-info\Z")
_HOME = re.compile(r"^home\s*=\s*(/\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """A Python distribution in an image.

    ``requirements`` are the distribution's requirements, except requirements that the image violates.
    ``extras`` are the names of the distribution's extras.
    """

    name: str
    version: str
    requirements: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImagePython:
    """The Python of an image; ``packages`` maps normalised names to the installed distributions."""

    base: EnvBase
    packages: dict[str, InstalledPackage] = field(default_factory=dict)

    @property
    def minor(self) -> str:
        """The minor release of Python, for example ``3.11``."""
        return ".".join(self.base.python.split(".")[:2])


def python_of(image: Path, tell: Tell) -> ImagePython:
    """Read the Python of an image without starting the image.

    Raises:
        BadInput: if the image has no Python 3 on PATH, or no glibc.
        ToolkitError: under the same conditions as :func:`toolkit.image.inspect.open_image`.
    """
    with open_image(image, tell=tell) as (tree, facts):
        image_python = read_python(tree, facts, image.name)
        if not facts.digest or facts.format not in _DIGESTED:
            # The lock of an environment needs the hash of the image file. The facts of a large image may have
            # no digest. In formats other than SIF and squashfs, the digest is not the hash of the file.
            digest = f"sha256:{hash_file(image)}"
            return replace(image_python, base=msgspec.structs.replace(image_python.base, digest=digest))
        return image_python


def read_python(tree: FileTree, facts: ImageFacts, name: str) -> ImagePython:
    """Return the Python of an image from its files and facts; :func:`python_of` lists the errors."""
    version = facts.python or ""
    if not _MINOR.match(version):
        raise BadInput(f"{name}: the image has no Python 3 on PATH", fix="choose an image with Python")
    if not facts.glibc or not facts.architecture:
        raise BadInput(
            f"{name}: the image has no glibc; toolkit installs only wheels that need glibc",
            fix="choose an image with glibc",
        )
    command = _command(tree, facts)
    sites = tuple(_sites(tree, command, ".".join(version.split(".")[:2]), facts))
    packages: dict[str, tuple[str, str]] = {}
    for site in sites:
        for entry in files.names(tree, site):
            if _INFO.match(entry) and (metadata := _metadata(tree, posixpath.join(site, entry))):
                packages.setdefault(canonicalize_name(metadata[0]), (metadata[1], metadata[2]))
    base = EnvBase(
        name=name,
        digest=facts.digest or "",
        architecture=facts.architecture,
        glibc=facts.glibc,
        python=version,
        command=command,
        sites=sites,
        has={name: version for name, (version, _) in sorted(packages.items())},
    )
    return ImagePython(base, _satisfied_requirements(packages, base))


def _command(tree: FileTree, facts: ImageFacts) -> str:
    for folder in facts.environment.get("PATH", BEGINNING).split(":"):
        for program in ("python3", "python"):
            path = posixpath.join(folder, program)
            if folder.startswith("/") and files.is_file(tree, path):
                return path
    return "python3"


def _sites(tree: FileTree, command: str, minor: str, facts: ImageFacts) -> Iterator[str]:
    """Yield the package folders of the image's Python, in the order in which Python searches them."""
    folders = [
        folder for folder in facts.environment.get("PYTHONPATH", "").split(":") if folder.startswith("/")
    ]
    prefixes, prefix = list[str](), posixpath.dirname(posixpath.dirname(command))
    settings = files.text(tree, posixpath.join(prefix, "pyvenv.cfg"), _MOST)
    if settings is None:
        real = posixpath.dirname(posixpath.dirname(files.resolve(tree, command) or command))
        prefixes += [prefix, real, "/usr/local", "/usr"] if real in {"/usr", "/usr/local"} else [prefix, real]
    else:
        prefixes.append(prefix)
        if has_system_packages(settings) and (home := _HOME.search(settings)):
            prefixes += ["/usr/local", posixpath.dirname(home[1])]
    for root in dict.fromkeys(prefixes):
        names = (
            f"{lib}/python{minor}/{kind}-packages" for lib in ("lib", "lib64") for kind in ("site", "dist")
        )
        folders += [posixpath.join(root, name) for name in names]
        folders += [posixpath.join(root, "lib/python3/dist-packages")] if root == "/usr" else []
    visited: set[str] = set()
    while folders:
        folder = folders.pop(0)
        entered = files.resolve(tree, folder)
        if entered is None or entered in visited or tree.kind(entered) != "folder":
            continue
        visited.add(entered)
        yield folder
        for name in files.names(tree, folder):
            if name.endswith(".pth"):
                folders += linked_folders(tree, folder, name)[0]


def _metadata(tree: FileTree, path: str) -> tuple[str, str, str] | None:
    """Return the name, version and metadata text of a distribution, or None if its metadata is missing or
    invalid. ``path`` is a dist-info folder, an egg-info folder or an egg-info file.
    """
    for file in (f"{path}/METADATA", f"{path}/PKG-INFO", path):
        text = files.text(tree, file, _MOST)
        if text is None:
            continue
        metadata = Parser().parsestr(text.partition("\n\n")[0])
        name, version = str(metadata.get("Name") or ""), str(metadata.get("Version") or "")
        try:
            canonicalize_name(name, validate=True)
            return name, str(Version(version)), text
        except (InvalidName, InvalidVersion):
            return None
    return None


def markers(base: EnvBase) -> dict[str, str]:
    """Return the values of environment markers, such as ``python_version``, for an image's Python."""
    target = environment(base.python, base.architecture)
    return {"extra": "", **{name: str(value) for name, value in target.items()}}


def _satisfied_requirements(
    packages_by_name: dict[str, tuple[str, str]], base: EnvBase
) -> dict[str, InstalledPackage]:
    """Return each distribution with only those requirements that the image satisfies.

    An image can work although it violates a requirement of a distribution, for example after ``pip install
    --no-deps``. toolkit omits a violated requirement, because uv would find no solution with it.
    """
    target = markers(base)
    packages = {}
    for name, (version, text) in packages_by_name.items():
        metadata = Parser().parsestr(text.partition("\n\n")[0])
        lines = [
            line
            for line in map(str, metadata.get_all("Requires-Dist", []))
            if _holds(line, packages_by_name, target)
        ]
        extras = tuple(map(str, metadata.get_all("Provides-Extra", [])))
        packages[name] = InstalledPackage(name, version, tuple(lines), extras)
    return packages


def _holds(line: str, packages: dict[str, tuple[str, str]], target: dict[str, str]) -> bool:
    try:
        wanted = Requirement(" ".join(line.split()))
    except InvalidRequirement:
        return False
    if wanted.url:
        return False
    if wanted.marker is not None and "extra" in str(wanted.marker):
        return True
    if wanted.marker is not None and not wanted.marker.evaluate(target):
        return True
    package = packages.get(canonicalize_name(wanted.name))
    return package is not None and wanted.specifier.contains(package[0], prereleases=True)
