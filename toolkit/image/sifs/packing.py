"""How the files of an image are compressed; the choice is a person's, the figures are in docs/images.md."""

from dataclasses import dataclass

from toolkit.errors import BadInput


@dataclass(frozen=True, slots=True)
class Packing:
    """One way to compress; ``options`` are those of mksquashfs, ``purpose`` is for people."""

    name: str
    purpose: str
    options: tuple[str, ...]


_ZSTD = ("-comp", "zstd", "-Xcompression-level")
PACKINGS = (
    Packing("default", "small, soon made, soon started", (*_ZSTD, "6")),
    Packing("size", "the smallest file", (*_ZSTD, "9", "-b", "1M")),
    Packing("speed", "the file that is made soonest", (*_ZSTD, "3")),
    Packing("start", "nothing to unpack at a start; as large as the image", (*_ZSTD, "1", "-noD", "-noF")),
)
DEFAULT = PACKINGS[0]


def packing(name: str) -> Packing:
    """Return the way to compress that has this name.

    Raises:
        BadInput: naming the choices, if there is none.
    """
    for known in PACKINGS:
        if known.name == name:
            return known
    raise BadInput(f"--for: there is no '{name}'; choices: {', '.join(p.name for p in PACKINGS)}")
