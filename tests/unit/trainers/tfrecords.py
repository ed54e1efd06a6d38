"""Write TFRecord files with images and labels in TensorFlow's format, without TensorFlow."""

import struct
from collections.abc import Iterable
from pathlib import Path

_CASTAGNOLI = 0x82F63B78


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_CASTAGNOLI if value & 1 else 0)  # noqa: PLW2901
        table.append(value)
    return table


_TABLE = _table()


def _checksum(content: bytes) -> bytes:
    """Return the masked CRC-32C of TFRecord files: the checksum rotated, plus a constant."""
    value = 0xFFFFFFFF
    for byte in content:
        value = _TABLE[(value ^ byte) & 255] ^ value >> 8
    value ^= 0xFFFFFFFF
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + _checksum(length) + content + _checksum(content)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes((value & 127 | 128,))
        value >>= 7
    return found + bytes((value,))


def example(image: bytes, label: int, image_key: str = "image/encoded") -> bytes:
    """Return a serialized tf.train.Example with an image and its label.

    In tf.train.Feature, field 1 has bytes and field 3 has integers.
    """
    values = {
        image_key: _field(1, _field(1, image)),
        "image/class/label": _field(3, _field(1, _varint(label))),
    }
    entries = b"".join(_field(1, _field(1, key.encode()) + _field(2, value)) for key, value in values.items())
    return _field(1, entries)


def write_shards(folder: Path, part: str, samples: Iterable[tuple[bytes, int]], shards: int) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    dealt: list[list[bytes]] = [[] for _ in range(shards)]
    for number, (image, label) in enumerate(samples):
        dealt[number % shards].append(record(example(image, label)))
    paths = [folder / f"{part}-{number:05d}-of-{shards:05d}" for number in range(shards)]
    for path, content in zip(paths, dealt, strict=True):
        path.write_bytes(b"".join(content))
    return paths
