"""Check the options, mounts and variables that a fix file adds to a launch command.

Another user may have written the fix file, so toolkit checks the file's content. toolkit inserts the words in
``launch.container`` before the image, as options of ``singularity exec``.
"""

import re
from collections.abc import Iterator

from toolkit.launch.request.checks import bind_fault
from toolkit.model.fix import Fix

_OPTION = re.compile(r"--[a-z][a-z0-9-]*(?:=.+)?|-[A-Za-z]")
_WITH_VALUE = ("--env", "--no-mount")
"""The options whose value is the next word, as in ``--env NAME=VALUE``."""


def faults(fix: Fix) -> Iterator[tuple[str, str]]:
    """Yield the field and the fault of each invalid value in a fix file."""
    before = ""
    for word in fix.launch.container:
        value = before in _WITH_VALUE and not word.startswith("-")
        # Apptainer would treat a word that is neither an option nor an option's value as the image.
        if not word.isprintable() or not (value or _OPTION.fullmatch(word)):
            yield "launch.container", f"expected an option such as --nv or --home=DIR, found {word!a}"
        before = "" if value else word
    for bind in fix.launch.binds:
        if why := bind_fault(bind):
            yield "launch.binds", f"{bind!a}: {why}"
    for name, setting in fix.launch.env.items():
        if not setting.replace("\n", "").replace("\t", "").isprintable():
            yield "launch.env", f"{name}: the value has a control character"
    for field, text in (("image", fix.image), ("place", fix.place), ("digest", fix.digest or "")):
        if not text.isprintable():
            yield field, "the text has a line break or a control character"
