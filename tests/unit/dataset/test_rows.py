"""Test PNG images that Pillow wrote, and the errors for damaged images."""

import io
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.dataset.rows import RecordFile
from toolkit.errors import Missing

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

ROWS, WIDTH = 40, 16


def smooth(rows=ROWS, width=WIDTH):
    """Return an image with gradients, so that the PNG encoder uses filters."""
    generator = np.random.default_rng(1)
    steps = generator.integers(-3, 4, (rows, width, 3))
    return (np.cumsum(np.cumsum(steps, 0), 1) % 256).astype(np.uint8)


def written(pixels, **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", **options)
    return buffer.getvalue()


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def encoded(pixels, filters):
    """Return a PNG whose rows use these filters, computed as the PNG specification defines them."""
    height, width, _ = pixels.shape
    lines, before = [], np.zeros(width * 3, int)
    for number, row in enumerate(pixels.reshape(height, -1).astype(int)):
        left = np.concatenate([[0, 0, 0], row[:-3]])
        corner = np.concatenate([[0, 0, 0], before[:-3]])
        guess = left + before - corner
        near = np.abs(np.stack([left, before, corner]) - guess)
        paeth = np.choose(np.argmin(near, 0), [left, before, corner])
        guesses = [0, left, before, (left + before) // 2, paeth]
        kind = filters[number % len(filters)]
        lines.append(bytes([kind]) + ((row - guesses[kind]) % 256).astype(np.uint8).tobytes())
        before = row
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = zlib.compress(b"".join(lines))
    parts = [content[at : at + 100] for at in range(0, len(content), 100)]
    image = chunk(b"IHDR", header) + b"".join(chunk(b"IDAT", part) for part in parts) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + image


def records(image, classes=bytes(range(ROWS))):
    return io.BufferedReader(RecordFile(io.BytesIO(image), classes, "here")).read()


def expected(pixels):
    planes = pixels.transpose(0, 2, 1).reshape(len(pixels), -1)
    return b"".join(bytes([number]) + row.tobytes() for number, row in enumerate(planes))


@every_row("options", [{}, {"optimize": True}, {"compress_level": 0}])
def test_an_image_of_another_encoder_becomes_records(options):
    assert records(written(smooth(), **options)) == expected(smooth())


@every_row("filters", [[0], [1], [2], [3], [4], [0, 1, 2, 3, 4], [4, 2, 3, 1, 0]])
def test_every_filter_is_undone(filters):
    assert records(encoded(smooth(), filters)) == expected(smooth())


def test_our_encoder_is_right_too():
    assert (np.asarray(Image.open(io.BytesIO(encoded(smooth(), [0, 1, 2, 3, 4])))) == smooth()).all()


IMAGE = written(smooth())


@every_row(
    ("image", "said"),
    [
        (b"", "not a PNG image"),
        (b"GIF89a", "not a PNG image"),
        (IMAGE[:60], "damaged or incomplete"),
        (IMAGE[:50] + b"\xff" + IMAGE[51:], "damaged or incomplete"),
        (written(smooth()[:, :, 0]), "with 8 bits per colour"),
        (b"\x89PNG\r\n\x1a\n" + b"\xff" * 8, "damaged"),
    ],
)
def test_what_is_no_such_image_is_told(image, said):
    with pytest.raises(Missing, match=f"here: .*{said}"):
        records(image)


def test_an_unknown_filter_is_told():
    lines = zlib.compress(b"\x07" + bytes(3 * WIDTH))
    header = struct.pack(">IIBBBBB", WIDTH, 1, 8, 2, 0, 0, 0)
    with pytest.raises(Missing, match="unknown row filter"):
        records(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", lines))


def test_more_rows_than_classes_are_told():
    with pytest.raises(Missing, match="too few entries for the rows"):
        records(IMAGE, bytes(ROWS - 1))


def test_it_is_read_in_pieces_of_any_size():
    file = io.BufferedReader(RecordFile(io.BytesIO(IMAGE), bytes(ROWS), "here"), 64)
    read = b"".join(iter(lambda: file.read(7), b""))
    assert len(read) == ROWS * (1 + 3 * WIDTH)


@settings(deadline=None)
@given(st.integers(0, len(IMAGE) - 1), st.integers(1, 255))
def test_a_damaged_image_ends_in_an_error(at, change):
    damaged = bytearray(IMAGE)
    damaged[at] ^= change
    with pytest.raises((Missing, zlib.error)):
        records(bytes(damaged))
        raise zlib.error("unharmed")  # the reader ignores data after the last row
