"""The program of a rank, and the part of the image that the rank sees."""

import msgspec


class RankView(msgspec.Struct, frozen=True, kw_only=True):
    """The program of a rank, and the image's folders that the runtime hides from the rank.

    ``command`` is the rank's command; it is empty if unknown. ``script`` is the text of the Python script in
    the command. ``hidden`` are folders of the image over which the runtime mounts host folders. ``env`` is
    the path, on this machine, of a file that ``toolkit env`` made and that the runtime mounts into the
    container; it is empty if the job uses no such file. ``told`` contains the environment variables that
    toolkit read in a running container of the image; it is ``None`` if toolkit read no variables in a
    container.
    """

    command: tuple[str, ...] = ()
    script: str | None = None
    hidden: tuple[str, ...] = ()
    env: str = ""
    told: dict[str, str] | None = None


WHOLE_IMAGE = RankView()
"""A :class:`RankView` for any program in an image: no folder of the image is hidden."""
