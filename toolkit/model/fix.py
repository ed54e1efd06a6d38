"""The content of a fix file, in which ``toolkit doctor --fix`` stores changes to a launch."""

from typing import Literal

import msgspec

from toolkit.model.prediction import Mode

SCHEMA: Literal["toolkit.fix/1"] = "toolkit.fix/1"


class _FixSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class LaunchFix(_FixSection, frozen=True, kw_only=True):
    """The changes to a launch. Each field has the meaning of the field with the same name in
    :class:`toolkit.model.prediction.Plan`.
    """

    mode: Mode
    """The launch mode to which the changes apply."""
    container: tuple[str, ...] = ()
    """Options to add to ``singularity exec``."""
    env: dict[str, str] = {}
    """Variables to set inside the container."""
    unset: tuple[str, ...] = ()
    """Variables of the host that must not reach the container."""
    binds: tuple[str, ...] = ()
    """Mounts to add, in the form ``SRC[:DST[:OPTS]]``."""


class Fix(_FixSection, frozen=True, kw_only=True):
    """The content of a fix file. The first line of ``because`` is the prediction for the launch without the
    fix. Each further line is a finding of this prediction.
    """

    schema: Literal["toolkit.fix/1"]
    """Name and version of the file format."""
    launch: LaunchFix
    image: str = ""
    """Name of the image file to which the fix applies."""
    digest: str | None = None
    """Digest of the image to which the fix applies. toolkit warns if you use the fix with another image."""
    place: str = ""
    """Name of the host or cluster to which the fix applies, equal to ``place`` in the host's facts."""
    because: tuple[str, ...] = ()
