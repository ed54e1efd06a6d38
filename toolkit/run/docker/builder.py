"""Run Apptainer in a container, on machines that have only Docker."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.data import shipped_folder
from toolkit.errors import BadInput, CheckFailed
from toolkit.model.progress import Tell
from toolkit.run.docker.base import ensure_base
from toolkit.run.docker.containers import Box, RunResult, run_once
from toolkit.run.docker.engine import BuildOptions, build_image, build_memory, find_image, tag_image
from toolkit.run.docker.surroundings import proxies
from toolkit.run.singularity import Outcome

if TYPE_CHECKING:
    from docker import DockerClient

BUILDER = "toolkit-builder:latest"
RELEASE = "trixie"
"""The Debian release of the builder image. This is the oldest release whose glibc is new enough for the
Apptainer package.
"""

_DOCKERFILE = "Dockerfile"
_MOVED = "moved.Dockerfile"
_BOOTSTRAP = "bootstrap.Dockerfile"
_BOOTSTRAP_RELEASE = "bookworm"
"""The Debian release whose mmdebstrap builds base images. Another version of mmdebstrap would write a base
image with other bytes.
"""
_SOURCE = "toolkit.source"
_APPTAINER = "TOOLKIT_APPTAINER"
"""The environment variable that selects a release of Apptainer other than the default. Its value is
``VERSION:SHA256``: the version and the hash of an Apptainer package in Debian's pool.
"""
_PIN = re.compile(r"[0-9][A-Za-z0-9.+~-]*:[0-9a-f]{64}")
_BUILD_SECONDS = 1800.0
_ASK_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ContainedApptainer:
    """Apptainer in a container of the builder image; ``memory`` is the container's memory limit in bytes."""

    client: "DockerClient"
    version: str
    memory: int

    @property
    def description(self) -> str:
        return f"{self.version} (in the image {BUILDER})"

    def labels(self, sif: Path) -> Mapping[str, str]:
        ran = self._look(sif, ("apptainer", "inspect", "--json", f"/target/{sif.name}"))
        try:
            return dict(json.loads("\n".join(ran.lines))["data"]["attributes"]["labels"])
        except (ValueError, KeyError, TypeError) as error:
            last = ran.lines[-1] if ran.lines else "Apptainer printed no message"
            raise CheckFailed(f"{sif}: {self.version} cannot inspect the image: {last}") from error

    def execute(self, sif: Path, words: tuple[str, ...]) -> Outcome:
        # A container has no loop devices. With `-u`, Apptainer mounts the SIF file with FUSE instead.
        call = ("apptainer", "exec", "-u", "--cleanenv", "--no-home", f"/target/{sif.name}", *words)
        ran = self._look(sif, call)
        return Outcome(ran.status, "\n".join(ran.lines))

    def _look(self, sif: Path, words: tuple[str, ...]) -> RunResult:
        binds, env = {str(sif.parent.resolve()): "/target"}, {"APPTAINER_MESSAGELEVEL": "1"}
        box = Box(BUILDER, binds=binds, env=env, memory=self.memory, timeout=_ASK_SECONDS, nested=True)
        return run_once(self.client, box, words)


def contained_apptainer(client: "DockerClient", tell: Tell) -> ContainedApptainer:
    """Return an object that runs Apptainer in a container. If the Docker engine does not have the builder
    image, build it.
    """
    ensure_builder(client, tell)
    ran = run_once(client, Box(BUILDER), ("apptainer", "--version"))
    return ContainedApptainer(client, ran.lines[0] if ran.lines else "apptainer", build_memory(client))


def ensure_builder(client: "DockerClient", tell: Tell) -> str:
    """Return the name of the builder image. If the image is missing or its Dockerfile has changed,
    build it.
    """
    return _ensure(
        client, BUILDER, _DOCKERFILE, RELEASE, {"APPTAINER": _selected_apptainer()}, "Apptainer", tell
    )


def ensure_moved_builder(client: "DockerClient", release: str, tell: Tell) -> str:
    """Return the name of an image with Apptainer on a Debian ``release`` that is older than ``RELEASE``. The
    image also contains the newer glibc that Apptainer needs. If the image is missing or its Dockerfile has
    changed, build it.
    """
    arguments = {"BUILDER": ensure_builder(client, tell)}
    return _ensure(
        client, f"{BUILDER.partition(':')[0]}:{release}", _MOVED, release, arguments, "Apptainer", tell
    )


def ensure_bootstrapper(client: "DockerClient", tell: Tell) -> str:
    """Return the name of an image with mmdebstrap. If the image is missing or its Dockerfile has changed,
    build it.

    The packages of the mmdebstrap image come from Debian's archive; apt checks the archive's signatures.

    Raises:
        Missing: if no Debian base image is available.
        CheckFailed: if the build fails.
    """
    name = f"{BUILDER.partition(':')[0]}:bootstrap"
    return _ensure(client, name, _BOOTSTRAP, _BOOTSTRAP_RELEASE, {}, "mmdebstrap", tell)


def _selected_apptainer() -> str:
    """Return the Apptainer release that ``TOOLKIT_APPTAINER`` selects, as ``VERSION:SHA256``, or an empty
    string for the default release.

    Raises:
        BadInput: if the variable is not ``VERSION:SHA256``.
    """
    pin = os.environ.get(_APPTAINER, "").strip()
    if pin and not _PIN.fullmatch(pin):
        raise BadInput(
            f"{_APPTAINER}={pin}: the value is not VERSION:SHA256 of an Apptainer package",
            fix=f"to use toolkit's default release of Apptainer, unset {_APPTAINER}",
        )
    return pin


def _ensure(
    client: "DockerClient",
    name: str,
    file: str,
    release: str,
    arguments: dict[str, str],
    program: str,
    tell: Tell,
) -> str:
    dockerfile = (shipped_folder("containers") / "builder" / file).read_bytes()
    source = hashlib.sha256(dockerfile + arguments.get("APPTAINER", "").encode()).hexdigest()
    existing = find_image(client, name)
    if existing is not None and existing.labels.get(_SOURCE) == source:
        return name
    base = ensure_base(client, release, f"debian:{release}-slim", tell)
    tell.step(f"Building {name}, which contains {program}, from the base image {base}")
    options = BuildOptions(
        memory=2 << 30,
        timeout=_BUILD_SECONDS,
        arguments={**arguments, "BASE": base.reference, **proxies(os.environ)},
        labels={_SOURCE: source},
    )
    tag_image(client, build_image(client, {"Dockerfile": dockerfile}, name, tell, options), name)
    return name
