"""The changes of ``toolkit doctor --fix`` to a launch, as a file stores them."""

from typing import Literal

import msgspec

from toolkit.model.prediction import Mode

SCHEMA: Literal["toolkit.fix/1"] = "toolkit.fix/1"


class _FixSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class LaunchFix(_FixSection, frozen=True, kw_only=True):
    """The changes to a launch, in the words of :class:`toolkit.model.prediction.Plan`."""

    mode: Mode
    """The launch mode that this fix is for."""
    container: tuple[str, ...] = ()
    """Additional options of ``singularity exec``."""
    env: dict[str, str] = {}
    """Variables to set inside the container."""
    unset: tuple[str, ...] = ()
    """Variables of the host that must not reach the container."""
    binds: tuple[str, ...] = ()
    """Additional binds, ``SRC[:DST[:OPTS]]``."""


class Fix(_FixSection, frozen=True, kw_only=True):
    """A whole file; ``because`` holds a line for each finding that it answers."""

    schema: Literal["toolkit.fix/1"]
    """The schema of this file."""
    launch: LaunchFix
    image: str = ""
    """Name of the image file that the fix was made for."""
    digest: str | None = None
    """Digest of that image; a launch of another image warns that the fix was made for this one."""
    place: str = ""
    """The host or cluster that the fix was made for, as the facts name it."""
    because: tuple[str, ...] = ()
