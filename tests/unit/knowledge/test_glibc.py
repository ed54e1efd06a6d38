"""Test which kernel a release of glibc needs, at each boundary between two releases."""

from tests.unit.tables import every_row
from toolkit.knowledge.glibc import oldest_kernel

OLDEST = [
    ("2.41", "aarch64", "3.7.0"),
    ("2.26", "aarch64", "3.7.0"),
    ("2.26", "ppc64le", "3.10.0"),
    ("2.41", "x86_64", "3.2.0"),
    ("2.26", None, "3.2.0"),
    ("2.25", "x86_64", "2.6.32"),
    ("2.20", "x86_64", "2.6.32"),
    ("2.19", "x86_64", "2.6.16"),
    ("2.16", "x86_64", "2.6.16"),
    ("2.15", "x86_64", None),
]


@every_row(("version", "architecture", "kernel"), OLDEST)
def test_a_release_of_glibc_needs_a_kernel(version, architecture, kernel):
    row = oldest_kernel(version, architecture)
    assert (row.kernel if row else None) == kernel
