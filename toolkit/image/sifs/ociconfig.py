"""What an image of the Docker engine says of itself, as far as a SIF keeps it."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from toolkit.errors import BadInput
from toolkit.image.builds.emit import CREATED, LOCK

if TYPE_CHECKING:
    from docker.models.images import Image

EPOCH = "SOURCE_DATE_EPOCH"
"""Environment variable: seconds since 1970 that stand for the time of a build (reproducible-builds.org)."""

_LATEST = (1 << 32) - 1
"""Squashfs keeps times in 32 bits without a sign."""


class OciConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The configuration of an image, in the order and under the names of opencontainers/image-spec:config.md.

    Encoded as JSON, this is what Apptainer keeps as ``oci-config.json``. Host names and the identity of
    the image that it was built on are left out: they differ where the content does not.
    """

    User: str = ""
    ExposedPorts: dict[str, dict[str, str]] = {}
    Env: tuple[str, ...] = ()
    Entrypoint: tuple[str, ...] = ()
    Cmd: tuple[str, ...] = ()
    Volumes: dict[str, dict[str, str]] = {}
    WorkingDir: str = ""
    Labels: dict[str, str] = {}
    StopSignal: str = ""


def read_config(image: "Image") -> OciConfig:
    """Return what the engine knows of an image.

    Raises:
        BadInput: if it says something of another shape than the specification.
    """
    said = image.attrs.get("Config") or {}
    kept = {name: said[name] for name in OciConfig.__struct_fields__ if said.get(name)}
    for name in ("Labels", "ExposedPorts", "Volumes"):
        if name in kept:
            kept[name] = dict(sorted(kept[name].items()))
    try:
        return msgspec.convert(kept, OciConfig)
    except msgspec.ValidationError as error:
        raise BadInput(f"{image.id}: the engine describes this image in an unknown way: {error}") from error


def epoch(image: "Image", config: OciConfig, env: Mapping[str, str] = os.environ) -> int:
    """Return the time that a SIF and everything in it may have at most, in seconds since 1970.

    For an image that was built here from a lock, it is the label ``org.opencontainers.image.created``, which
    two builds have in common; else ``SOURCE_DATE_EPOCH``, else when the image was created. The label of other
    images may be older than their files. Python notes in compiled modules how old the source was, and would
    compile them again at every start if it became older now.

    Raises:
        BadInput: if ``SOURCE_DATE_EPOCH`` is no number of seconds.
    """
    if LOCK in config.Labels and (found := _seconds(config.Labels.get(CREATED, ""))) is not None:
        return found
    if asked := env.get(EPOCH):
        if not asked.isdecimal():
            raise BadInput(f"{EPOCH}={asked}: write seconds since 1970, as `date +%s` does")
        return min(int(asked), _LATEST)
    return _seconds(str(image.attrs.get("Created") or "")) or 0


def _seconds(text: str) -> int | None:
    if "T" not in text.upper():
        return None
    try:
        when = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return min(max(int(when.timestamp()), 0), _LATEST)
