"""Resolve and install Python packages with uv, for the Python in an image.

The Python in the image may have a different version from the Python on this machine.
"""

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.errors import BadInput, CheckFailed
from toolkit.run.command import Command, Completed
from toolkit.run.local import LocalRunner
from toolkit.run.packages.wheels import uv_cache, uv_places, uv_program, uv_settings

_SECONDS = 1800.0
_PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[.*?\])?(?:==(?P<version>\S+)| @ (?P<url>\S+))")
_ASKED, _BOUND, _OUT = "asked.in", "bound.txt", "resolved.txt"
_TAIL = 12


class UnresolvedPackages(CheckFailed):
    """No set of packages satisfies the requirements. ``detail`` contains the reason that uv printed."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A package with the version that uv chose.

    ``via`` lists the packages that require this package. ``via`` is empty if only the user requires this
    package.
    """

    name: str
    version: str
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PinRequest:
    """Requirements for one version of Python.

    ``constraints`` limit the versions of packages, but do not require packages. ``python`` is the Python
    version, and ``platform`` is uv's name for the platform of the image's Python. ``preferences`` maps a
    package name to the version that uv chooses if possible. ``options`` are further command-line options
    for uv.
    """

    requirements: Sequence[str]
    constraints: Sequence[str]
    python: str
    platform: str
    preferences: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()

    @property
    def target(self) -> tuple[str, ...]:
        """The uv options that select the Python version and platform."""
        return ("--python-version", self.python, "--python-platform", self.platform)


def pin_requirements(request: PinRequest, *, build: bool) -> tuple[Pin, ...]:
    """Return a pin for each package that the requirements need, including all dependencies.

    If a package comes from an address or a local file, the ``version`` of the pin is empty.

    Args:
        request: the requirements, with the Python version and the platform.
        build: whether uv may choose a release that has no wheel, only a source distribution.

    Raises:
        UnresolvedPackages: if no set of packages satisfies the requirements.
        Missing: if uv is not installed, or uv's cache is not writable.
    """
    with tempfile.TemporaryDirectory(prefix="toolkit-env.") as work:
        requirements_file, bound, out = (Path(work) / name for name in (_ASKED, _BOUND, _OUT))
        requirements_file.write_text("".join(f"{requirement}\n" for requirement in request.requirements))
        bound.write_text("".join(f"{constraint}\n" for constraint in request.constraints))
        out.write_text("".join(f"{name}=={version}\n" for name, version in request.preferences.items()))
        words = (
            *("pip", "compile", "--no-header", "--annotation-style", "line", "--output-file", str(out)),
            *("--constraints", str(bound), *request.target, *request.options),
            *(() if build else _only_wheels(request.options)),
            str(requirements_file),
        )
        done = _run(words, work)
        if not done.ok:
            lines = done.errors.strip().splitlines()[-_TAIL:]
            raise UnresolvedPackages("no set of packages satisfies the requirements", detail=lines)
        return tuple(_pins(out.read_text()))


def _only_wheels(options: Sequence[str]) -> tuple[str, ...]:
    """Return uv's options that forbid source distributions.

    The returned options also forbid pre-releases, unless the user gave uv's option ``--prerelease``. If
    pre-releases were allowed, uv could choose an old pre-release. For example, deepspeed's releases have no
    wheels, but the old pre-release 0.3.1.dev5 has a wheel.
    """
    stable = () if "--prerelease" in options else ("--prerelease", "explicit")
    return ("--only-binary", ":all:", *stable)


def _pins(text: str) -> list[Pin]:
    pins = []
    for line in text.splitlines():
        bare, _, note = line.partition("  # via ")
        if match := _PIN.match(bare.strip()):
            via = [part.strip() for part in note.split(",")]
            named = tuple(part for part in via if part and not part.startswith("-"))
            pins.append(Pin(match["name"], match["version"] or "", named))
    return pins


def lock_of(request: PinRequest, *, build: bool) -> bytes:
    """Return the text of a ``pylock.toml`` that lists the package files of the requirements, but not of their
    dependencies. If ``build`` is false, uv refuses releases without wheels.

    Raises:
        CheckFailed: if a file is not available. The error contains uv's reason.
    """
    with tempfile.TemporaryDirectory(prefix="toolkit-env.") as work:
        requirements_file, out = Path(work) / _ASKED, Path(work) / "pylock.toml"
        requirements_file.write_text("".join(f"{requirement}\n" for requirement in request.requirements))
        words = (
            *("pip", "compile", "--no-header", "--no-deps", "--format", "pylock.toml"),
            *("--output-file", str(out), *request.target, *request.options),
            *(() if build else ("--only-binary", ":all:")),
            str(requirements_file),
        )
        _run(words, work).require("locking the packages")
        return out.read_bytes()


def install(request: PinRequest, wheels: Sequence[Path], target: Path) -> None:
    """Install requirements and wheels, without dependencies, into the new folder ``target``.

    Each requirement contains the hashes of its files, which uv checks. uv does not check hashes of
    ``wheels``, because toolkit built these wheels itself.

    Raises:
        CheckFailed: if a file has a wrong hash or is not available, or the disk is full.
    """
    target.mkdir()
    with tempfile.TemporaryDirectory(prefix="toolkit-env.") as work:
        requirements_file = Path(work) / _ASKED
        requirements_file.write_text("".join(f"{requirement}\n" for requirement in request.requirements))
        common = ("pip", "install", "--target", str(target), "--no-deps", *request.target, *request.options)
        if request.requirements:
            words = (*common, "--only-binary", ":all:", "--require-hashes", "-r", str(requirements_file))
            _run(words, work).require("installing the packages", "run the same command again")
        if wheels:
            _run((*common, *map(str, wheels)), work).require("installing the wheels that toolkit built")
    (target / ".lock").unlink(missing_ok=True)


def export_lock(lock: Path) -> bytes:
    """Return the packages in a ``uv.lock`` as the text of a requirements file. The project's
    ``pyproject.toml`` must be in the folder of the ``uv.lock``.

    Raises:
        BadInput: if uv cannot read the file.
    """
    words = ("export", "--frozen", "--no-emit-project", "--no-dev", "--no-header", "--no-annotate")
    done = _run((*words, "--project", str(lock.parent)), str(lock.parent))
    if not done.ok:
        raise BadInput(
            f"-f {lock}: uv cannot read this lock", detail=done.errors.strip().splitlines()[-_TAIL:]
        )
    return done.stdout


def _run(words: Sequence[str], folder: str) -> Completed:
    """Run uv with the user's package sources for pip, but without the user's configuration files for uv."""
    pip = words[0] == "pip"
    more = ("--no-config", "--cache-dir", uv_cache(), *(uv_places(()) if pip else ()))
    command = (uv_program(), *words[:2], "--quiet", *more, *words[2:])
    if not pip:
        command = (uv_program(), words[0], "--quiet", *more, *words[1:])
    return LocalRunner().run(Command(command, env=uv_settings(), cwd=folder, timeout=_SECONDS))
