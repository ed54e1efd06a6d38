"""Read the part of a Docker image's configuration that toolkit stores in a SIF."""

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
"""The environment variable with the time of a build in Unix seconds (reproducible-builds.org)."""

_LATEST = (1 << 32) - 1
"""The latest time in Unix seconds that squashfs can store: squashfs stores a time as an unsigned 32-bit
number.
"""


class OciConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The configuration of an image, with the field names of opencontainers/image-spec:config.md.

    toolkit stores the configuration as JSON in the object ``oci-config.json`` of a SIF. The configuration
    omits host names and the id of the base image, which differ between images with equal content.
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
    """Return the configuration of an image in the Docker engine.

    Raises:
        BadInput: if the configuration does not match the OCI specification.
    """
    attributes = image.attrs.get("Config") or {}
    fields = {name: attributes[name] for name in OciConfig.__struct_fields__ if attributes.get(name)}
    for name in ("Labels", "ExposedPorts", "Volumes"):
        if name in fields:
            fields[name] = dict(sorted(fields[name].items()))
    try:
        return msgspec.convert(fields, OciConfig)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"{image.id}: toolkit cannot read the Docker engine's description of this image: {error}"
        ) from error


def epoch(image: "Image", config: OciConfig, env: Mapping[str, str] = os.environ) -> int:
    """Return the time of a SIF in Unix seconds. In the SIF, files with a later modification time get this
    time.

    For an image that toolkit built from a lock, the time is in the label
    ``org.opencontainers.image.created``. All images that toolkit builds from one lock have the same time. For
    any other image, the time is ``SOURCE_DATE_EPOCH`` if it is set, otherwise the image's creation time.

    toolkit ignores this label in all other images, because the label may be older than the image's files.
    If toolkit used the label's time, the modification times of Python files in the SIF would change, and
    Python would compile these files again at each start.

    Raises:
        BadInput: if ``SOURCE_DATE_EPOCH`` is not a whole number.
    """
    if LOCK in config.Labels and (moment := _seconds(config.Labels.get(CREATION_LABEL, ""))) is not None:
        return moment
    if seconds := env.get(EPOCH):
        if not seconds.isdecimal():
            raise BadInput(f"{EPOCH}={seconds}: expected whole seconds since 1970, as `date +%s` prints")
        return min(int(seconds), _LATEST)
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
