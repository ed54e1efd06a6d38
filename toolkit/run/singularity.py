"""Find Apptainer or Singularity on this machine, inspect SIF files, and run commands in SIF files.

toolkit uses the Python library spython to run Apptainer or Singularity. spython calls only a program named
``singularity``. toolkit therefore creates a link with this name to the real program, and adds the link's
folder to PATH.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypedDict

from toolkit.errors import CheckFailed

NAMES = ("apptainer", "singularity")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a command in an image. ``output`` has the output of the command and of the container
    runtime.
    """

    status: int
    output: str


class InstalledRuntime(Protocol):
    """A container runtime that can inspect a SIF file and run commands in the SIF file's container."""

    @property
    def description(self) -> str:
        """The container runtime's name with its version and its path."""

    def labels(self, sif: Path) -> Mapping[str, str]:
        """Return the labels that the container runtime reads from a SIF file.

        Raises:
            CheckFailed: if the runtime cannot read the image.
        """

    def execute(self, sif: Path, words: tuple[str, ...]) -> Outcome:
        """Run a command in an image, and return its exit status and output."""


@dataclass(frozen=True, slots=True)
class HostApptainer:
    """Apptainer or Singularity on this machine. ``path`` is the path of the program."""

    path: str
    version: str

    @property
    def description(self) -> str:
        return f"{self.version} ({self.path})"

    def labels(self, sif: Path) -> Mapping[str, str]:
        with _spython(self.path) as client:
            description = client.inspect(str(sif))
        try:
            return dict(description["attributes"]["labels"])
        except (KeyError, TypeError) as error:
            raise CheckFailed(
                f"{sif}: {self.version} cannot inspect the image: {_text(description)}"
            ) from error

    def execute(self, sif: Path, words: tuple[str, ...]) -> Outcome:
        # Hide the user's home folder and environment, because their settings could make a correct image fail.
        options = ["--cleanenv", "--no-home"]
        with _spython(self.path) as client:
            done = client.execute(str(sif), list(words), return_result=True, options=options)
            if "loop device" in _text(done):
                # If toolkit runs in a container, Apptainer has no loop devices, even as root.
                # With --userns, Apptainer mounts the image with FUSE instead of a loop device.
                options.append("--userns")
                done = client.execute(str(sif), list(words), return_result=True, options=options)
        return Outcome(done["return_code"], _text(done))


def find() -> HostApptainer | None:
    """Return Apptainer if PATH contains ``apptainer``. If PATH contains only ``singularity``, return
    Singularity. If PATH contains neither program, return ``None``.
    """
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        return None
    with _spython(path) as client:
        version = str(client.version()).strip()
    return HostApptainer(path, version)


@contextlib.contextmanager
def _spython(path: str) -> "Iterator[_Client]":
    """Yield spython's client. In the ``with`` block, ``singularity`` on PATH is a link to ``path``.

    Raises:
        CheckFailed: if spython calls ``sys.exit``.
    """
    before = os.environ.get("PATH", "")
    with tempfile.TemporaryDirectory(prefix="toolkit-singularity.") as folder:
        (Path(folder) / "singularity").symlink_to(path)
        os.environ["PATH"] = f"{folder}{os.pathsep}{before}"
        try:
            from spython.main import get_client

            yield get_client(quiet=True)
        except SystemExit as error:
            raise CheckFailed(f"spython cannot use the program {path} (exit status {error.code})") from error
        finally:
            os.environ["PATH"] = before


class _Result(TypedDict):
    """The result of a command, as spython returns it."""

    return_code: int
    message: str | list[str]


class _Client(Protocol):
    """The methods of spython's client that toolkit uses."""

    def version(self) -> str: ...

    def inspect(self, image: str) -> dict[str, dict[str, dict[str, str]]]: ...

    def execute(
        self, image: str, command: list[str], *, return_result: bool, options: list[str]
    ) -> _Result: ...


def _text(result: object) -> str:
    """Return the output in ``result``, which spython returned, as one string."""
    message = result.get("message", "") if isinstance(result, dict) else result
    return "\n".join(map(str, message)) if isinstance(message, list) else str(message)
