"""Test which PMIx release toolkit derives from each file name of libpmix and each release of Open MPI."""

from itertools import groupby, pairwise

from packaging.version import Version

from toolkit.knowledge.mpi import mpi
from toolkit.knowledge.pmix import pmix


def test_a_later_file_of_libpmix_is_of_a_later_release():
    files = pmix().library_file
    rows = [(Version(name.removeprefix("libpmix.so.")), Version(release)) for name, release in files.items()]
    assert len(rows) > 20
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(rows))


def test_a_later_open_mpi_of_a_series_contains_no_earlier_pmix():
    rows = [(Version(name), Version(release)) for name, release in mpi().bundled_pmix.items()]
    assert len(rows) > 40
    for _, series in groupby(rows, key=lambda row: row[0].release[:2]):
        assert all(one[0] < other[0] and one[1] <= other[1] for one, other in pairwise(series))


def test_a_later_file_of_libmpi_is_of_a_later_open_mpi():
    files = mpi().library_file["openmpi"]
    rows = [(Version(name.removeprefix("libmpi.so.")), Version(release)) for name, release in files.items()]
    assert len(rows) > 20
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(rows))
