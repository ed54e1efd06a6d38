"""What ``toolkit doctor --fix`` would change in a launch, as a file keeps it."""

from typing import Literal

import msgspec

from toolkit.model.prediction import Mode

SCHEMA: Literal["toolkit.fix/1"] = "toolkit.fix/1"


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class LaunchFix(_Section, frozen=True, kw_only=True):
    """What a launch takes over: words as in :class:`toolkit.model.prediction.Plan`."""

    mode: Mode
    container: tuple[str, ...] = ()
    """More options of ``singularity exec``."""
    env: dict[str, str] = {}
    """Variables to set inside the container."""
    unset: tuple[str, ...] = ()
    """Variables of the host that must not reach it."""
    binds: tuple[str, ...] = ()
    """More binds, ``SRC[:DST[:OPTS]]``."""


class Fix(_Section, frozen=True, kw_only=True):
    """A whole file; ``because`` holds a line for each finding that it answers."""

    schema: Literal["toolkit.fix/1"]
    launch: LaunchFix
    image: str = ""
    """Name of the image file that it was made for."""
    digest: str | None = None
    place: str = ""
    because: tuple[str, ...] = ()
