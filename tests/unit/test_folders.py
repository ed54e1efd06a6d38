"""Test which folders the distribution contains, and which home folder toolkit uses."""

from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit import data
from toolkit.errors import BadInput
from toolkit.folders import at_home, is_below, is_system, no_file
from toolkit.image.trust.verify import verify
from toolkit.job.places import open_runner
from toolkit.knowledge import sites
from toolkit.model.progress import Silent


@every_row(
    "folder",
    [
        "/usr",
        "/usr/lib/x86_64-linux-gnu",
        "/lib",
        "/lib64/",
        "/usr/lib64/openmpi",
        "/usr/local",
        "/usr/local/lib",
    ],
)
def test_folders_of_the_distribution_are_the_system_s(folder):
    assert is_system(folder)


@every_row("folder", ["/usr/local/mpi/lib", "/usr/local/cuda", "/opt/mpi/lib", "/library", "/usrx", ""])
def test_others_are_not(folder):
    assert not is_system(folder)


def test_below_goes_by_whole_names():
    assert is_below("/opt/mpi/lib", "/opt/mpi")
    assert is_below("/opt/mpi/", "/opt/mpi")
    assert is_below("~/mpi/lib", "~/mpi")
    assert not is_below("/opt/mpich", "/opt/mpi")
    assert not is_below("~/mpi", "/tmp")


def test_a_home_is_put_in_where_there_is_one(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert at_home("~/x.sif") == Path("/home/ada/x.sif")
    assert at_home("/x/~/y") == Path("/x/~/y")
    assert at_home("~nobody-here/x.sif") == Path("~nobody-here/x.sif")


def test_a_folder_is_not_called_a_file_that_is_not_there(tmp_path):
    assert no_file(tmp_path) == "this is a folder; give a file"
    assert no_file(tmp_path / "x") == "no such file"


def test_wherever_a_file_is_asked_for_a_folder_is_called_one(tmp_path):
    asked = [
        lambda: data.find("recipes", f"{tmp_path}/", ".toml"),
        lambda: sites.find(f"{tmp_path}/"),
        lambda: open_runner("login", None, tmp_path),
        lambda: verify(tmp_path, keyring=None, lock=None, unsigned=False, tell=Silent()),
    ]
    for ask in asked:
        with pytest.raises(BadInput, match=f"{tmp_path}/?: (this is )?a folder"):
            ask()
