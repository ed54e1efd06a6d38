"""Test how toolkit writes sizes of files and memory."""

from tests.unit.tables import every_row
from toolkit.units import format_memory, format_size


@every_row(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (9_996, "10.0 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (288_600_000, "289 MB"),
        (4_770_000_000, "4.77 GB"),
        (1e13, "10000 GB"),
    ],
)
def test_a_size_has_three_digits_and_its_unit(size, text):
    assert format_size(size) == text


@every_row(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (64 << 20, "64 MiB"),
        ((1 << 30) - 1, "1 GiB"),
        (4_724_464_026, "4.4 GiB"),
    ],
)
def test_memory_has_at_most_one_decimal_and_its_unit(size, text):
    assert format_memory(size) == text
