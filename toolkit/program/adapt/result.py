"""The result of ``toolkit adapt``."""

from typing import Literal

import msgspec

Way = Literal["horovod", "tf-config", "torch"]
"""What connects the ranks of an adapted script: Horovod, TensorFlow's ``TF_CONFIG``, or PyTorch."""


class ScriptChange(msgspec.Struct, frozen=True, kw_only=True):
    """A note about a line of a script. ``what`` describes how toolkit changed the line, or what the user must
    check or change.
    """

    line: int
    what: str


class AdaptedScript(msgspec.Struct, frozen=True, kw_only=True):
    """The output of ``toolkit adapt --json``.

    ``program`` says what connects the ranks of the changed script. ``joins`` lists what connects the ranks of
    the original script. If ``joins`` is not empty, toolkit does not change the script. ``changes`` lists the
    lines that toolkit changed, and ``left`` the lines that the user must check. Line numbers refer to the
    original script. ``diff`` is a unified diff between the two scripts. ``output`` is the path of the file to
    which toolkit wrote the changed script. If toolkit wrote no file, ``output`` is ``None``.
    """

    schema: str = "toolkit.adapt/1"
    file: str
    program: Way | None
    joins: tuple[str, ...] = ()
    changes: tuple[ScriptChange, ...] = ()
    left: tuple[ScriptChange, ...] = ()
    diff: str = ""
    output: str | None = None
