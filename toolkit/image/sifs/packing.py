"""List the compressions in which toolkit can write a SIF; docs/images.md has measurements of each
compression."""

from dataclasses import dataclass

from toolkit.errors import BadInput


@dataclass(frozen=True, slots=True)
class Packing:
    """A compression of a SIF: its name, its options for mksquashfs, and its ``purpose`` in ``--help``."""

    name: str
    purpose: str
    options: tuple[str, ...]


_ZSTD = ("-comp", "zstd", "-Xcompression-level")
PACKINGS = (
    Packing("default", "small, fast to build, fast to start", (*_ZSTD, "6")),
    Packing("size", "the smallest file", (*_ZSTD, "9", "-b", "1M")),
    Packing("speed", "fastest to build", (*_ZSTD, "3")),
    Packing("start", "no compression: fastest start; as large as the image", (*_ZSTD, "1", "-noD", "-noF")),
)
DEFAULT = PACKINGS[0]


def packing(name: str) -> Packing:
    """Return the compression with this name.

    Raises:
        BadInput: if the name is unknown; the message lists the choices.
    """
    for known in PACKINGS:
        if known.name == name:
            return known
    raise BadInput(f"--for {name}: unknown value; choices: {', '.join(p.name for p in PACKINGS)}")
