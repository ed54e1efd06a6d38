"""Which folders are the distribution's."""

import pytest

from toolkit.folders import is_system


@pytest.mark.parametrize(
    "folder", ["/usr", "/usr/lib/x86_64-linux-gnu", "/lib", "/lib64", "/usr/lib64/openmpi"]
)
def test_folders_of_the_distribution_are_the_system_s(folder):
    assert is_system(folder)


@pytest.mark.parametrize("folder", ["/usr/local", "/usr/local/lib", "/opt/mpi/lib", "/library", "/usrx", ""])
def test_others_are_not(folder):
    assert not is_system(folder)
