"""The changes that ``toolkit doctor --fix`` makes to a launch, as its file stores them."""

from typing import Literal

import msgspec

from toolkit.model.prediction import Mode

SCHEMA: Literal["toolkit.fix/1"] = "toolkit.fix/1"


class _FixSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class LaunchFix(_FixSection, frozen=True, kw_only=True):
    """The changes to a launch; the fields mean the same as in :class:`toolkit.model.prediction.Plan`."""

    mode: Mode
    """The launch mode that this fix is for."""
    container: tuple[str, ...] = ()
    """Additional options of ``singularity exec``."""
    env: dict[str, str] = {}
    """Variables to set inside the container."""
    unset: tuple[str, ...] = ()
    """Variables of the host that must not reach the container."""
    binds: tuple[str, ...] = ()
    """Additional mounts, ``SRC[:DST[:OPTS]]``."""


class Fix(_FixSection, frozen=True, kw_only=True):
    """The content of a fix file. ``because`` has one line for each finding that the changes fix."""

    schema: Literal["toolkit.fix/1"]
    """The schema of this file."""
    launch: LaunchFix
    image: str = ""
    """Name of the image file that the fix is for."""
    digest: str | None = None
    """Digest of the image that the fix is for; a launch with another image prints a warning."""
    place: str = ""
    """The host or cluster that the fix is for, with its name from the facts."""
    because: tuple[str, ...] = ()
