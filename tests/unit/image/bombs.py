"""Make small compressed blocks that expand to very many bytes, and a squashfs with such a block."""

import lzma
import struct
import zlib

_NUMBERS = {"gzip": 1, "xz": 4, "lz4": 5, "zstd": 6}
_STORED = 0x8000


def gzip_frame(size: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)), packer.flush()])


def xz_frame(size: int) -> bytes:
    packer = lzma.LZMACompressor(preset=0)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)), packer.flush()])


def zstd_frame(size: int) -> bytes:
    """Return a zstd frame whose header states its size (RFC 8878, 3.1.1); each block repeats a byte 131,072
    times.
    """
    count = size >> 17
    blocks = [((1 << 17) << 3 | 1 << 1 | (n == count - 1)).to_bytes(3, "little") + b"A" for n in range(count)]
    head = b"\x28\xb5\x2f\xfd" + bytes([0b11000000, (20 - 10) << 3])
    return head + struct.pack("<Q", size) + b"".join(blocks)


def zstd_silent_frame(size: int) -> bytes:
    """Return a zstd frame whose header does not state its size."""
    named = zstd_frame(size)
    return named[:4] + b"\0" + named[5:6] + named[14:]


def lz4_frame(size: int) -> bytes:
    """Return an LZ4 block that expands to ``size`` times the same letter."""
    return b"\x1fA\x01\0" + b"\xff" * (size // 255) + b"\0"


FRAMES = {"gzip": gzip_frame, "xz": xz_frame, "lz4": lz4_frame, "zstd": zstd_frame}
"""For each codec, the function that makes a frame that expands to a given number of bytes."""


def squashfs(files: dict[str, bytes], codec: str, size: int, place: str) -> bytes:
    """Return a squashfs in which the block at ``place`` expands to ``size`` bytes.

    ``place`` is ``data`` (the content of ``/etc/os-release``) or ``metadata`` (the table of inodes).
    """
    frame = FRAMES[codec](size)
    return lying(files, codec, frame, place)


def lying(files: dict[str, bytes], codec: str, frame: bytes, place: str) -> bytes:
    """Return a squashfs in which the block at ``place`` is ``frame``."""
    data, inodes, folders = bytearray(), bytearray(), bytearray()

    def inode(kind: int, rest: bytes) -> int:
        inodes.extend(struct.pack("<HHHHII", kind, 0o755, 0, 0, 0, 1) + rest)
        return len(inodes) - 16 - len(rest)

    def put(folder: dict) -> int:
        entries = bytearray()
        for name, below in sorted(folder.items()):
            if isinstance(below, dict):
                number, kind = put(below), 1
            else:
                raw, length, stored = below
                word = struct.pack("<I", len(raw) & 0xFFFFFF | stored)
                number, kind = inode(2, struct.pack("<4I", 96 + len(data), 0xFFFFFFFF, 0, length) + word), 2
                data.extend(raw)
            entries += struct.pack("<HhHH", number, 0, kind, len(name) - 1) + name.encode()
        offset = len(folders)
        folders.extend(struct.pack("<3I", len(folder) - 1, 0, 1) + entries)
        return inode(1, struct.pack("<IIHHI", 0, 2, len(folders) - offset + 3, offset, 1))

    blocks = {name: (raw, len(raw), 1 << 24) for name, raw in files.items()}
    if place == "data":
        blocks["etc/os-release"] = (frame, 100_000, 0)
    tree: dict = {}
    for path, block in blocks.items():
        *above, name = path.split("/")
        here = tree
        for part in above:
            here = here.setdefault(part, {})
        here[name] = block
    root = put(tree)
    first = frame[:8192] if place == "metadata" else bytes(inodes)
    word = len(first) if place == "metadata" else len(first) | _STORED
    tables = [struct.pack("<H", word) + first, struct.pack("<H", len(folders) | _STORED) + bytes(folders)]
    at, following = 96 + len(data), 96 + len(data) + len(tables[0])
    head = struct.pack(
        "<5I6H8Q",
        *(0x73717368, 1, 0, 1 << 17, 0, _NUMBERS[codec], 17, 0, 1, 4, 0),
        *(root, following + len(tables[1]), 0, 0, at, following, 0, 0),
    )
    return head + bytes(data) + tables[0] + tables[1]
