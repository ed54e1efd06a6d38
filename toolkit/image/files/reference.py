"""Parse the name of an image: a path, a name in the Docker engine, or a name with a transport prefix.

Apptainer and skopeo define the transport prefixes, such as ``docker-daemon:``.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from toolkit.errors import BadInput
from toolkit.model.facts import ImageFacts

Transport = Literal["docker-archive", "oci-archive", "oci", "docker-daemon"]
_TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
TRANSPORTS = tuple(f"{transport}:" for transport in _TRANSPORTS)
"""The transport prefixes of image names, for example ``docker-daemon:``."""
_REGISTRIES = ("docker", "oras")
_SERVERS = ("http", "https")
_LIBRARIES = ("library", "shub")
_NAME = re.compile(
    r"(?=.{1,400}$)(?:[A-Za-z0-9.-]+(?::\d{1,5})?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    r"(?::\w[\w.-]{0,127}|@sha256:[0-9a-f]{64})"
)
"""The syntax of an image name with a tag or a digest (distribution/reference:reference.go)."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed image name.

    ``label`` is the image's name in messages. ``transport`` is the prefix of the name, such as ``oci``. It
    is None if the name is a path; toolkit then reads the file to find its format. ``tag`` selects one image
    of an archive with several images, or is the image's name in the Docker engine.
    """

    label: str
    transport: Transport | None
    path: Path
    tag: str = ""


def refer(image: str | Path) -> Reference:
    """Parse ``image``: an existing path, a name with a transport prefix, or a name in the Docker engine.

    Raises:
        BadInput: if ``image`` is none of these, or is the address of an image in a registry or on a server.
    """
    text = str(image)
    if isinstance(image, Path) or _exists(text):
        return Reference(text, None, Path(text))
    prefix, colon, rest = text.partition(":")
    if colon and prefix in _TRANSPORTS:
        return _with_transport(text, prefix, rest.removeprefix("//"))
    if rest.startswith("//") and (fetch := _fetching(prefix, text)):
        raise BadInput(f"{text}: this image is not on this machine", fix=f"download the image first: {fetch}")
    if _NAME.fullmatch(text):
        return Reference(f"docker-daemon:{text}", "docker-daemon", Path(), text)
    raise BadInput(
        f"{text}: No such file or directory",
        fix="give the path of an image, or docker-daemon:NAME:TAG for an image in the Docker engine",
    )


def sif_command(facts: ImageFacts) -> str:
    """Return the shell command with which a user converts an image to a SIF."""
    if facts.path.startswith("docker-daemon:"):
        return shlex.join(("toolkit", "image", "sif", facts.path))
    return shlex.join(("apptainer", "build", *_for_apptainer(facts)))


def _for_apptainer(facts: ImageFacts) -> tuple[str, str]:
    """Return the two arguments of ``apptainer build``: the new SIF and the source image."""
    source = facts.path
    if not source.startswith(TRANSPORTS) and facts.format != "sandbox":
        source = f"{'oci' if facts.format == 'oci-layout' else facts.format}:{source}"
    name = re.split(r"[/:@]", facts.path.rstrip("/").removesuffix(":latest"))[-1]
    return re.sub(r"(\.tar)?(\.gz|\.zst)?$", "", name) + ".sif", source


def _with_transport(text: str, transport: str, rest: str) -> Reference:
    known = next(t for t in _TRANSPORTS if t == transport)
    if not rest:
        raise BadInput(f"{text}: the name or path after `{transport}:` is missing")
    if known == "docker-daemon":
        return Reference(text, known, Path(), rest)
    # Paths and tags may contain colons.
    cuts = [i for i, letter in enumerate(rest) if letter == ":"]
    for cut in (len(rest), *reversed(cuts)):
        if _exists(rest[:cut]):
            return Reference(text, known, Path(rest[:cut]), rest[cut + 1 :])
    raise BadInput(f"{text}: no such file or folder")


def _fetching(transport: str, text: str) -> str:
    """Return the command that downloads the image at the address ``text``; empty for an unknown prefix."""
    if transport in _REGISTRIES:
        return f"`toolkit image pull {shlex.quote(text)} -o FILE`"
    if transport in _SERVERS:
        return f"`curl -LO {shlex.quote(text)}`"
    return f"`apptainer pull FILE {shlex.quote(text)}`" if transport in _LIBRARIES else ""


def _exists(text: str) -> bool:
    try:
        return bool(text) and Path(text).exists()
    except (OSError, ValueError):  # the name is too long or contains a NUL byte
        return False
