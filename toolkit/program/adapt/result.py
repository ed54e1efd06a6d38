"""What ``toolkit adapt`` made of a training script."""

from typing import Literal

import msgspec

Way = Literal["horovod", "tf-config", "torch"]
"""How the ranks of an adapted script join: a program of toolkit."""


class ScriptChange(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a script; ``what`` describes the change, or why the line is unchanged."""

    line: int
    what: str


class AdaptedScript(msgspec.Struct, frozen=True, kw_only=True):
    """What ``toolkit adapt --json`` prints.

    ``program`` is how the ranks join. ``joins`` names how they joined before; then nothing is changed.
    Lines are counted in the unchanged script. ``diff`` is unified; ``output`` is the file that was written.
    """

    schema: str = "toolkit.adapt/1"
    file: str
    program: Way | None
    joins: tuple[str, ...] = ()
    changes: tuple[ScriptChange, ...] = ()
    left: tuple[ScriptChange, ...] = ()
    diff: str = ""
    output: str | None = None
