"""The result of ``toolkit adapt``."""

from typing import Literal

import msgspec

Way = Literal["horovod", "tf-config", "torch"]
"""What connects the ranks of an adapted script: Horovod, TensorFlow's ``TF_CONFIG``, or PyTorch."""


class ScriptChange(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a script; ``what`` describes the change, or the reason why toolkit did not change
    the line.
    """

    line: int
    what: str


class AdaptedScript(msgspec.Struct, frozen=True, kw_only=True):
    """The output of ``toolkit adapt --json``.

    ``program`` says what connects the ranks of the changed script. ``joins`` says what connects the ranks of
    the original script; if ``joins`` names a library, toolkit does not change the script. Line numbers refer
    to the original script. ``diff`` is a unified diff. ``output`` is the path of the written file.
    """

    schema: str = "toolkit.adapt/1"
    file: str
    program: Way | None
    joins: tuple[str, ...] = ()
    changes: tuple[ScriptChange, ...] = ()
    left: tuple[ScriptChange, ...] = ()
    diff: str = ""
    output: str | None = None
