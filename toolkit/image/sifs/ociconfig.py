"""The part of a Docker image's configuration that a SIF keeps."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from toolkit.errors import BadInput
from toolkit.image.builds.emit import CREATION_LABEL, LOCK

if TYPE_CHECKING:
    from docker.models.images import Image

EPOCH = "SOURCE_DATE_EPOCH"
"""Environment variable: the time of a build in seconds since 1970 (reproducible-builds.org)."""

_LATEST = (1 << 32) - 1
"""Squashfs stores times in unsigned 32 bits."""


class OciConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The configuration of an image, in the order and under the names of opencontainers/image-spec:config.md.

    As JSON, the configuration is the file that Apptainer keeps as ``oci-config.json``. Host names and the
    identity of the base image are left out, because they differ for equal content.
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
    """Return the engine's configuration of an image.

    Raises:
        BadInput: if the configuration differs from the specification's structure.
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
    """Return the latest time of a SIF and of everything in it, in seconds since 1970.

    For an image that was built here from a lock, it is the label ``org.opencontainers.image.created``, which
    two builds share; otherwise ``SOURCE_DATE_EPOCH``, or the creation time of the image. In other images, the
    time in the label may be older than the files. Python records the age of the source in compiled modules,
    and would compile them again at every start if the source became older.

    Raises:
        BadInput: if ``SOURCE_DATE_EPOCH`` is not a number of seconds.
    """
    if LOCK in config.Labels and (found := _seconds(config.Labels.get(CREATION_LABEL, ""))) is not None:
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
