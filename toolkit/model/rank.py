"""The program of a rank, and the image as the rank sees it."""

import msgspec


class RankView(msgspec.Struct, frozen=True, kw_only=True):
    """The program of a rank, and the folders of the image that the runtime hides from it.

    ``command`` is empty if the program is unknown. ``script`` is the text of a Python script of the user that
    the command names, ``hidden`` are folders over which the runtime mounts folders of the host. ``env`` is a
    file of ``toolkit env`` on this machine that is mounted over the image; empty without such a file.
    ``told`` are the variables that a container of the image printed, ``None`` if it was not started.
    """

    command: tuple[str, ...] = ()
    script: str | None = None
    hidden: tuple[str, ...] = ()
    env: str = ""
    told: dict[str, str] | None = None


WHOLE_IMAGE = RankView()
"""The unchanged image, for any program in it."""
