"""Sizes in words."""

from tests.unit.tables import every_row
from toolkit.units import in_bytes


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
    assert in_bytes(size) == text
