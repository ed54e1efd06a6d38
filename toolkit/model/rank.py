"""The program of a rank, and the part of the image that the rank sees."""

import msgspec


class RankView(msgspec.Struct, frozen=True, kw_only=True):
    """The program of a rank, and the image's folders that the runtime hides from the rank.

    ``command`` is empty if the program is unknown. ``script`` is the text of the Python script in the
    command. ``hidden`` are folders of the image over which the runtime mounts host folders. ``env`` is a file
    of ``toolkit env`` on this machine that the runtime mounts over the image; empty if the job uses no such
    file. ``told`` are the variables that a container of the image printed, or ``None`` if toolkit did not
    start a container.
    """

    command: tuple[str, ...] = ()
    script: str | None = None
    hidden: tuple[str, ...] = ()
    env: str = ""
    told: dict[str, str] | None = None


WHOLE_IMAGE = RankView()
"""A :class:`RankView` for any program in an image: no folder of the image is hidden."""
