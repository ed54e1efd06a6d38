"""Run a command inside an image on this machine, to build a wheel or to compile modules."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import Missing
from toolkit.run.command import Command, Completed
from toolkit.run.local import LocalRunner
from toolkit.run.singularity import NAMES

WORK = "/toolkit-work"
"""The path in the container at which toolkit mounts the working folder."""
_UV = "/toolkit-uv"
_SECONDS = 3600.0
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
_CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
_CA = "/toolkit-ca.crt"
_PREFIXES = ("APPTAINER", "SINGULARITY")
_OF_UV = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_NO_INDEX", "UV_OFFLINE", "UV_HTTP_TIMEOUT")


@dataclass(frozen=True, slots=True)
class InsideImage:
    """An image that this machine can start. ``program`` is the path of the container runtime, and ``options``
    are the options that the runtime needs to start the image here, such as ``--userns``.
    """

    program: str
    options: tuple[str, ...]
    image: Path

    def run(
        self,
        folder: Path,
        words: tuple[str, ...],
        env: Mapping[str, str] | None = None,
        uv: str = "",
        folders: tuple[str, ...] = (),
    ) -> Completed:
        """Run the command ``words`` in the image, with ``folder`` mounted at ``/toolkit-work``.

        ``env`` are variables to set in the container. ``uv`` is the path of uv on this machine,
        which toolkit mounts at ``/toolkit-uv``. If ``uv`` is empty, toolkit does not mount uv. The command
        may also read ``folders`` of this machine. toolkit mounts them read-only at the same paths in the
        container.
        """
        binds = [f"{folder}:{WORK}", *([f"{uv}:{_UV}:ro"] if uv else [])]
        binds += [f"{folder}:{folder}:ro" for folder in folders if Path(folder).is_dir()]
        if ca := _certificates():
            binds.append(f"{ca}:{_CA}:ro")
        named = {name: value for name in _PROXIES if (value := os.environ.get(name))}
        own = {name: value for name, value in os.environ.items() if name.startswith(_OF_UV)}
        environment = {**named, **own, **({"SSL_CERT_FILE": _CA} if ca else {}), **(env or {})}
        bound = (word for bind in binds for word in ("--bind", bind))
        start = (self.program, "exec", "--cleanenv", "--no-home", "--pwd", WORK, *self.options, *bound)
        # Pass variables in the environment, because the address of a package index may contain a password.
        # Other users can see the arguments of a process, but not its environment.
        passed = {f"{prefix}ENV_{name}": value for name, value in environment.items() for prefix in _PREFIXES}
        command = (*start, str(self.image), "env", f"HOME={WORK}", *words)
        return LocalRunner().run(Command(command, env=passed, timeout=_SECONDS))


UV_INSIDE = _UV


def startable_here(image: Path) -> tuple[InsideImage | None, str]:
    """Return an object that runs commands in an image, and an empty text. If this machine cannot start the
    image, return None and the reason.
    """
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        return None, "neither Apptainer nor Singularity is on PATH"
    why = ""
    for options in ((), ("--userns",)):
        trial = (program, "exec", "--cleanenv", "--no-home", *options, str(image), "true")
        try:
            done = LocalRunner().run(Command(trial, timeout=120.0))
        except Missing as error:
            return None, error.message
        if done.ok:
            return InsideImage(program, options, image), ""
        why = why or (done.errors.strip().splitlines() or ["the container does not start"])[-1]
    return None, f"{Path(program).name} cannot start the image on this machine: {why}"


def _certificates() -> str:
    own_file = os.environ.get("SSL_CERT_FILE", "")
    return next((path for path in (own_file, *_CERTIFICATES) if path and Path(path).is_file()), "")
