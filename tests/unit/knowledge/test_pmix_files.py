"""Test which PMIx release each file name of libpmix stands for."""

from itertools import pairwise

from packaging.version import Version

from toolkit.knowledge.pmix import pmix


def test_a_later_file_of_libpmix_is_of_a_later_release():
    files = pmix().library_file
    rows = [(Version(name.removeprefix("libpmix.so.")), Version(release)) for name, release in files.items()]
    assert len(rows) > 20
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(rows))
