"""The user's name of an image: a path, or a name after a transport, as Apptainer and skopeo write it."""

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
"""Prefixes of names that are not paths."""
_REGISTRIES = ("docker", "oras")
_SERVERS = ("http", "https")
_LIBRARIES = ("library", "shub")
_NAME = re.compile(
    r"(?=.{1,400}$)(?:[A-Za-z0-9.-]+(?::\d{1,5})?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    r"(?::\w[\w.-]{0,127}|@sha256:[0-9a-f]{64})"
)
"""An image name with its tag or digest (distribution/reference:reference.go)."""


@dataclass(frozen=True, slots=True)
class Reference:
    """``transport`` is ``None`` if the file or folder shows its kind; ``tag`` names one image of several."""

    shown: str
    transport: Transport | None
    path: Path
    tag: str = ""


def refer(image: str | Path) -> Reference:
    """Parse the name of an image.

    Raises:
        BadInput: if no such file exists, and the text cannot be an image of an engine.
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
    """Return the command that converts an image to a SIF."""
    if facts.path.startswith("docker-daemon:"):
        return shlex.join(("toolkit", "image", "sif", facts.path))
    return shlex.join(("apptainer", "build", *_for_apptainer(facts)))


def _for_apptainer(facts: ImageFacts) -> tuple[str, str]:
    """Return the arguments of ``apptainer build``: the file to write, and its source."""
    here = facts.path
    if not here.startswith(TRANSPORTS) and facts.format != "sandbox":
        here = f"{'oci' if facts.format == 'oci-layout' else facts.format}:{here}"
    name = re.split(r"[/:@]", facts.path.rstrip("/").removesuffix(":latest"))[-1]
    return re.sub(r"(\.tar)?(\.gz|\.zst)?$", "", name) + ".sif", here


def _with_transport(text: str, transport: str, rest: str) -> Reference:
    known = next(t for t in _TRANSPORTS if t == transport)
    if not rest:
        raise BadInput(f"{text}: nothing follows {transport}:")
    if known == "docker-daemon":
        return Reference(text, known, Path(), rest)
    # A path may contain colons, and so may a tag.
    cuts = [i for i, letter in enumerate(rest) if letter == ":"]
    for cut in (len(rest), *reversed(cuts)):
        if _exists(rest[:cut]):
            return Reference(text, known, Path(rest[:cut]), rest[cut + 1 :])
    raise BadInput(f"{text}: no such file or folder")


def _fetching(transport: str, text: str) -> str:
    """Return the command that fetches an image; empty if the text is not such an address."""
    if transport in _REGISTRIES:
        return f"`toolkit image pull {shlex.quote(text)} -o FILE`"
    if transport in _SERVERS:
        return f"`curl -LO {shlex.quote(text)}`"
    return f"`apptainer pull FILE {shlex.quote(text)}`" if transport in _LIBRARIES else ""


def _exists(text: str) -> bool:
    try:
        return bool(text) and Path(text).exists()
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return False
