"""Convert the compression number in a squashfs superblock to a name (Linux: fs/squashfs/squashfs_fs.h)."""

from toolkit.errors import BadInput
from toolkit.image.files.sif.expand import CODECS

_NAMES = {1: "gzip", 2: "lzma", 3: "lzo", 4: "xz", 5: "lz4", 6: "zstd"}


def method(number: int) -> str:
    """Return the name of the compression with this number in the superblock, for example ``zstd`` for 6."""
    return _NAMES.get(number, f"method {number}")


def codec_of(number: int, name: str) -> str:
    """Return the codec name in :mod:`toolkit.image.files.sif.expand` for a compression number.

    Raises:
        BadInput: if toolkit does not support the compression.
    """
    codec = method(number)
    if codec not in CODECS:
        raise BadInput(
            f"{name}: toolkit cannot read a squashfs compressed with {codec}",
            fix="toolkit reads gzip, xz, lz4 and zstd; build the image again with `mksquashfs -comp zstd`",
        )
    return codec
